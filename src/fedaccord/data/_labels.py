"""Labels of any kind, turned into consecutive numbers."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from torch import Tensor

Indices: TypeAlias = npt.NDArray[np.int64]
Labels: TypeAlias = Sequence[Hashable] | npt.NDArray[Any] | Tensor


def encode_labels(labels: Labels) -> tuple[Indices, tuple[Hashable, ...]]:
    """Number the distinct labels in increasing order.

    Rows of a two-dimensional array are labels of their own, ordered by their first entry, then by
    the second and so on. Labels that cannot be compared are ordered by type and text.

    :param labels: ``[n]`` or ``[n, m]``: an array, a tensor or a sequence of hashable values.
    :return: The code of every sample ``[n]``, int64, and the distinct labels in the order of their
        codes.
    :raises ValueError: If there is no label, a label is NaN, or the shape is another.
    """
    if isinstance(labels, Tensor):
        labels = labels.detach().cpu().numpy()
    if not isinstance(labels, np.ndarray) or labels.dtype == object:
        values = [_hashable(value) for value in labels]
        # NumPy would turn [1, "1"] into equal strings, so only plain numbers go on to it
        if not all(isinstance(value, int | float | np.number) for value in values):
            return _encode_objects(values)
        labels = np.asarray(values)
    if labels.ndim not in (1, 2) or len(labels) == 0:
        raise ValueError(
            f"`labels` must be [n] or [n, m] with at least one sample. Got shape {labels.shape}."
        )
    if np.issubdtype(labels.dtype, np.inexact) and np.isnan(labels).any():
        raise _nan_error(int(np.argwhere(np.isnan(labels))[0, 0]))
    axis = 0 if labels.ndim == 2 else None
    distinct, codes = np.unique(labels, axis=axis, return_inverse=True)
    classes = (tuple(row) if isinstance(row, list) else row for row in distinct.tolist())
    return codes.reshape(-1).astype(np.int64), tuple(classes)


def indices_by_label(codes: Indices, num_labels: int) -> list[Indices]:
    """List the samples of each label in increasing order.

    :param codes: ``[n]`` in ``[0, num_labels)``.
    :param num_labels: Number of labels.
    """
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=num_labels))
    return [part.copy() for part in np.split(order, ends[:-1])]


def _hashable(value: Any) -> Any:
    if isinstance(value, Tensor | np.ndarray):  # tensors hash by identity, not by value
        value = value.tolist()
    return tuple(value) if isinstance(value, list) else value


def _encode_objects(values: Sequence[Hashable]) -> tuple[Indices, tuple[Hashable, ...]]:
    for position, value in enumerate(values):
        if value != value:  # only NaN differs from itself
            raise _nan_error(position)
    distinct: set[Any] = set(values)
    try:
        classes = tuple(sorted(distinct))
    except TypeError:
        classes = tuple(sorted(distinct, key=lambda value: (type(value).__name__, repr(value))))
    code = {value: number for number, value in enumerate(classes)}
    return np.array([code[value] for value in values], dtype=np.int64), classes


def _nan_error(position: int) -> ValueError:
    return ValueError(f"Every sample needs a label. The label of sample {position} is NaN.")
