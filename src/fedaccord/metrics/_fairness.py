"""How evenly a quantity is distributed over clients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from torch import Tensor

Values: TypeAlias = Sequence[float] | npt.NDArray[Any] | Tensor


def worst_fraction(values: Values, fraction: float = 0.1) -> float:
    r"""Return the mean of the :math:`\lceil f n \rceil` lowest values (W10% for ``f = 0.1``).

    :param values: ``[n]``, one per client, more is better.
    :param fraction: In ``(0, 1]``, read as the decimal number it is written as: 0.1 of 30 is 3.
    :raises ValueError: If there is no value, one is NaN, or ``fraction`` is out of range.
    """
    if not 0 < fraction <= 1:
        raise ValueError(f"`fraction` must be in (0, 1]. Got {fraction}.")
    lowest = np.sort(as_vector(values, "values"))
    # binary floats round up too far: 0.07 * 100 is 7.000000000000001
    count = math.ceil(Fraction(str(float(fraction))) * len(lowest))
    return float(lowest[:count].mean())


def spread(values: Values) -> float:
    """Return the population standard deviation, divisor ``n``.

    :param values: ``[n]``, one per client.
    :raises ValueError: If there is no value or one is NaN.
    """
    return float(as_vector(values, "values").std())


def jain_index(values: Values) -> float:
    r"""Return Jain's index :math:`(\sum a)^2 / (n \sum a^2)`, in ``[1/n, 1]``, 1 for equal values.

    All values zero are equal values: 1.

    :param values: ``[n]``, one per client, not negative.
    :raises ValueError: If there is no value, one is NaN, infinite or negative.
    """
    vector = as_vector(values, "values")
    if vector.min() < 0 or np.isinf(vector).any():
        raise ValueError(
            "Jain's index needs finite values that are not negative. "
            f"Got {vector.min()} to {vector.max()}."
        )
    if vector.max() == 0:
        return 1.0
    scaled = vector / vector.max()  # squares of very small values would underflow
    return float(scaled.sum() ** 2 / (len(scaled) * (scaled**2).sum()))


def angle(values: Values) -> float:
    r"""Return the angle between the values and equal values, in radians, in :math:`[0, \pi]`.

    :math:`\arccos(\sum a / (\sqrt n \lVert a \rVert))`, computed from its tangent, spread by mean,
    which stays exact for nearly equal values. 0 for values that are all zero.

    :param values: ``[n]``, one per client.
    :raises ValueError: If there is no value or one is NaN.
    """
    return math.atan2(spread(values), float(as_vector(values, "values").mean()))


def as_vector(values: Values, name: str) -> npt.NDArray[np.float64]:
    """Return the values as float64 ``[n]``.

    :raises ValueError: If there is none, one is NaN, or they are not one-dimensional.
    """
    array = values.detach().cpu().numpy() if isinstance(values, Tensor) else values
    vector = np.asarray(array, dtype=np.float64)
    if vector.ndim != 1 or len(vector) == 0:
        raise ValueError(f"`{name}` must be [n] with n at least 1. Got shape {vector.shape}.")
    if np.isnan(vector).any():
        where = int(np.flatnonzero(np.isnan(vector))[0])
        raise ValueError(f"`{name}` must not hold NaN. Entry {where} is NaN.")
    return vector
