"""q-FedAvg: the higher a client's loss, the more it weighs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch

from ..cohort import Cohort
from ..linalg import combine
from ..rule import Aggregation, Claims, Diagnostic, StatelessRule
from ._checks import check_nonnegative_losses, check_server_lr
from ._diagnostics import by_client, chosen, cosines, update_lengths


@dataclass(frozen=True)
class QFedAvg(StatelessRule):
    r"""Clients weigh more the larger their loss, by its power q, and the step has its own length.

    The step is :math:`-\sum_i F_i^q g_i / \sum_i (q F_i^{q-1} \lVert g_i \rVert^2 + L F_i^q)` with
    the pseudo-gradients :math:`g_i` and :math:`L = 1 / \eta_\ell`. q-FedSGD is this rule with
    clients that make one full-batch step, so that :math:`g_i` is a gradient.

    :param q: How much high losses weigh, at least 0. With 0 the step is the plain mean.
    :param constant: Added to every loss, positive; it keeps :math:`F^{q-1}` finite for ``q < 1``.
    :param server_lr: Factor of the step, positive; the paper's algorithm is 1.
    """

    q: float
    constant: float = 1e-10
    server_lr: float = 1.0

    paper = "Li, Sanjabi, Beirami, Smith, ICLR 2020, Algorithms 1 and 2"

    def __post_init__(self) -> None:
        if not 0 <= self.q < math.inf:
            raise ValueError(f"`q` must be at least 0 and finite. Got {self.q}.")
        if not 0 < self.constant < math.inf:
            raise ValueError(f"`constant` must be positive and finite. Got {self.constant}.")
        check_server_lr(self.server_lr)

    @property
    def needs(self) -> Mapping[str, tuple[str, ...]]:
        """The update, the loss of the received model and the client learning rate."""
        return {"train": ("update", "loss", "client_lr")}

    @property
    def claims(self) -> Claims:
        """Only the plain mean scales with the updates."""
        return Claims(scale_equivariant=self.q == 0)

    def aggregate(self, state: None, cohort: Cohort) -> Aggregation[None]:
        """Divide the weighted updates by the estimated Lipschitz constant.

        :raises MalformedReplyError: If a loss is negative.
        :raises NonFiniteError: If an update is too large to square.
        """
        losses = cohort.losses.to(torch.float64)
        check_nonnegative_losses(losses, cohort.client_ids, name="loss", rule="QFedAvg")
        logs = (losses + self.constant).log()
        lipschitz = 1 / cohort["client_lr"].to(torch.float64)
        lengths = update_lengths(cohort)
        # everything is divided by the largest F^q, in logarithms: large q cannot overflow
        powers = (self.q * (logs - logs.max())).exp()
        curvature = self.q * (self.q * (logs - logs.max()) - logs).exp()
        normalisers = curvature * (lengths * lipschitz) ** 2 + lipschitz * powers
        relative = powers * lipschitz / (powers * lipschitz).max()
        scale = (powers * lipschitz).max() / normalisers.sum()
        weights = scale * relative
        # equal weights are exactly 1 in the sum, so that opposite updates cancel on any processor
        step = (self.server_lr * scale * combine(cohort.updates, relative)).to(cohort.updates.dtype)
        seen: dict[str, Diagnostic] = {
            "outcome": "moved" if step.any() else "stationary",
            "weights": by_client(cohort, weights),
            "shares_of_loss": by_client(cohort, powers / powers.sum()),
            "step_fraction": float(weights.sum()),
            "zero_updates": chosen(cohort, lengths == 0),
            "cosines": cosines(cohort, step, lengths=lengths),
        }
        return Aggregation(step, None, seen)
