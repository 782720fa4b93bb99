"""Clients whose arrays lie in NumPy's files."""

from __future__ import annotations

import io
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ..errors import DataFileError
from ._arrays import ArrayData
from ._classes import encode_classes
from ._convert import as_tensor
from ._files import naming_file
from ._own import OwnData, TargetKind, consecutive, split_off

Pair: TypeAlias = tuple[str, npt.NDArray[Any], npt.NDArray[Any]]
"""A client's name, its inputs ``[n, ...]`` and its targets ``[n]`` or ``[n, m]``."""

# what NumPy and `zipfile` raise for files that are damaged, encrypted or hold pickled objects
_DAMAGE = (
    *(ValueError, OSError, EOFError, SyntaxError, MemoryError, RuntimeError),
    *(zipfile.BadZipFile, zlib.error, struct.error, tokenize.TokenError),
)


def read_npz(files: Sequence[tuple[Path, str]]) -> list[Pair]:
    """Read ``x`` and ``y`` of each file.

    :param files: Path and name of each.
    :raises DataFileError: If a file is damaged, lacks an array or holds objects.
    """
    pairs = []
    for path, name in files:
        with naming_file(name, *_DAMAGE), zipfile.ZipFile(path) as archive:
            found = [member.removesuffix(".npy") for member in archive.namelist()]
            if lacking := {"x", "y"} - set(found):
                raise DataFileError(
                    f"{name} must hold arrays `x` and `y`. It lacks {sorted(lacking)} and holds "
                    f"{sorted(found)[:10]}."
                )
            x, y = (_array(io.BytesIO(archive.read(f"{letter}.npy"))) for letter in "xy")
        pairs.append((str(Path(name).with_suffix("")), x, y))
    return pairs


def read_npy(files: Sequence[tuple[Path, str]]) -> list[Pair]:
    """Read the pairs ``<client>_x.npy`` and ``<client>_y.npy``.

    :param files: Path and name of each.
    :raises DataFileError: If a file is damaged, holds objects or has no partner.
    """
    stems = {str(Path(name).with_suffix("")): (path, name) for path, name in files}
    pairs = []
    for stem, (_, name) in stems.items():
        client, ending = stem[:-2], stem[-2:]
        partner = f"{client}{'_y' if ending == '_x' else '_x'}"
        if ending not in ("_x", "_y") or partner not in stems:
            raise DataFileError(
                f"{name} must be one of a pair `<client>_x.npy` and `<client>_y.npy`. "
                "The other is not there."
            )
        if ending == "_x":
            arrays = []
            for path, member in (stems[f"{client}_x"], stems[f"{client}_y"]):
                with naming_file(member, *_DAMAGE), path.open("rb") as file:
                    arrays.append(_array(file))
            pairs.append((client, arrays[0], arrays[1]))
    return pairs


def own_arrays(
    pairs: Sequence[Pair],
    kind: TargetKind,
    *,
    test_fraction: float,
    seed: int,
    dtype: torch.dtype,
) -> OwnData:
    """Make clients of arrays that belong together.

    :param pairs: Everybody's.
    :param kind: What the targets, one a sample, are.
    :param test_fraction: Share of each client's samples to test on.
    :param seed: Decides which.
    :param dtype: The model's floating-point type.
    :raises DataFileError: If arrays do not fit together; the message names the client.
    """
    inputs: list[Tensor] = []
    targets: list[npt.NDArray[Any]] = []
    for name, x, y in pairs:
        with naming_file(f"Client {name}", ValueError):
            if x.ndim == 0 or y.ndim == 0 or len(x) != len(y):
                raise ValueError(
                    f"`x` and `y` must have one row a sample. Got {x.shape} and {y.shape}."
                )
            if len(x) == 0:
                continue
            inputs.append(as_tensor(x, "inputs", dtype))
            targets.append(y)
            expected = inputs[0].shape[1:], targets[0].shape[1:]
            if (inputs[-1].shape[1:], y.shape[1:]) != expected:
                raise ValueError(
                    f"Samples must have the shapes of those before, {tuple(expected[0])} and "
                    f"{expected[1]}. Got {x.shape[1:]} and {y.shape[1:]}."
                )
    if not inputs:
        raise DataFileError("At least one client must have a sample. All are empty.")
    joined: npt.NDArray[Any] | Tensor = np.concatenate(targets)
    class_names: tuple[str, ...] = ()
    if kind == "classes":
        joined, class_names = encode_classes(joined)
    parts = consecutive([len(x) for _, x, _ in pairs], [name for name, _, _ in pairs])
    train, test = split_off(parts, test_fraction=test_fraction, seed=seed)
    return OwnData(
        samples=ArrayData.of(torch.cat(inputs), joined, dtype=dtype),
        parts=train,
        test_parts=test,
        tasks=("y",),
        class_names=(class_names,),
    )


def _array(file: IO[bytes]) -> npt.NDArray[Any]:
    array: npt.NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
    return array
