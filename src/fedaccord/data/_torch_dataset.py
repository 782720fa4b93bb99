"""Clients from a PyTorch dataset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, overload

import torch
from torch import Tensor

from ..clients import Batch
from ..clients.randomness import SeededOperations, forbid_global_draws
from ..errors import UncontrolledRandomnessError
from ._arrays import ArrayData, as_rows, clients_from_samples, require_rows
from ._labels import Indices
from ._partition import Partition

Parts = Partition | Sequence[Indices | Tensor | Sequence[int]]


class MapDataset(Protocol):
    """What ``torch.utils.data.Dataset`` and lists of pairs have in common."""

    def __len__(self) -> int:
        """Number of samples."""
        ...

    def __getitem__(self, index: int, /) -> Any:
        """A tuple: inputs, target and whatever else a batch holds."""
        ...


@dataclass(frozen=True, eq=False)
class LazyData:
    """Samples of a PyTorch dataset, fetched whenever a batch asks for them.

    :param dataset: Where they come from.
    :param rows: Which, int64 ``[k]``.
    :param dtype: The model's floating-point type.
    """

    dataset: MapDataset
    rows: Tensor
    dtype: torch.dtype = torch.float32

    def __len__(self) -> int:
        return len(self.rows)

    def batch(self, index: Tensor) -> Batch:
        """Fetch the samples at ``index``, int64 ``[b]``, as one tensor ``[b, ...]`` per entry.

        :raises ValueError: As ``ArrayData.of``, if the samples are not alike, or are no tuples.
        """
        rows = self.rows[index].tolist()
        if not rows:  # what a sample looks like, and none of it
            return tuple(part[:0] for part in _stacked(self.dataset, [0], self.dtype))
        return _stacked(self.dataset, rows, self.dtype)

    @property
    def inputs(self) -> Tensor:
        """The inputs of these rows, ``[k, ...]``, fetched now."""
        return self.batch(torch.arange(len(self)))[0]

    @property
    def targets(self) -> Tensor:
        """The targets of these rows, ``[k, ...]``, fetched now; the second entry."""
        return self.batch(torch.arange(len(self)))[1]

    def subset(self, index: Indices | Tensor | Sequence[int]) -> LazyData:
        """Take the samples at ``index`` as data of their own.

        :param index: Integers ``[k]`` in ``[0, len(self))``; may be empty or repeat.
        :raises ValueError: If they are not integers or out of range.
        """
        rows = as_rows(index)
        require_rows(rows, len(self))
        return LazyData(self.dataset, self.rows[rows], self.dtype)


@overload
def clients_from_dataset(
    dataset: MapDataset,
    parts: Parts,
    *,
    materialise: Literal[True] = True,
    dtype: torch.dtype = torch.float32,
) -> tuple[ArrayData, ...]: ...
@overload
def clients_from_dataset(
    dataset: MapDataset,
    parts: Parts,
    *,
    materialise: Literal[False],
    dtype: torch.dtype = torch.float32,
) -> tuple[LazyData, ...]: ...
def clients_from_dataset(
    dataset: MapDataset,
    parts: Parts,
    *,
    materialise: bool = True,
    dtype: torch.dtype = torch.float32,
) -> tuple[ArrayData, ...] | tuple[LazyData, ...]:
    """Make one client per part of a map-style PyTorch dataset, such as those of torchvision.

    Random transforms need ``materialise=False``: each batch then draws afresh, from the run's seed,
    if they draw with PyTorch; draws from NumPy's or Python's global generators are refused when
    training starts. Evaluation draws from PyTorch's global generator, so test data should have no
    random transform.

    :param dataset: Has ``len`` and gives tuples of tensors, arrays or numbers: inputs, target.
    :param parts: The indices of each client, each in ``[0, len(dataset))``; a client may have none.
    :param materialise: Fetch every sample once, now, and keep them in memory; or whenever a batch
        needs it, in threads with the executor ``Threads``.
    :param dtype: The model's floating-point type.
    :raises TypeError: If the dataset has no ``len``, or gives anything but tuples.
    :raises ValueError: If samples are not alike or not numbers, or an index is out of range; the
        message names sample or client.
    :raises UncontrolledRandomnessError: If samples that are to be kept are drawn at random.
    """
    if not (hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__")):
        raise TypeError(
            f"`dataset` must have `len(dataset)` and `dataset[index]`. Got "
            f"{type(dataset).__name__}. Make a list of an iterable one first."
        )
    size = len(dataset)
    if isinstance(parts, Partition) and parts.num_samples != size:
        raise ValueError(f"`parts` splits {parts.num_samples} samples, but the dataset has {size}.")
    if size == 0:
        raise ValueError("`dataset` must have at least one sample.")
    if not materialise:
        with SeededOperations(torch.Generator()):  # a look should not move the global generator
            _fields(dataset, 0)
        return clients_from_samples(LazyData(dataset, torch.arange(size), dtype), parts)
    try:
        with forbid_global_draws():
            whole = ArrayData(_stacked(dataset, range(size), dtype))
    except UncontrolledRandomnessError as error:
        raise UncontrolledRandomnessError(
            "Samples that are kept must not be drawn at random, since no seed would give them "
            "again. The dataset draws, probably in a random transform. Pass `materialise=False` to "
            "draw in every batch from the run's seed, or leave the transform out."
        ) from error
    return clients_from_samples(whole, parts)


def _stacked(dataset: MapDataset, rows: Sequence[int], dtype: torch.dtype) -> Batch:
    samples = [_fields(dataset, row) for row in rows]
    shapes = [tuple(tuple(field.shape) for field in sample) for sample in samples]
    for row, shape in zip(rows, shapes, strict=True):
        if shape != shapes[0]:
            raise ValueError(
                f"All samples must have the same shapes. Sample {row} has {shape}, "
                f"sample {rows[0]} {shapes[0]}. A transform can bring them to one size."
            )
    return ArrayData.of(
        *(torch.stack(column) for column in zip(*samples, strict=True)), dtype=dtype
    ).tensors


def _fields(dataset: MapDataset, row: int) -> list[Tensor]:
    sample = dataset[row]
    if not isinstance(sample, tuple | list):
        raise TypeError(
            f"`dataset[index]` must give a tuple: inputs, target. Sample {row} is a "
            f"`{type(sample).__name__}`. Wrap the dataset in one that gives `(inputs, target)`."
        )
    fields = []
    for place, field in enumerate(sample):
        try:
            fields.append(torch.as_tensor(field))
        except (TypeError, ValueError, RuntimeError) as error:
            raise ValueError(
                f"Entry {place} of sample {row} must be a tensor or numbers. Got a "
                f"`{type(field).__name__}`. Images need a transform such as `ToTensor()`; text "
                f"labels need numbers, see `encode_classes`."
            ) from error
    return fields
