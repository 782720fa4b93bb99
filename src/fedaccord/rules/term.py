"""TERM: weights tilted towards high losses."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from ..cohort import Cohort
from ..layout import Spec
from ..linalg import combine
from ..rule import Aggregation, Claims, Diagnostic, Rule
from ._checks import check_server_lr
from ._diagnostics import by_client, cosines, outcome_of


@dataclass(frozen=True)
class TERMState:
    """What TERM remembers.

    :param estimate: Running mean of the tilts; used with ``legacy`` alone.
    """

    estimate: float = 0.0


@dataclass(frozen=True)
class TERM(Rule[TERMState]):
    r"""Clients weigh more the larger their loss, exponentially: a tilted mean of the losses.

    Weights are :math:`w_i \propto p_i e^{t F_i}`; the objective is :math:`\frac1t \log \sum_i p_i
    e^{t F_i}`.

    :param t: The tilt, finite. Above 0 clients with high losses weigh more, towards the largest
        loss alone; below 0 they weigh less; with 0 this is FedAvg.
    :param legacy: What the authors' federated trainer computes: the tilts over a running estimate
        of their mean, divided by the number of clients twice. ``t`` must then be positive.
    :param server_lr: Factor of the step, positive; the paper's algorithm is 1.
    """

    t: float
    legacy: bool = False
    server_lr: float = 1.0

    paper = "Li, Beirami, Sanjabi, Smith, ICLR 2021, tilted empirical risk of clients"
    claims = Claims(scale_equivariant=True)
    state_types = (TERMState,)

    def __post_init__(self) -> None:
        if not math.isfinite(self.t):
            raise ValueError(f"`t` must be finite. Got {self.t}.")
        if self.legacy and not self.t > 0:
            raise ValueError(
                f"`t` must be positive with `legacy`, whose tilts are shifted by the largest loss "
                f"and would overflow. Got {self.t}."
            )
        check_server_lr(self.server_lr)

    @property
    def needs(self) -> Mapping[str, tuple[str, ...]]:
        """The update, and the loss of the received model."""
        return {"train": ("update", "loss")}

    def init(self, spec: Spec) -> TERMState:
        """An estimate of zero."""
        return TERMState()

    def aggregate(self, state: TERMState, cohort: Cohort) -> Aggregation[TERMState]:
        """Tilt the weights, and average."""
        losses = cohort.losses.to(torch.float64)
        if self.legacy:
            tilts = (self.t * (losses - losses.max())).exp()
            state = TERMState(0.5 * state.estimate + 0.5 * float(tilts.mean()))
            weights = tilts / (state.estimate * len(cohort) ** 2)
        else:
            weights = tilted(cohort.shares, losses, self.t)
        step = self.server_lr * combine(cohort.updates, weights).to(cohort.updates.dtype)
        seen: dict[str, Diagnostic] = {
            "outcome": outcome_of(step),
            "weights": by_client(cohort, weights),
            "cosines": cosines(cohort, step),
        }
        return Aggregation(step, state, seen)


def tilted(shares: Tensor, losses: Tensor, t: float) -> Tensor:
    """Weights proportional to ``shares * exp(t * losses)``, in logarithms; float64 ``[n]``.

    :param shares: At least 0, sum 1, ``[n]``.
    :param losses: Any finite numbers, ``[n]``.
    :param t: Any finite number.
    """
    if t == 0:
        return shares
    # only among those that count: the largest tilt is then exactly 1
    counted = shares > 0
    largest = losses[counted].max() if t > 0 else losses[counted].min()
    tilts = torch.where(counted, shares * (t * (losses - largest)).exp(), 0.0)
    return tilts / tilts.sum()
