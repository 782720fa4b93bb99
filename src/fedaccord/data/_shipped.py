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

from ..errors import FedAccordError, UnknownNameError
from ._arrays import ArrayData
from ._dataset import Dataset
from ._heart import heart_inputs

_Arrays = Mapping[str, npt.NDArray[Any]]


def list_datasets() -> tuple[str, ...]:
    """Return the names of the datasets inside the package, in alphabetical order."""
    names = (file.name for file in _inside().iterdir())
    return tuple(sorted(name.removesuffix(".json") for name in names if name.endswith(".json")))


def load(name: str, data_dir: Path | str | None = None) -> Dataset:
    """Read a dataset.

    :param name: One of ``list_datasets()``.
    :param data_dir: Folder with ``<name>.npz`` and ``<name>.json``, as ``scripts/build_data.py``
        writes them; by default those inside the package.
    :raises UnknownNameError: If there is no such dataset; the message names the nearest.
    :raises FedAccordError: If a file is missing or damaged.
    """
    if name not in list_datasets():
        raise UnknownNameError.among("dataset", name, list_datasets())
    folder = _inside() if data_dir is None else Path(data_dir)
    record, content = (_read(folder, f"{name}.{kind}") for kind in ("json", "npz"))
    metadata = json.loads(record)
    if hashlib.sha256(content).hexdigest() != metadata["sha256"]:
        raise FedAccordError(
            f"`{name}.npz` is damaged: its SHA-256 differs from the one in `{name}.json`. "
            "Install the package again, or build the files again."
        )
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        arrays = {key: file[key] for key in file.files}
    return _hospitals(arrays, metadata) if "hospital" in arrays else _images(arrays, metadata)


def _inside() -> Traversable:
    return resources.files(__package__) / "files"


def _read(folder: Traversable | Path, name: str) -> bytes:
    try:
        return (folder / name).read_bytes()
    except FileNotFoundError as error:
        raise FedAccordError(
            f"`{folder}` must hold `{name}`, which is missing. "
            "Build it with `scripts/build_data.py`, or leave `data_dir` out."
        ) from error


def _images(arrays: _Arrays, metadata: Mapping[str, Any]) -> Dataset:
    def part(split: str) -> ArrayData:
        pixels = torch.tensor(arrays[f"x_{split}"]).unsqueeze(1).to(torch.float32)
        inputs = pixels.div_(255).sub_(metadata["mean"]).div_(metadata["std"])
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
