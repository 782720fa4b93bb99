"""Labels of any kind, turned into consecutive numbers."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Indices: TypeAlias = npt.NDArray[np.int64]
Labels: TypeAlias = Sequence[Hashable] | npt.NDArray[Any] | Tensor


def encode_labels(labels: Labels) -> tuple[Indices, tuple[Hashable, ...]]:
    """Number the distinct labels in increasing order.

    Rows of a two-dimensional array are labels of their own, ordered by their first entry, then by
    the second and so on. Labels that cannot be compared are ordered by type and text. Numbers are
    the same label if they are equal, whatever their type, however large.

    :param labels: ``[n]`` or ``[n, m]``: an array, a tensor or a sequence of hashable values.
    :return: The code of every sample ``[n]``, int64, and the distinct labels in the order of their
        codes.
    :raises ValueError: If there is no label, a label is NaN or cannot be hashed, or the shape is
        another.
    """
    if isinstance(labels, Tensor):
        labels = labels.detach().cpu()
        # NumPy has no bfloat16; every one of its values is a float32
        labels = (labels.float() if labels.dtype == torch.bfloat16 else labels).numpy()
    if not isinstance(labels, np.ndarray) or labels.dtype == object:
        values = [_hashable(value) for value in labels]
        numbers = _as_one_type(values)
        if numbers is None:
            return _encode_objects(values)
        labels = numbers
    if labels.ndim not in (1, 2) or len(labels) == 0:
        raise ValueError(
            f"`labels` must be [n] or [n, m] with at least one sample. Got shape {labels.shape}."
        )
    if labels.dtype.kind in "fcmM":  # NaN, and NaT of dates and durations
        lacking = np.isnat(labels) if labels.dtype.kind in "mM" else np.isnan(labels)
        if lacking.any():
            raise _nan_error(int(np.argwhere(lacking)[0, 0]))
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
    if isinstance(value, np.number):  # Python compares numbers of different types exactly
        value = value.item()
    return tuple(map(_hashable, value)) if isinstance(value, list) else value


def _as_one_type(values: Sequence[Any]) -> npt.NDArray[Any] | None:
    """The values as an array if they are all integers or all floats, which keeps them exact."""
    # NumPy would turn [1, "1"] into equal strings, and [2**53 + 1, 0.5] into floats
    for kind, letters in ((int, "biu"), (float, "f")):
        if all(isinstance(value, kind) for value in values):
            array = np.asarray(values)
            # integers that fit into no type of NumPy's become floats or objects
            return array if array.dtype.kind in letters or not values else None
    return None


def _encode_objects(values: Sequence[Hashable]) -> tuple[Indices, tuple[Hashable, ...]]:
    for position, value in enumerate(values):
        if _lacks_value(value):
            raise _nan_error(position)
        try:
            hash(value)
        except TypeError:
            raise ValueError(
                f"Labels must be hashable, such as numbers, text and tuples of them. The label of "
                f"sample {position} is a {type(value).__name__}."
            ) from None
    # in order of appearance: sets of text have another order in every process
    distinct: list[Any] = list(dict.fromkeys(values))
    try:
        # the order of sets is one of inclusion, by which nothing can be sorted
        comparable = not any(isinstance(value, frozenset) for value in distinct)
        classes = tuple(sorted(distinct, key=None if comparable else _type_and_text))
    except TypeError:
        classes = tuple(sorted(distinct, key=_type_and_text))
    code = {value: number for number, value in enumerate(classes)}
    return np.array([code[value] for value in values], dtype=np.int64), classes


def _lacks_value(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(map(_lacks_value, value))
    same = value == value  # only NaN and its kind differ from themselves, or do not know
    return not isinstance(same, bool | np.bool_) or not same


def _type_and_text(value: Any) -> tuple[str, str]:
    members = sorted(map(repr, value)) if isinstance(value, frozenset) else value
    return type(value).__name__, repr(members)


def _nan_error(position: int) -> ValueError:
    return ValueError(f"Every sample needs a label. The label of sample {position} is NaN.")
