"""GIFAIR-FL: weights shifted from clients with low losses to clients with high ones, by rank."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from ..cohort import Cohort
from ..linalg import combine
from ..rule import Aggregation, Claims, Diagnostic, StatelessRule
from ._checks import check_server_lr
from ._diagnostics import by_client, cosines, outcome_of


@dataclass(frozen=True)
class GIFAIR(StatelessRule):
    r"""Individual fairness: clients weigh more the higher their loss ranks.

    Weights are :math:`w_i = p_i + c \lambda_\text{max} r_i`. With :math:`M` clients ordered by loss
    the ranks :math:`r` are :math:`-(M-1), -(M-3), \dots, M-1`, and :math:`\lambda_\text{max} =
    \min_i p_i / (M-1)` is what keeps weights at least 0.

    :param c: How much of what is possible, in ``[0, 1]``; with 0 this is FedAvg.
    :param server_lr: Factor of the step, positive; the paper's algorithm is 1.

    Deviations: equal losses share the mean of their ranks, so that nothing depends on ids. Clients
    without examples have no rank and weight 0.
    """

    c: float = 0.1
    server_lr: float = 1.0

    paper = "Yue, Nouiehed, Al Kontar, INFORMS Journal on Data Science 2023, GIFAIR-FL"
    claims = Claims(scale_equivariant=True)

    def __post_init__(self) -> None:
        if not 0 <= self.c <= 1:
            raise ValueError(f"`c` must be in [0, 1]. Got {self.c}.")
        check_server_lr(self.server_lr)

    @property
    def needs(self) -> Mapping[str, tuple[str, ...]]:
        """The update, and the loss of the received model."""
        return {"train": ("update", "loss")}

    def aggregate(self, state: None, cohort: Cohort) -> Aggregation[None]:
        """Shift weights by rank, and average."""
        shares = cohort.shares
        counted = shares > 0
        ranks = torch.zeros_like(shares)
        ranks[counted] = _ranks(cohort.losses[counted].to(torch.float64))
        possible = float(shares[counted].min()) / max(int(counted.sum()) - 1, 1)
        # with c = 1 the smallest weight is zero up to rounding
        weights = (shares + self.c * possible * ranks).clamp(min=0.0)
        step = self.server_lr * combine(cohort.updates, weights).to(cohort.updates.dtype)
        seen: dict[str, Diagnostic] = {
            "outcome": outcome_of(step),
            "weights": by_client(cohort, weights),
            "ranks": by_client(cohort, ranks),
            "cosines": cosines(cohort, step),
        }
        return Aggregation(step, None, seen)


def _ranks(losses: Tensor) -> Tensor:
    """How many losses are below each one, minus how many are above: float64 ``[n]``, sum 0."""
    differences = losses[:, None] - losses
    return differences.sign().sum(1)
