"""Clients from a folder with one file each."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from ..errors import DataFileError
from ._array_files import own_arrays, read_npy, read_npz
from ._csv import joined, read_csv, require_columns
from ._features import Missing, Standardise
from ._files import files_in, naming_file
from ._optional import missing as missing_package
from ._own import OwnData, TargetKind, consecutive
from ._rows import Encoding, from_table
from ._table import Table, read_table


def clients_from_folder(
    path: Path | str,
    pattern: str = "*.csv",
    *,
    target: str | Sequence[str] | None = None,
    kind: TargetKind = "classes",
    features: Sequence[str] | None = None,
    categories: Collection[str] = (),
    missing: Missing = "raise",
    standardise: Standardise | None = "all",
    max_levels: int = 50,
    test_fraction: float = 0.0,
    test: str | None = None,
    seed: int = 0,
    dtype: torch.dtype = torch.float32,
    delimiter: str | None = None,
    encoding: str = "utf-8",
) -> OwnData:
    """Make one client of each file of a folder, named after the file, in natural order.

    - ``.csv``, ``.tsv``, ``.txt``: the first line names the columns. Empty fields, ``NA``, ``N/A``,
      ``NaN`` and ``NULL`` are missing values.
    - ``.parquet``: columns, read by pandas.
    - ``.npz``: arrays ``x`` and ``y``.
    - ``.npy``: inputs in ``<client>_x.npy``, targets in ``<client>_y.npy``.

    The columns of all files must be the same. A file without rows is a client without samples, see
    ``empty_clients``. Nothing in a file is executed.

    :param path: The folder.
    :param pattern: Which files, as ``Path.glob`` takes it; all of one kind.
    :param target: The column to predict; needed for files with columns, and for those alone.
    :param kind: As in ``clients_from_frame``, like all that is not named here.
    :param features: The columns of inputs.
    :param categories: Columns of numbers to take as categories.
    :param missing: What to do with missing values.
    :param standardise: Scaling of columns; arrays stay as they are.
    :param max_levels: How many levels a column may have.
    :param test_fraction: Share of each client's rows to test on, in ``[0, 1)``.
    :param test: A column that marks the rows to test on instead.
    :param seed: Decides which rows are tested on.
    :param dtype: The model's floating-point type.
    :param delimiter: What separates the fields of a text file; by default a comma, in ``.tsv``
        files a tabulator.
    :param encoding: Of text files.
    :raises DataFileError: If there is no file, or one is damaged or unlike the others; the message
        names file and line.
    :raises ValueError: As ``clients_from_frame``.
    """
    root, files = files_in(path, pattern)
    kinds = {file.suffix.lower() for file in files}
    if len(kinds) > 1:
        raise DataFileError(
            f"All files must be of one kind. `{root}` holds {sorted(kinds)}. "
            "Choose with `pattern`, for example '*.csv'."
        )
    named = [(file, file.relative_to(root).as_posix()) for file in files]
    suffix = kinds.pop()
    if suffix in (".npz", ".npy"):
        if target is not None:
            raise ValueError(f"`target` names a column, which {suffix} files do not have.")
        read = read_npz if suffix == ".npz" else read_npy
        return own_arrays(read(named), kind, test_fraction=test_fraction, seed=seed, dtype=dtype)
    if target is None:
        raise ValueError(f"`target` must name the column to predict in {suffix} files.")
    if suffix == ".parquet":
        table, sizes = _read_parquet(named)
    elif suffix in (".csv", ".tsv", ".txt"):
        delimiter = delimiter or ("\t" if suffix == ".tsv" else ",")
        texts = [read_csv(*pair, delimiter=delimiter, encoding=encoding) for pair in named]
        table, sizes = joined(texts), [len(text.rows) for text in texts]
    else:
        raise DataFileError(
            f"Files must be .csv, .tsv, .txt, .parquet, .npz or .npy. Got {suffix!r}. "
            "`clients_from_frame` takes whatever you read yourself."
        )
    options = Encoding(
        target=target,
        kind=kind,
        features=features,
        categories=categories,
        missing=missing,
        standardise=standardise,
        max_levels=max_levels,
        test_fraction=test_fraction,
        test=test,
        seed=seed,
        dtype=dtype,
    )
    names = [name.removesuffix(Path(name).suffix) for _, name in named]
    return from_table(table, consecutive(sizes, names), options)


def _read_parquet(files: Sequence[tuple[Path, str]]) -> tuple[Table, list[int]]:
    try:
        import pandas as pd
        import pyarrow  # type: ignore[import-untyped,unused-ignore]  # noqa: F401 - pandas needs it
    except ModuleNotFoundError as error:
        raise missing_package("pandas` and `pyarrow", "Reading Parquet", "data") from error
    frames = []
    for path, name in files:
        with naming_file(name, ValueError, OSError, NotImplementedError):
            frames.append(pd.read_parquet(path))
        require_columns(name, list(frames[-1].columns), files[0][1], list(frames[0].columns))
    sizes = [len(frame) for frame in frames]
    table = read_table(pd.concat(frames, ignore_index=True))
    ends = np.cumsum(sizes)

    def where(row: int) -> str:
        place = int(np.searchsorted(ends, row, side="right"))
        return f"{files[place][1]}, row {row - int(ends[place]) + sizes[place]}"

    return replace(table, where=where), sizes
