"""What several seeds say: an interval for one method, and two methods side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from ._values import Values, as_vector, require_level


@dataclass(frozen=True)
class Interval:
    """A mean over seeds and how well it is known.

    :param mean: Mean.
    :param std: Sample standard deviation, divisor ``n - 1``; ``None`` for a single value.
    :param low: Lower end of Student's t interval for the mean; ``None`` for a single value.
    :param high: Upper end.
    :param level: Probability that such an interval holds the true mean, for normal values.
    :param n: Number of values.
    :param num_missing: Number of seeds without a value, which are left out.
    """

    mean: float
    std: float | None
    low: float | None
    high: float | None
    level: float
    n: int
    num_missing: int

    def __str__(self) -> str:
        missing = f", {self.num_missing} without a value left out" if self.num_missing else ""
        if self.std is None:
            return f"{self.mean:.4f} (one value, no interval{missing})"
        return (
            f"{self.mean:.4f}, {100 * self.level:g} % interval {self.low:.4f} to {self.high:.4f} "
            f"(std {self.std:.4f}, {self.n} values{missing})"
        )


@dataclass(frozen=True)
class PairedComparison:
    """Two methods over the same seeds.

    :param difference: First minus second, over the seeds.
    :param wins: Number of seeds on which the first is better.
    :param losses: Number on which the second is better.
    :param ties: Number on which they are equal.
    """

    difference: Interval
    wins: int
    losses: int
    ties: int


def interval(values: Values, *, level: float = 0.95) -> Interval:
    r"""Return the mean over seeds with Student's t interval :math:`\bar a \pm t\, s / \sqrt n`.

    :param values: ``[n]``, one per seed; NaN for a seed without a value.
    :param level: In ``(0, 1)``.
    :raises ValueError: If there is no value, one is infinite, or ``level`` is out of range.
    """
    require_level(level)
    array = as_vector(values, "values", missing=True)
    present = array[~np.isnan(array)]
    missing = len(array) - len(present)
    if len(present) == 0:
        raise ValueError(f"At least one seed must have a value. Got none of {len(array)}.")
    if np.isinf(present).any():
        raise ValueError("`values` must be finite. One is infinite; NaN marks a missing value.")
    mean, n = float(present.mean()), len(present)
    if n == 1:
        return Interval(mean, None, None, None, level, n, missing)
    std = float(present.std(ddof=1))
    half = float(stdtrit(n - 1, (1 + level) / 2)) * std / math.sqrt(n)
    return Interval(mean, std, mean - half, mean + half, level, n, missing)


def paired_comparison(
    first: Mapping[int, float],
    second: Mapping[int, float],
    *,
    higher_is_better: bool = True,
    level: float = 0.95,
) -> PairedComparison:
    """Compare two methods on the same seeds, so that what a seed makes hard for both cancels.

    :param first: One value per seed, by seed; NaN for a seed without a value.
    :param second: Those of the other method, of the same seeds.
    :param higher_is_better: Whether the higher value wins.
    :param level: Of the interval for the mean difference, in ``(0, 1)``.
    :raises ValueError: If the seeds differ, no seed has both values, or a value is infinite.
    """
    if first.keys() != second.keys():
        only = sorted(first.keys() ^ second.keys())
        raise ValueError(f"Both methods must have the same seeds. Only one has {only}.")
    differences = np.array([first[seed] - second[seed] for seed in sorted(first)])
    up, down = int((differences > 0).sum()), int((differences < 0).sum())
    return PairedComparison(
        difference=interval(differences, level=level),
        wins=up if higher_is_better else down,
        losses=down if higher_is_better else up,
        ties=int((differences == 0).sum()),
    )
