"""What many rules tell about a round: values by client id, cosines, lengths."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor

from ..cohort import Cohort
from ..errors import NonFiniteError
from ..linalg import gramian, norm

# squared lengths below the smallest normal number have lost digits: such updates count as zero
SMALLEST = torch.finfo(torch.float64).tiny


def by_client(cohort: Cohort, values: Tensor | Iterable[float]) -> dict[int, float]:
    """One number a client, by id."""
    numbers = values.tolist() if isinstance(values, Tensor) else list(values)
    return dict(zip(cohort.client_ids, map(float, numbers), strict=True))


def chosen(cohort: Cohort, mask: Tensor) -> tuple[int, ...]:
    """The ids at which a mask ``[n]`` is true."""
    return tuple(c for c, yes in zip(cohort.client_ids, mask.tolist(), strict=True) if yes)


def outcome_of(step: Tensor) -> str:
    """Whether a mean of updates moves the model; if not, they cancel or are all zero."""
    return "moved" if step.any() else "no-average"


def update_lengths(cohort: Cohort) -> Tensor:
    """Length of each update, float64 ``[n]``; 0 for one too small to have a direction.

    :raises NonFiniteError: If an update is too large to square.
    """
    squared = torch.tensor([norm(row) for row in cohort.updates], dtype=torch.float64).square()
    return checked_lengths(cohort, squared)


def checked_lengths(cohort: Cohort, squared: Tensor) -> Tensor:
    """Lengths from squared lengths, float64 ``[n]``; 0 for one too small to have a direction.

    :raises NonFiniteError: If a square overflowed.
    """
    if not torch.isfinite(squared).all():
        first = int(squared.isfinite().logical_not().nonzero()[0])
        raise NonFiniteError(
            f"Updates must be small enough to square. That of client {cohort.client_ids[first]} in "
            f"round {cohort.round} is not. Lower the learning rate."
        )
    return torch.where(squared >= SMALLEST, squared, 0.0).sqrt()


def cosines(cohort: Cohort, step: Tensor, *, lengths: Tensor | None = None) -> dict[int, float]:
    """Cosine between the step and each update, by client id; NaN where either is zero.

    :param step: ``[dim]``.
    :param lengths: What :func:`update_lengths` gives, if it is known.
    """
    lengths = update_lengths(cohort) if lengths is None else lengths
    largest = float(step.abs().max())
    if largest == 0:
        return by_client(cohort, [math.nan] * len(cohort))
    direction = step.to(torch.float64) / largest  # a short step has a direction too
    products = gramian(cohort.updates, direction[None])[:, 0]
    values = (products / (lengths * norm(direction))).clamp(-1.0, 1.0)
    return by_client(cohort, torch.where(lengths > 0, values, math.nan))
