"""Clients from a dataset of the library ``datasets``."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..errors import UnknownNameError
from ._convert import as_array, as_tensor
from ._features import Missing, Standardise
from ._files import naming_file
from ._own import OwnData, TargetKind, consecutive
from ._pixels import DAMAGE, Mode, normalised, pixels_of, require_pillow, require_size
from ._rows import Encoding, from_table
from ._table import Rows, read_table


def from_hugging_face(
    dataset: Any,
    *,
    inputs: str | Sequence[str],
    target: str | Sequence[str],
    client: str | None = None,
    splits: tuple[str, str] = ("train", "test"),
    kind: TargetKind = "classes",
    categories: Collection[str] = (),
    missing: Missing = "raise",
    standardise: Standardise | None = "all",
    max_levels: int = 50,
    size: tuple[int, int] = (28, 28),
    mode: Mode = "L",
    mean: float | Sequence[float] = 0.0,
    std: float | Sequence[float] = 1.0,
    test_fraction: float = 0.0,
    seed: int = 0,
    dtype: torch.dtype = torch.float32,
) -> OwnData:
    """Make clients of a ``datasets.Dataset`` or ``DatasetDict`` that you have loaded.

    Columns of numbers, booleans and text are taken as ``clients_from_frame`` takes them; a column
    of images as ``load_images`` does; one of lists, such as embeddings, as an array. A target of
    type ``ClassLabel`` keeps its numbers and names.

    :param dataset: The rows; of a ``DatasetDict`` two splits.
    :param inputs: The column, or columns of single values, of inputs.
    :param target: The column to predict; several columns are several tasks.
    :param client: The column that says whose each row is; without, one client holds all and
        ``data.divide(parts)`` splits them.
    :param splits: What a ``DatasetDict`` calls the rows to train and to test on. Where the second
        is not there, ``test_fraction`` decides.
    :param kind: Whether targets are classes, or values to predict as they are.
    :param categories: Columns of numbers to take as categories.
    :param missing: What to do with missing values in columns of single values.
    :param standardise: Scaling of columns of numbers.
    :param max_levels: How many levels a column may have.
    :param size: Height and width that images are stretched to.
    :param mode: ``"L"`` for grey images, ``"RGB"`` for colour.
    :param mean: What is subtracted from pixels in [0, 1]; one number, or one a channel.
    :param std: What they are divided by then; likewise.
    :param test_fraction: Share of each client's rows to test on, in ``[0, 1)``.
    :param seed: Decides which rows are tested on.
    :param dtype: The model's floating-point type.
    :raises TypeError: If ``dataset`` is neither of the two, or is streamed.
    :raises UnknownNameError: If there is no such column.
    :raises ValueError: As ``clients_from_frame``; also if a class label is missing.
    """
    rows, is_test = _rows(dataset, splits)
    columns = (inputs,) if isinstance(inputs, str) else tuple(inputs)
    targets = (target,) if isinstance(target, str) else tuple(target)
    for name in (*columns, *targets, *(() if client is None else (client,))):
        if name not in rows.features:
            raise UnknownNameError.among("column", name, rows.features)
    types = {name: type(rows.features[name]).__name__ for name in columns}
    apart = [name for name in columns if types[name] not in ("Value", "ClassLabel")]
    if apart and len(columns) > 1:
        raise ValueError(
            f"`inputs` must be columns of single values, or one column of another kind. "
            f"Got {apart} among {list(columns)}."
        )
    given = None
    if apart and types[apart[0]] == "Image":
        given = _images(rows, apart[0], size=size, mode=mode, mean=mean, std=std)
    elif apart:
        given = as_tensor(as_array(_column(rows, apart[0]), "inputs"), "inputs", dtype)
    single = [*(() if apart else columns), *targets, *(() if client is None else (client,))]
    encoding = Encoding(
        target=targets,
        kind=kind,
        features=None if apart else columns,
        categories=categories,
        missing=missing,
        standardise=standardise,
        max_levels=max_levels,
        test_fraction=test_fraction,
        test=is_test,
        seed=seed,
        dtype=dtype,
        class_names={
            name: tuple(rows.features[name].names)
            for name in targets
            if type(rows.features[name]).__name__ == "ClassLabel"
        },
    )
    return from_table(
        read_table({name: _values(rows, name) for name in single}),
        consecutive([len(rows)], ["all"]) if client is None else client,
        encoding,
        given=given,
    )


def _rows(dataset: Any, splits: tuple[str, str]) -> tuple[Any, Rows | None]:
    """All rows, and which of them are to be tested on if the dataset says so."""
    if isinstance(dataset, Mapping):
        train, test = splits
        if train not in dataset:
            raise UnknownNameError.among("split", train, dataset)
        if test not in dataset:
            return _rows(dataset[train], splits)
        # whoever has a `DatasetDict` has the package
        from datasets import (  # type: ignore[import-untyped,import-not-found,unused-ignore]
            concatenate_datasets,
        )

        parts = [_rows(dataset[split], splits)[0] for split in splits]
        is_test = np.repeat([False, True], [len(part) for part in parts])
        return concatenate_datasets(parts), is_test
    if not (hasattr(dataset, "features") and hasattr(dataset, "with_format")):
        raise TypeError(
            f"`dataset` must be a `datasets.Dataset` or `DatasetDict`. "
            f"Got {type(dataset).__name__}."
        )
    if not hasattr(dataset, "__len__"):
        raise TypeError("`dataset` must not be streamed. Load it without `streaming=True`.")
    return dataset.with_format(None), None


def _column(rows: Any, name: str) -> list[Any]:
    values: list[Any] = rows.select_columns([name])[:][name]
    return values


def _values(rows: Any, name: str) -> list[Any]:
    """The values of a column; class labels by name, ``None`` where there is none."""
    values = _column(rows, name)
    if type(rows.features[name]).__name__ != "ClassLabel":
        return values
    names = rows.features[name].names
    return [None if value is None or value < 0 else names[value] for value in values]


def _images(
    rows: Any,
    name: str,
    *,
    size: tuple[int, int],
    mode: Mode,
    mean: float | Sequence[float],
    std: float | Sequence[float],
) -> Tensor:
    require_pillow()
    require_size(size, mode)
    images = rows.select_columns([name])
    pictures = []
    for row in range(len(rows)):
        with naming_file(f"Row {row} of column `{name}`", *DAMAGE):
            image = images[row][name]
            if image is None:
                raise ValueError("There is no image.")
            pictures.append(pixels_of(image, size=size, mode=mode))
    channels = 1 if mode == "L" else 3
    stacked = np.stack(pictures) if pictures else np.empty((0, channels, *size), dtype=np.float32)
    return torch.from_numpy(normalised(stacked, mean, std))
