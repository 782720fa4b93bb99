"""Targets that are classes: from whatever people write to the numbers that a loss reads."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ._convert import Array, as_array
from ._labels import Indices, encode_labels

_SHOWN = 10


def encode_classes(
    y: Array, *, class_names: Sequence[str] | None = None
) -> tuple[Indices, tuple[str, ...]]:
    """Number the classes ``0, 1, ...`` as losses need them, and keep their names.

    Numbers are put in increasing order, text in alphabetical order; ``False`` comes before
    ``True``. A column ``[n, 1]`` is read as ``[n]``, and ``1.0`` and ``1`` are the same class.

    :param y: Labels ``[n]`` or ``[n, 1]``: text, integers, booleans or whole floating-point
        numbers, such as -1 and 1.
    :param class_names: The classes in the order of their numbers, as an earlier call gave them, so
        that test data get the same numbers; found in ``y`` if not given.
    :return: The number of every sample's class, int64 ``[n]``, and the names of the classes.
    :raises ValueError: If a label is missing, no whole number, or not in ``class_names``, if there
        is no label to find classes in, or ``y`` has another shape; the message names the row.
    """
    values = _column(as_array(y, "labels"))
    if len(values) == 0:
        if class_names is None:
            raise ValueError("`y` must hold at least one label, or `class_names` be given.")
        return np.empty(0, dtype=np.int64), tuple(class_names)
    if values.dtype.kind == "f":
        values = _whole(values)
    if values.dtype.kind in "mM":
        raise ValueError(f"Labels must be text or whole numbers. Got dtype {values.dtype}.")
    plain = values.tolist()
    if values.dtype == object:
        plain = [_plain(value, row) for row, value in enumerate(plain)]
    codes, distinct = encode_labels(plain if values.dtype == object else values)
    found = tuple(str(name) for name in distinct)
    if len(set(found)) < len(found):
        twice = next(name for name in found if found.count(name) > 1)
        raise ValueError(
            f"Labels must be of one kind. Class {twice!r} occurs as text and as a number. "
            "Convert one into the other."
        )
    if class_names is None:
        return codes, found
    known = {name: number for number, name in enumerate(class_names)}
    for code, name in enumerate(found):
        if name not in known:
            row = int(np.flatnonzero(codes == code)[0])
            raise ValueError(f"Row {row} has class {name!r}. {_known(name, tuple(known))}")
    return np.array([known[name] for name in found], dtype=np.int64)[codes], tuple(class_names)


def require_class_numbers(targets: Tensor, num_classes: int | Sequence[int]) -> None:
    """Check that a loss such as cross-entropy reads targets as what they mean.

    :param targets: ``[n]``, or ``[n, m]`` for ``m > 1`` tasks.
    :param num_classes: Number of classes, one for each task.
    :raises ValueError: If they are no integers in ``[0, num_classes)`` or have another shape; the
        message names the row.
    """
    counts = (num_classes,) if isinstance(num_classes, int) else tuple(num_classes)
    fix = "`codes, class_names = encode_classes(y)` makes them."
    if targets.is_floating_point():
        raise ValueError(f"Class numbers must be integers. Got {targets.dtype}. {fix}")
    wanted = (len(targets),) if len(counts) == 1 else (len(targets), len(counts))
    if tuple(targets.shape) != wanted:
        raise ValueError(
            f"Class numbers of {len(counts)} {'task' if len(counts) == 1 else 'tasks'} must have "
            f"shape {list(wanted)}. Got {list(targets.shape)}. {fix}"
        )
    columns = targets.reshape(len(targets), -1)
    wrong = (columns < 0) | (columns >= torch.tensor(counts))
    if wrong.any():
        row, task = (int(number) for number in wrong.nonzero()[0])
        raise ValueError(
            f"Class numbers must be in [0, {counts[task]}). "
            f"Row {row} holds {int(columns[row, task])}. {fix}"
        )


def _column(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if values.ndim == 2 and values.shape[1] == 1:
        return values[:, 0]
    if values.ndim == 1:
        return values
    one_hot = (
        values.ndim == 2
        and values.dtype.kind in "fiub"
        and bool(np.isin(values, (0, 1)).all() and (values.sum(1) == 1).all())
    )
    fix = (
        "Each row holds a single 1: use `y.argmax(1)`."
        if one_hot
        else "Encode the columns of several tasks one by one."
    )
    raise ValueError(f"Labels must be [n] or [n, 1]. Got shape {list(values.shape)}. {fix}")


def _whole(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    for bad, what in ((~np.isfinite(values), "missing"), (_no_class(values), "no class")):
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            raise ValueError(
                f"Labels must be whole numbers. That of row {row} is {what}: {values[row]:g}. "
                "Numbers to predict are values, not classes."
            )
    return values.astype(np.int64)


def _no_class(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    # above 2**53 neighbouring whole numbers are the same floating-point number
    unclear: npt.NDArray[np.bool_] = (values != np.floor(values)) | (np.abs(values) > 2**53)
    return unclear


def _plain(value: Any, row: int) -> str | int:
    if isinstance(value, str):
        return value
    if isinstance(value, bool | np.bool_ | int | np.integer):
        return value if isinstance(value, bool | int) else value.item()
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return int(value)
    raise ValueError(
        f"Labels must be text or whole numbers, and none be missing. "
        f"Row {row} holds {str(value)[:40]!r}, a `{type(value).__name__}`."
    )


def _known(name: str, known: tuple[str, ...]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"Did you mean {close[0]!r}? " if close else ""
    more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
    return f"{hint}Known: {', '.join(map(repr, known[:_SHOWN]))}{more}."
