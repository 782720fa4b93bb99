"""Clients' data held in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ._labels import Indices
from ._partition import Partition

Array: TypeAlias = npt.NDArray[Any] | Tensor | Sequence[Any]


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
            _require_rows(self.rows, lengths[0])

    @classmethod
    def of(cls, *arrays: Array, dtype: torch.dtype = torch.float32) -> ArrayData:
        """Take arrays, tensors or nested lists: inputs first, then targets.

        Floating-point values become ``dtype``; integers and booleans become int64, as embeddings
        and class labels need. Tensors that have the right type already are shared, not copied.

        :param arrays: Each ``[n, ...]``, ``n`` equal.
        :param dtype: The model's floating-point type.
        :raises ValueError: If lengths differ, values are not numbers, a value is NaN or infinite,
            or the inputs are unscaled ``uint8``.
        """
        if not arrays:
            raise ValueError("At least one array is needed, the inputs.")
        names = ["inputs", "targets", *(f"array {position}" for position in range(2, len(arrays)))]
        converted = [_as_tensor(a, name, dtype) for a, name in zip(arrays, names, strict=False)]
        return cls(tuple(converted))

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
        rows = _as_rows(index)
        _require_rows(rows, len(self))
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
) -> tuple[ArrayData, ...]:
    """Make one client per part, so that ``Federation(model, losses, clients)`` is one line.

    :param x: Inputs ``[n, ...]``; floating-point values become ``dtype``, integers int64.
    :param y: Targets ``[n]`` or ``[n, m]``, likewise.
    :param parts: The indices of each client, each in ``[0, n)``; a client may have none.
    :param dtype: The model's floating-point type.
    :raises ValueError: As ``ArrayData.of`` and ``ArrayData.subset``, naming the client; also if the
        partition is of another number of samples.
    """
    whole = ArrayData.of(x, y, dtype=dtype)
    if isinstance(parts, Partition) and parts.num_samples != len(whole):
        raise ValueError(
            f"`parts` splits {parts.num_samples} samples, but the arrays have {len(whole)}."
        )
    clients = []
    for client, part in enumerate(parts):
        try:
            clients.append(whole.subset(part))
        except ValueError as error:
            raise ValueError(f"Client {client}: {error}") from error
    return tuple(clients)


def _as_tensor(array: Array, name: str, dtype: torch.dtype) -> Tensor:
    if isinstance(array, Tensor):
        tensor = array.detach()
    else:
        values = np.asarray(array)
        if values.dtype.kind not in "fiub":
            raise ValueError(
                f"The {name} must be numbers. Got dtype {values.dtype}. "
                "Encode names with `numpy.unique(values, return_inverse=True)`."
            )
        # torch neither knows NumPy's wide unsigned types nor other byte orders
        kept = values.dtype.kind == "f" or values.dtype == np.uint8
        tensor = torch.tensor(values.astype(values.dtype.newbyteorder("=") if kept else np.int64))
    if tensor.dtype == torch.uint8 and name == "inputs":
        raise ValueError(
            "The inputs are `uint8`, which no layer takes. Scale pixels first: "
            "`x.astype('float32') / 255`; token numbers need `int64`."
        )
    if not tensor.is_floating_point():
        return tensor.to(torch.int64)
    if not (finite := torch.isfinite(tensor)).all():
        row = int((~finite).nonzero()[0, 0])
        raise ValueError(f"The {name} must be finite. Row {row} holds NaN or infinity.")
    return tensor.to(dtype)


def _as_rows(index: Indices | Tensor | Sequence[int]) -> Tensor:
    rows = index.detach() if isinstance(index, Tensor) else torch.tensor(np.array(index))
    if rows.numel() == 0:
        return rows.reshape(-1).to(torch.int64)
    if rows.is_floating_point() or rows.dtype == torch.bool:
        raise ValueError(
            f"Indices must be integers. Got {rows.dtype}. Use `numpy.flatnonzero` on a mask."
        )
    return rows.to(torch.int64)


def _require_rows(rows: Tensor, length: int) -> None:
    if rows.ndim != 1:
        raise ValueError(f"Indices must be one-dimensional. Got shape {tuple(rows.shape)}.")
    if rows.numel() and not (rows.min() >= 0 and rows.max() < length):
        raise ValueError(
            f"Indices must be in [0, {length}). Got {int(rows.min())} to {int(rows.max())}."
        )
