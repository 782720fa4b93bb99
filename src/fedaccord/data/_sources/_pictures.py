"""What the picture datasets share: their ``.npz`` form and the way to model inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ...errors import DataFileError
from .._arrays import ArrayData
from .._dataset import Dataset
from .._formats import Arrays, Member, read_npz
from .._info import DatasetInfo
from ._source import Form, require_codes, require_rows

SPLITS = ("train", "test")


def scaled(pixels: npt.NDArray[np.uint8], mean: Sequence[float], std: Sequence[float]) -> Tensor:
    """Turn pixels into inputs: ``(value / 255 - mean) / std``, channels first.

    :param pixels: ``[n, side, side]`` or ``[n, side, side, channels]``.
    :param mean: Of each channel.
    :param std: Of each channel.
    :return: Float32 ``[n, channels, side, side]``.
    """
    values = torch.tensor(pixels).reshape(*pixels.shape[:3], -1).permute(0, 3, 1, 2)
    inputs = values.to(torch.float32, memory_format=torch.contiguous_format)
    shift, scale = (torch.tensor(v, dtype=torch.float32)[:, None, None] for v in (mean, std))
    return inputs.div_(255).sub_(shift).div_(scale)


def of_split(labels: str, split: str) -> str:
    """The array of one split's labels: ``y_train`` of ``y``, ``y_train_coarse`` of ``y_coarse``."""
    return labels.replace("y", f"y_{split}", 1)


def pictures(
    info: DatasetInfo,
    arrays: Arrays,
    record: Mapping[str, Any],
    *,
    mean: Sequence[float],
    std: Sequence[float],
    class_names: Sequence[str],
    labels: str = "y",
) -> Dataset:
    """Make a dataset of pictures with one label each.

    :param arrays: ``x_train``, ``x_test`` uint8 and the labels of both.
    :param mean: Of each channel of the published training pictures, in ``[0, 1]``.
    :param std: Likewise.
    :param labels: Which labels, ``y`` or ``y_coarse``.
    :raises DataFileError: If the labels are missing, not as many as pictures, or name no class.
    """
    parts = {}
    for split in SPLITS:
        names = (f"x_{split}", label := of_split(labels, split))
        if label not in arrays:
            raise DataFileError(f"`{record['files'][0]}` must hold `{label}`, which is missing.")
        require_rows(arrays, names, f"`{info.name}`")
        require_codes(arrays, label, len(class_names))
        targets = torch.tensor(arrays[label].astype(np.int64))
        parts[split] = ArrayData((scaled(arrays[names[0]], mean, std), targets))
    return Dataset(
        name=info.name,
        title=info.title,
        description=info.description,
        train=parts["train"],
        test=parts["test"],
        tasks=info.tasks,
        class_names=(tuple(class_names),),
        licence=info.licence,
        citation=info.citation,
        metadata={**record, "mean": list(mean), "std": list(std)},
    )


def npz_form(name: str, shape: tuple[int, ...], *, optional: Sequence[str] = ()) -> Form:
    """The form that ``scripts/prepare_data.py`` writes and that many tutorials use.

    :param name: The file is called ``<name>.npz``.
    :param shape: Shape of one picture.
    :param optional: More arrays of labels that it may hold.
    """
    members = {}
    for split in SPLITS:
        members[f"x_{split}"] = Member("u", (None, *shape))
        members[f"y_{split}"] = Member("iu", (None,))
    members |= {key: Member("iu", (None,), optional=True) for key in optional}
    sizes = ", ".join(map(str, ("n", *shape)))

    def read(paths: tuple[Path, ...]) -> Arrays:
        return read_npz(paths[0], members)

    about = f"`{name}.npz` with `x_train` [{sizes}] of uint8, `y_train` [n], `x_test`, `y_test`"
    return Form(about, ((f"{name}.npz",),), read)
