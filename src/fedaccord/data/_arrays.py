"""Clients' data held in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self, TypeVar

import numpy as np
import torch
from torch import Tensor

from ._classes import require_class_numbers
from ._convert import Array, as_tensor
from ._labels import Indices
from ._partition import Partition


class Divisible(Protocol):
    """Samples of which some can be given to a client."""

    def subset(self, index: Indices | Tensor | Sequence[int], /) -> Self:
        """The samples at ``index``."""
        ...


D = TypeVar("D", bound=Divisible)


@dataclass(frozen=True, eq=False)
class ArrayData:
    """Samples held as tensors; what a federation trains on and what is evaluated.

    A subset shares the tensors of the whole, so a hundred clients cost no copy of the data.

    :param tensors: Inputs, targets and whatever else a batch holds, each ``[n, ...]``, ``n`` equal.
    :param rows: Which rows belong to these data, int64 ``[k]``; ``None`` means all.
    :raises ValueError: If there is no tensor, the lengths differ, or a row is out of range.
    """

    tensors: tuple[Tensor, ...]
    rows: Tensor | None = None

    def __post_init__(self) -> None:
        if not self.tensors or any(tensor.ndim == 0 for tensor in self.tensors):
            raise ValueError(
                "`tensors` must hold at least one tensor, each with a first dimension."
            )
        lengths = [len(tensor) for tensor in self.tensors]
        if len(set(lengths)) > 1:
            raise ValueError(f"All tensors must have the same length. Got {lengths}.")
        if self.rows is not None:
            require_rows(self.rows, lengths[0])

    @classmethod
    def of(
        cls,
        *arrays: Array,
        dtype: torch.dtype = torch.float32,
        num_classes: int | Sequence[int] | None = None,
    ) -> ArrayData:
        """Take arrays, tensors or nested lists: inputs first, then targets.

        Floating-point values become ``dtype``; integers and booleans become int64, as embeddings
        and class labels need. Tensors that have the right type already are shared, not copied.

        :param arrays: Each ``[n, ...]``, ``n`` equal.
        :param dtype: The model's floating-point type.
        :param num_classes: Number of classes, one for each task, if the targets are classes: they
            are then checked to be what a loss such as ``cross_entropy`` reads. Targets of any other
            kind, such as -1 and 1 or text, go through ``encode_classes`` first.
        :raises ValueError: If lengths differ, values are not real numbers, a value is NaN, infinite
            or beyond the range of its type, the inputs are unscaled ``uint8``, or targets are no
            class numbers; the message names the row.
        """
        if not arrays:
            raise ValueError("At least one array is needed, the inputs.")
        names = ["inputs", "targets", *(f"array {position}" for position in range(2, len(arrays)))]
        converted = [as_tensor(a, name, dtype) for a, name in zip(arrays, names, strict=False)]
        if num_classes is not None:
            if len(converted) < 2:
                raise ValueError("`num_classes` is about targets, the second array. Got one array.")
            require_class_numbers(converted[1], num_classes)
        return cls(tuple(converted))

    def __repr__(self) -> str:
        parts = ", ".join(
            f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape[1:])}"
            for tensor in self.tensors
        )
        return f"ArrayData({len(self)} sample{'s' * (len(self) != 1)} of {parts})"

    def __len__(self) -> int:
        return len(self.tensors[0] if self.rows is None else self.rows)

    def batch(self, index: Tensor) -> tuple[Tensor, ...]:
        """Return the samples at ``index``, int64 ``[b]``, as one tensor ``[b, ...]`` per array."""
        rows = index if self.rows is None else self.rows.index_select(0, index)
        return tuple(tensor.index_select(0, rows) for tensor in self.tensors)

    def subset(self, index: Indices | Tensor | Sequence[int]) -> ArrayData:
        """Return the samples at ``index`` as data of their own; the tensors are shared.

        :param index: Integers ``[k]`` in ``[0, len(self))``; may be empty or repeat.
        :raises ValueError: If they are not integers or out of range.
        """
        rows = as_rows(index)
        require_rows(rows, len(self))
        return ArrayData(self.tensors, rows if self.rows is None else self.rows[rows])

    @property
    def inputs(self) -> Tensor:
        """The inputs of these rows, ``[k, ...]``."""
        return self._rows_of(self.tensors[0])

    @property
    def targets(self) -> Tensor:
        """The targets of these rows, ``[k, ...]``; the second array."""
        return self._rows_of(self.tensors[1])

    def _rows_of(self, tensor: Tensor) -> Tensor:
        return tensor if self.rows is None else tensor.index_select(0, self.rows)


def clients_from_arrays(
    x: Array,
    y: Array,
    parts: Partition | Sequence[Indices | Tensor | Sequence[int]],
    *,
    dtype: torch.dtype = torch.float32,
    num_classes: int | Sequence[int] | None = None,
) -> tuple[ArrayData, ...]:
    """Make one client per part, so that ``Federation(model, losses, clients)`` is one line.

    :param x: Inputs ``[n, ...]``; floating-point values become ``dtype``, integers int64.
    :param y: Targets ``[n]`` or ``[n, m]``, likewise.
    :param parts: The indices of each client, each in ``[0, n)``; a client may have none.
    :param dtype: The model's floating-point type.
    :param num_classes: Checks the targets, as in ``ArrayData.of``.
    :raises ValueError: As ``ArrayData.of`` and ``ArrayData.subset``, naming the client; also if the
        partition is of another number of samples.
    """
    whole = ArrayData.of(x, y, dtype=dtype, num_classes=num_classes)
    if isinstance(parts, Partition) and parts.num_samples != len(whole):
        raise ValueError(
            f"`parts` splits {parts.num_samples} samples, but the arrays have {len(whole)}."
        )
    return clients_from_samples(whole, parts)


def clients_from_samples(
    samples: D, parts: Sequence[Indices | Tensor | Sequence[int]]
) -> tuple[D, ...]:
    """Give each client its part.

    :raises ValueError: If an index does not fit; the message names the client.
    """
    clients = []
    for client, part in enumerate(parts):
        try:
            clients.append(samples.subset(part))
        except ValueError as error:
            raise ValueError(f"Client {client}: {error}") from error
    return tuple(clients)


def as_rows(index: Indices | Tensor | Sequence[int]) -> Tensor:
    """Turn indices into an int64 tensor.

    :raises ValueError: If they are no integers.
    """
    rows = index.detach() if isinstance(index, Tensor) else torch.tensor(np.array(index))
    if rows.numel() == 0:
        return rows.reshape(-1).to(torch.int64)
    if rows.is_floating_point() or rows.dtype == torch.bool:
        raise ValueError(
            f"Indices must be integers. Got {rows.dtype}. Use `numpy.flatnonzero` on a mask."
        )
    return rows.to(torch.int64)


def require_rows(rows: Tensor, length: int) -> None:
    """Check that indices ``[k]`` are in ``[0, length)``.

    :raises ValueError: If they are not.
    """
    if rows.ndim != 1:
        raise ValueError(f"Indices must be one-dimensional. Got shape {tuple(rows.shape)}.")
    if rows.numel() and not (rows.min() >= 0 and rows.max() < length):
        raise ValueError(
            f"Indices must be in [0, {length}). Got {int(rows.min())} to {int(rows.max())}."
        )
