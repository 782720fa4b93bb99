"""The small datasets inside the package."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ..errors import DataFileError
from ..models import Kind
from ._arrays import ArrayData
from ._dataset import Dataset
from ._heart import heart_inputs
from ._info import DatasetInfo
from ._sources._pictures import scaled

_Arrays = Mapping[str, npt.NDArray[Any]]


def shipped_datasets() -> dict[str, DatasetInfo]:
    """What is inside the package, by name, in alphabetical order."""
    names = (file.name for file in _inside().iterdir())
    known = sorted(name.removesuffix(".json") for name in names if name.endswith(".json"))
    return {name: _info(_record(_inside(), name)) for name in known}


def find_shipped(name: str) -> tuple[Path, ...]:
    """The dataset's two files, for a package that is installed as files."""
    return tuple(Path(str(_inside() / f"{name}.{kind}")) for kind in ("npz", "json"))


def load_shipped(name: str, folder: Path | None = None) -> Dataset:
    """Read a dataset of the package.

    :param name: One of ``shipped_datasets()``.
    :param folder: Where ``scripts/build_data.py`` wrote other files to read instead.
    :raises DataFileError: If a file is missing or damaged.
    """
    files = folder or _inside()
    metadata, content = _record(files, name), _read(files, f"{name}.npz")
    if hashlib.sha256(content).hexdigest() != metadata["sha256"]:
        raise DataFileError(
            f"`{name}.npz` is damaged: its SHA-256 differs from the one in `{name}.json`. "
            "Install the package again, or build the files again."
        )
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        arrays = {key: file[key] for key in file.files}
    return _hospitals(arrays, metadata) if "hospital" in arrays else _images(arrays, metadata)


def _inside() -> Traversable:
    return resources.files(__package__) / "files"


def _record(folder: Traversable | Path, name: str) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(_read(folder, f"{name}.json"))
    return record


def _read(folder: Traversable | Path, name: str) -> bytes:
    try:
        return (folder / name).read_bytes()
    except FileNotFoundError as error:
        raise DataFileError(
            f"`{folder}` must hold `{name}`, which is missing. "
            "Install the package again, or build the file with `scripts/build_data.py`."
        ) from error


def _info(record: Mapping[str, Any]) -> DatasetInfo:
    kind: Kind = "classes"
    return DatasetInfo(
        name=record["name"],
        title=record["title"],
        description=record["description"],
        tasks=tuple(record["tasks"]),
        kinds=(kind,) * len(record["tasks"]),
        num_train=record["samples"]["train"],
        num_test=record["samples"]["test"],
        num_clients=len(record["client_names"]) if "client_names" in record else None,
        licence=record["licence"],
        citation=tuple(record["citation"]),
        shipped=True,
    )


def _images(arrays: _Arrays, metadata: Mapping[str, Any]) -> Dataset:
    def part(split: str) -> ArrayData:
        inputs = scaled(arrays[f"x_{split}"], [metadata["mean"]], [metadata["std"]])
        return ArrayData((inputs, _int64(arrays[f"y_{split}"])))

    return Dataset(train=part("train"), test=part("test"), **_described(metadata))


def _hospitals(arrays: _Arrays, metadata: Mapping[str, Any]) -> Dataset:
    hospital, is_test = arrays["hospital"], arrays["is_test"]
    inputs = torch.tensor(heart_inputs(arrays["records"], hospital, ~is_test))
    targets, ids, held_out = _int64(arrays["disease"]), _int64(hospital), torch.tensor(is_test)
    return Dataset(
        train=ArrayData((inputs[~held_out], targets[~held_out])),
        test=ArrayData((inputs[held_out], targets[held_out])),
        client_ids=ids[~held_out],
        test_client_ids=ids[held_out],
        client_names=tuple(metadata["client_names"]),
        **_described(metadata),
    )


def _int64(array: npt.NDArray[Any]) -> Tensor:
    return torch.tensor(array.astype(np.int64))


def _described(metadata: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": metadata["name"],
        "title": metadata["title"],
        "description": metadata["description"],
        "tasks": tuple(metadata["tasks"]),
        "class_names": tuple(tuple(names) for names in metadata["class_names"]),
        "licence": metadata["licence"],
        "citation": tuple(metadata["citation"]),
        "metadata": metadata,
    }
