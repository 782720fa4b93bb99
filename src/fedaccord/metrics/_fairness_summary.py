"""How a quantity is distributed over clients, in one value that says what it is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ._fairness import (
    angle,
    best_fraction,
    coefficient_of_variation,
    entropy,
    jain_index,
    spread,
    worst_fraction,
)
from ._label import EACH_CLIENT, EACH_EXAMPLE, Label
from ._values import Values, Vector, as_decimal, as_vector


@dataclass(frozen=True)
class FairnessSummary:
    """How a quantity is distributed over clients.

    A measure that these values do not have is ``None`` and named in ``undefined``: Jain's index,
    entropy and the coefficient of variation of negative values, and those and spread, angle and
    quantiles of infinite ones.

    :param label: What it is about.
    :param num_clients: Number of clients with a value.
    :param num_missing: Number of clients without, which are left out of everything below.
    :param mean: Mean over clients.
    :param worst: Mean over the worst ``fraction`` of them.
    :param fraction: Which fraction ``worst`` is about.
    :param spread: Population standard deviation.
    :param jain: Jain's index.
    :param angle: Angle to equal values in radians.
    :param higher_is_better: Whether the lowest values are the worst, or the highest.
    :param weighted_mean: Mean over clients in proportion to their numbers of examples, which is
        about ``weighted_label``; ``None`` if those were not given or are all zero.
    :param best: Mean over the best ``fraction`` of the clients.
    :param worst_fractions: Mean over the worst clients, by their fraction.
    :param minimum: Lowest value.
    :param maximum: Highest value.
    :param median: Median.
    :param quantiles: Values by their rank in ``[0, 1]``, linear between clients.
    :param variance: Population variance.
    :param variance_of_percentages: 10,000 times that, the unit in which papers after q-FFL print
        the variance of accuracies; ``None`` if lower is better.
    :param coefficient_of_variation: Spread divided by mean.
    :param entropy: Entropy of the clients' shares of the sum, in nats.
    :param undefined: Names of the measures that these values do not have.
    """

    label: Label
    num_clients: int
    num_missing: int
    mean: float
    worst: float
    fraction: float
    spread: float | None
    jain: float | None
    angle: float | None
    higher_is_better: bool
    weighted_mean: float | None
    best: float
    worst_fractions: Mapping[float, float]
    minimum: float
    maximum: float
    median: float
    quantiles: Mapping[float, float] | None
    variance: float | None
    variance_of_percentages: float | None
    coefficient_of_variation: float | None
    entropy: float | None
    undefined: tuple[str, ...]

    @property
    def weighted_label(self) -> Label:
        """What ``weighted_mean`` is about."""
        return replace(self.label, weighting=EACH_EXAMPLE)

    def __str__(self) -> str:
        missing = f", {self.num_missing} without a value left out" if self.num_missing else ""
        even = "".join(
            f", {name} {value:.4f}"
            for name, value in (("spread", self.spread), ("Jain", self.jain))
            if value is not None
        )
        return (
            f"mean {self.mean:.4f}, worst {100 * self.fraction:g} % {self.worst:.4f}{even} "
            f"({self.label}; {self.num_clients} clients{missing})"
        )


def fairness_summary(
    values: Values,
    *,
    model: str = "global",
    moment: str,
    population: str = "all clients",
    fraction: float = 0.1,
    higher_is_better: bool = True,
    num_examples: Values | None = None,
    fractions: Sequence[float] = (0.05, 0.1, 0.2, 0.3),
    quantiles: Sequence[float] = (0.1, 0.25, 0.5, 0.75, 0.9),
) -> FairnessSummary:
    """Summarise one value per client, each client counted once.

    :param values: ``[N]``, for example ``client_accuracies`` or a column of
        ``ClientScores.losses``; NaN means that a client has no value.
    :param model: Which model was measured.
    :param moment: When, for example ``"after 150 rounds"``.
    :param population: Which clients the values are of.
    :param fraction: How many count as worst off, and as best, in ``(0, 1]``.
    :param higher_is_better: ``True`` for accuracies, ``False`` for losses.
    :param num_examples: ``[N]``, weights of ``weighted_mean``.
    :param fractions: Further fractions of worst-off clients.
    :param quantiles: Ranks in ``[0, 1]``.
    :raises ValueError: If no client has a value, numbers of examples do not fit, or a fraction or
        rank is out of range.
    """
    array = as_vector(values, "values", missing=True)
    here = ~np.isnan(array)
    present = array[here]
    if len(present) == 0:
        raise ValueError(f"At least one client must have a value. Got none of {array.size}.")
    if not all(0 <= rank <= 1 for rank in quantiles):
        raise ValueError(f"`quantiles` must be ranks in [0, 1]. Got {tuple(quantiles)}.")
    finite = bool(np.isfinite(present).all())
    not_negative = finite and bool(present.min() >= 0)
    variance = float(present.var()) if finite else None
    measures = {
        "spread": spread(present) if finite else None,
        "jain": jain_index(present) if not_negative else None,
        "angle": angle(present) if finite else None,
        "variance": variance,
        "coefficient_of_variation": coefficient_of_variation(present) if not_negative else None,
        "entropy": entropy(present) if not_negative else None,
    }
    by_rank = (
        {float(rank): float(np.quantile(present, rank)) for rank in quantiles} if finite else None
    )
    absent = [name for name, value in {**measures, "quantiles": by_rank}.items() if value is None]
    percentages = None if variance is None or not higher_is_better else 10_000 * variance
    return FairnessSummary(
        label=Label(model, moment, population, EACH_CLIENT),
        num_clients=len(present),
        num_missing=array.size - len(present),
        mean=float(present.mean()),
        worst=worst_fraction(present, fraction, higher_is_better=higher_is_better),
        fraction=as_decimal(fraction),
        higher_is_better=higher_is_better,
        weighted_mean=_weighted_mean(present, num_examples, here),
        best=best_fraction(present, fraction, higher_is_better=higher_is_better),
        worst_fractions={
            as_decimal(each): worst_fraction(present, each, higher_is_better=higher_is_better)
            for each in fractions
        },
        minimum=float(present.min()),
        maximum=float(present.max()),
        median=float(np.median(present)),
        quantiles=by_rank,
        variance_of_percentages=percentages,
        undefined=tuple(absent),
        **measures,
    )


def _weighted_mean(
    present: Vector,
    num_examples: Values | None,
    here: np.ndarray[tuple[int, ...], np.dtype[np.bool_]],
) -> float | None:
    if num_examples is None:
        return None
    counts = as_vector(num_examples, "num_examples")
    if len(counts) != len(here) or counts.min() < 0:
        raise ValueError(
            f"`num_examples` must hold one number of at least 0 per client, {len(here)} of them. "
            f"Got {len(counts)}, the lowest {counts.min()}."
        )
    weights = counts[here]
    # a client of weight zero must not spoil the mean with an infinite value
    return (
        float(np.average(present[weights > 0], weights=weights[weights > 0]))
        if weights.any()
        else None
    )
