"""How evenly a quantity is distributed over clients."""

from __future__ import annotations

import math

import numpy as np

from ._values import Values, Vector, as_finite, as_vector, count_of


def worst_fraction(
    values: Values, fraction: float = 0.1, *, higher_is_better: bool = True
) -> float:
    r"""Return the mean of the :math:`\lceil f n \rceil` worst values (W10% for ``f = 0.1``).

    :param values: ``[n]``, one per client.
    :param fraction: In ``(0, 1]``, read as the decimal number it is written as: 0.1 of 30 is 3.
    :param higher_is_better: Whether the lowest values are the worst, as for accuracies, or the
        highest, as for losses.
    :raises ValueError: If there is no value, one is NaN, or ``fraction`` is out of range.
    """
    ordered = np.sort(as_vector(values, "values"))
    count = count_of(fraction, len(ordered))
    return float((ordered[:count] if higher_is_better else ordered[-count:]).mean())


def best_fraction(values: Values, fraction: float = 0.1, *, higher_is_better: bool = True) -> float:
    r"""Return the mean of the :math:`\lceil f n \rceil` best values; see :func:`worst_fraction`."""
    return worst_fraction(values, fraction, higher_is_better=not higher_is_better)


def spread(values: Values) -> float:
    """Return the population standard deviation, divisor ``n``.

    :param values: ``[n]``, one per client.
    :raises ValueError: If there is no value, or one is NaN or infinite.
    """
    return float(as_finite(values, "values").std())


def coefficient_of_variation(values: Values) -> float:
    """Return the spread divided by the mean, 0 for values that are all zero.

    :param values: ``[n]``, one per client, not negative.
    :raises ValueError: If there is no value, or one is NaN, infinite or negative.
    """
    vector = _not_negative(values, "The coefficient of variation")
    if vector.max() == 0:
        return 0.0
    scaled = vector / vector.max()  # squares of very small values would underflow
    return float(scaled.std() / scaled.mean())


def jain_index(values: Values) -> float:
    r"""Return Jain's index :math:`(\sum a)^2 / (n \sum a^2)`, in ``[1/n, 1]``, 1 for equal values.

    All values zero are equal values: 1.

    :param values: ``[n]``, one per client, not negative.
    :raises ValueError: If there is no value, one is NaN, infinite or negative.
    """
    vector = _not_negative(values, "Jain's index")
    if vector.max() == 0:
        return 1.0
    scaled = vector / vector.max()  # squares of very small values would underflow
    return float(scaled.sum() ** 2 / (len(scaled) * (scaled**2).sum()))


def entropy(values: Values) -> float:
    r"""Return :math:`-\sum s \log s` of the shares :math:`s = a / \sum a`, in ``[0, log n]`` nats.

    Equal values have the largest entropy, :math:`\log n`, and values that are all zero are equal.
    Source: Li, Sanjabi, Beirami and Smith, "Fair Resource Allocation in Federated Learning", 2020,
    the appendix on other notions of uniformity.

    :param values: ``[n]``, one per client, not negative.
    :raises ValueError: If there is no value, or one is NaN, infinite or negative.
    """
    vector = _not_negative(values, "Entropy")
    if vector.max() == 0:
        return math.log(len(vector))
    scaled = vector / vector.max()  # sums of very large values would overflow
    shares = scaled / scaled.sum()
    shares = shares[shares > 0]  # no share contributes nothing, the limit of s log s
    return float(-(shares * np.log(shares)).sum())


def angle(values: Values) -> float:
    r"""Return the angle between the values and equal values, in radians, in :math:`[0, \pi]`.

    :math:`\arccos(\sum a / (\sqrt n \lVert a \rVert))`, computed from its tangent, spread by mean,
    which stays exact for nearly equal values. 0 for values that are all zero.

    :param values: ``[n]``, one per client.
    :raises ValueError: If there is no value, or one is NaN or infinite.
    """
    return math.atan2(spread(values), float(as_vector(values, "values").mean()))


def _not_negative(values: Values, measure: str) -> Vector:
    vector = as_vector(values, "values")
    if vector.min() < 0 or np.isinf(vector).any():
        raise ValueError(
            f"{measure} needs finite values that are not negative. "
            f"Got {vector.min()} to {vector.max()}."
        )
    return vector
