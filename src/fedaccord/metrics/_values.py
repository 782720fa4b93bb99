"""One number per client, read strictly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from torch import Tensor

Values: TypeAlias = Sequence[float] | npt.NDArray[Any] | Tensor
Vector: TypeAlias = npt.NDArray[np.float64]


def as_vector(values: Values, name: str, *, missing: bool = False) -> Vector:
    """Return the values as float64 ``[n]``.

    :param values: One per client, task or seed.
    :param name: What errors call them.
    :param missing: Whether NaN, which stands for a missing value, is let through.
    :raises ValueError: If there is none, they are not one-dimensional, or one is NaN.
    """
    array = values.detach().cpu().numpy() if isinstance(values, Tensor) else values
    vector = np.asarray(array, dtype=np.float64)
    if vector.ndim != 1 or len(vector) == 0:
        raise ValueError(f"`{name}` must be [n] with n at least 1. Got shape {vector.shape}.")
    if not missing and np.isnan(vector).any():
        where = int(np.flatnonzero(np.isnan(vector))[0])
        raise ValueError(f"`{name}` must not hold NaN. Entry {where} is NaN.")
    return vector


def as_finite(values: Values, name: str) -> Vector:
    """Return the values as float64 ``[n]``, all of them finite.

    :raises ValueError: As :func:`as_vector`, and if a value is infinite.
    """
    vector = as_vector(values, name)
    if np.isinf(vector).any():
        where = int(np.flatnonzero(np.isinf(vector))[0])
        raise ValueError(f"`{name}` must be finite. Entry {where} is {vector[where]}.")
    return vector


def as_decimal(fraction: float) -> float:
    """Return a fraction as the decimal number it is written as.

    A NumPy scalar prints as the decimal of its own precision: 0.1 in 32 bits is 0.1, where its
    conversion is 0.10000000149011612.

    :param fraction: In ``(0, 1]``.
    :raises ValueError: If it is out of range.
    """
    if not 0 < fraction <= 1:
        raise ValueError(f"`fraction` must be in (0, 1]. Got {fraction}.")
    return float(str(fraction)) if isinstance(fraction, np.generic) else float(fraction)


def count_of(fraction: float, size: int) -> int:
    r"""Return :math:`\lceil f n \rceil` for a fraction read as the decimal it is written as.

    :param fraction: In ``(0, 1]``.
    :param size: The number ``n``.
    :raises ValueError: If ``fraction`` is out of range.
    """
    # binary floats round up too far: 0.07 * 100 is 7.000000000000001
    return math.ceil(Fraction(str(as_decimal(fraction))) * size)


def require_level(level: float) -> None:
    """Check a confidence level.

    :raises ValueError: If it is not in ``(0, 1)``.
    """
    if not 0 < level < 1:
        raise ValueError(f"`level` must be in (0, 1). Got {level}.")
