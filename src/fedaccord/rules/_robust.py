"""Updates that are unlike the round's others: flagged by length and angle, and shortened on demand.

The flags are no verdict. A client with unusual data looks the same as a hostile one.
"""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from ..cohort import Cohort
from ..rule import Diagnostic
from ._diagnostics import by_client, chosen, update_lengths

# A length is flagged beyond this many robust standard deviations of the logarithms; the cutoff of
# Iglewicz and Hoaglin, "How to detect and handle outliers", 1993.
DEVIATIONS = 3.5
# Standard deviations of a normal sample in one median absolute deviation.
NORMAL = 1.4826
# Lengths within this factor of the median are never flagged, however alike the others are.
FACTOR = 3.0
# More than 120 degrees from where the others go.
OPPOSED = -0.5


def check_max_norm(max_norm: float | None) -> None:
    """Refuse a bound that would shorten the usual update.

    :raises ValueError: If it is not at least 1 and finite.
    """
    if max_norm is not None and not 1 <= max_norm < math.inf:
        raise ValueError(
            f"`max_norm` must be at least 1, in units of the round's median length, or None. Got "
            f"{max_norm}."
        )


def shorten(cohort: Cohort, max_norm: float | None) -> tuple[Cohort, Tensor]:
    """Shorten every update that is longer than ``max_norm`` median lengths to that length.

    :param max_norm: At least 1; ``None`` leaves everything as it is.
    :returns: The cohort, the same object if nothing is too long, and what each row was multiplied
        with, float64 ``[n]``.
    :raises NonFiniteError: If an update is too large to square.
    """
    factors = torch.ones(len(cohort), dtype=torch.float64)
    if max_norm is None:
        return cohort, factors
    lengths = update_lengths(cohort)
    longest = max_norm * _median(lengths)
    long = lengths > longest
    if not long.any():
        return cohort, factors
    factors[long] = longest / lengths[long]
    rows = cohort.updates * factors[:, None].to(cohort.updates)
    return replace(cohort, fields={**cohort.fields, "update": rows}), factors


def flags(cohort: Cohort, gram: Tensor, factors: Tensor) -> dict[str, Diagnostic]:
    """Which updates are unlike the others, and which were shortened.

    :param gram: Inner products of the updates, ``[n, n]``.
    :param factors: What :func:`shorten` multiplied them with.
    """
    lengths = gram.diagonal().sqrt() / factors
    cosines = cosines_to_rest(gram)
    return {
        "relative_lengths": by_client(cohort, lengths / _median(lengths)),
        "length_outliers": chosen(cohort, length_outliers(lengths)),
        "cosines_to_rest": by_client(cohort, cosines),
        "against_rest": chosen(cohort, cosines < OPPOSED),
        "shortened": chosen(cohort, factors < 1),
    }


def length_outliers(lengths: Tensor) -> Tensor:
    """Which lengths are far from the median: mask ``[n]``; never a zero.

    Far is more than ``DEVIATIONS`` robust standard deviations of the logarithms, and more than
    ``FACTOR`` either way.
    """
    distances = (lengths / _median(lengths)).log().abs()
    moving = lengths > 0
    spread = NORMAL * float(distances[moving].quantile(0.5)) if moving.any() else math.inf
    return moving & (distances > max(DEVIATIONS * spread, math.log(FACTOR)))


def cosines_to_rest(gram: Tensor) -> Tensor:
    """Cosine between each row and the sum of the other rows, all at unit length: ``[n]``.

    At unit length, so that one long row does not decide where the rest goes. NaN for a zero row,
    and where there is no rest or it cancels.
    """
    scale = torch.where(gram.diagonal() > 0, gram.diagonal().rsqrt(), 0.0)
    unit = gram * scale[:, None] * scale
    own, along = unit.diagonal(), unit.sum(1)
    # along - own is the product with the rest; the rest's squared length takes the row out twice
    squared = unit.sum() - 2 * along + own
    there = (own > 0) & (squared > 1e-12 * len(gram) ** 2)
    return torch.where(there, (along - own) / squared.abs().sqrt(), math.nan).clamp(-1.0, 1.0)


def _median(lengths: Tensor) -> float:
    """The median of the lengths that are not zero, by their logarithms; NaN if there is none."""
    logarithms = lengths[lengths > 0].log()
    return float(logarithms.quantile(0.5).exp()) if len(logarithms) else math.nan
