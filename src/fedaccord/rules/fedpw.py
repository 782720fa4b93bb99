"""FedPW: weights from losses and directions; pruned updates; agreement amplified."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..cohort import Cohort
from ..layout import Spec
from ..linalg import combine, gramian
from ..rule import Aggregation, Claims, Diagnostic, Rule
from ._checks import (
    check_known_clients,
    check_nonnegative_losses,
    check_server_lr,
    check_state,
)
from ._diagnostics import by_client, checked_lengths, chosen, cosines
from ._fedpw_entries import amplified, pruned
from ._fedpw_weights import Trace, accumulate, drop_rates, mixed


@dataclass(frozen=True)
class FedPWState:
    """What FedPW remembers.

    :param losses: From losses; the paper's :math:`a, P`.
    :param products: From directions; the paper's :math:`b, R`.
    :param seen: Who ever took part, bool ``[num_clients]``.
    """

    losses: Trace
    products: Trace
    seen: Tensor


@dataclass(frozen=True)
class FedPW(Rule[FedPWState]):
    r"""Accumulated weights of loss and direction, mixed by their spread; entries pruned per client.

    From the second round on the smallest entries of each update are dropped, more of them at
    clients of low loss, and the entries on which clients agree are amplified.

    :param beta: Share of the newest evidence, in ``(0, 1]``.
    :param drop: Mean share of entries dropped, in ``[0, 1)``; :math:`\bar r`.
    :param bounded: Whether the share of the newest evidence, ``beta`` times the mean evidence over
        that of the first round, is kept in ``[0, 1]``. ``False`` is the authors' code, whose
        running evidence diverges where that passes 2.
    :param server_lr: Factor of the step, positive; the paper's algorithm is 1.

    Deviations: with partial participation, which the paper does not define, steps 1 to 4 are taken
    within the cohort, whose entries keep the total they had (:math:`1/N` for a client never seen).
    That is ours. Where the authors' code divides by zero, see the rule's page.
    """

    beta: float = 0.3
    drop: float = 0.3
    server_lr: float = 1.0
    bounded: bool = True

    paper = "Guan, Huang, Guo, Yuan, Yang, Ye, NeurIPS 2025, FedPW"
    state_types = (FedPWState, Trace)

    def __post_init__(self) -> None:
        if not 0 < self.beta <= 1:
            raise ValueError(f"`beta` must be in (0, 1]. Got {self.beta}.")
        if not 0 <= self.drop < 1:
            raise ValueError(f"`drop` must be in [0, 1). Got {self.drop}.")
        check_server_lr(self.server_lr)

    @property
    def needs(self) -> Mapping[str, tuple[str, ...]]:
        """The update, and the mean loss over the local run."""
        return {"train": ("update", "train_loss")}

    @property
    def claims(self) -> Claims:
        """Shares, ranks and ratios do not depend on scale."""
        return Claims(scale_equivariant=True)

    def init(self, spec: Spec) -> FedPWState:
        """No evidence."""
        zeros = torch.zeros(spec.num_clients, dtype=torch.float64)
        return FedPWState(Trace(zeros, zeros), Trace(zeros, zeros), zeros.bool())

    def aggregate(self, state: FedPWState, cohort: Cohort) -> Aggregation[FedPWState]:
        """Weigh the clients, prune, combine and amplify.

        :raises MalformedReplyError: If a loss is negative.
        :raises NonFiniteError: If an update is too large to square.
        """
        check_state(state, FedPWState)
        check_known_clients(cohort.client_ids, len(state.seen))
        here = torch.tensor(cohort.client_ids)
        losses = cohort["train_loss"].to(torch.float64)
        check_nonnegative_losses(losses, cohort.client_ids, name="train_loss", rule="FedPW")
        gram = gramian(cohort.updates)
        lengths = checked_lengths(cohort, gram.diagonal())
        common: dict[str, Any] = {"beta": self.beta, "bounded": self.bounded}
        by_loss, kept_loss = accumulate(state.losses, losses, here, state.seen, **common)
        # updates that cancel leave rounding errors, whose direction is nobody's
        eps = torch.finfo(cohort.updates.dtype).eps
        noise = 4 * eps * float(lengths.sum()) ** 2
        by_product, kept_product = accumulate(
            state.products, gram.sum(1), here, state.seen, **common, noise=noise
        )
        weights, share = mixed(by_loss.weights[here], by_product.weights[here])

        rates = drop_rates(losses, self.drop)
        first_round = not state.seen.any()
        if first_round:
            step = combine(cohort.updates, weights)
            factors: list[float] = []
        else:
            step, factors = self._pruned_step(cohort, weights, rates)
        step = (self.server_lr * step).to(cohort.updates.dtype)
        now = state.seen.clone()
        now[here] = True
        seen: dict[str, Diagnostic] = {
            "outcome": "moved" if step.any() else "stationary",
            "weights": by_client(cohort, weights),
            "loss_weights": by_client(cohort, by_loss.weights[here]),
            "product_weights": by_client(cohort, by_product.weights[here]),
            "mixing": share,
            "largest_weight": float(weights.abs().max()),
            "weights_kept": int(kept_loss) + int(kept_product),
            "drop_rates": by_client(cohort, rates),
            "pruned": int(not first_round),
            "largest_amplification": max(factors, default=1.0),
            "zero_updates": chosen(cohort, lengths == 0),
            "cosines": cosines(cohort, step, lengths=lengths),
        }
        return Aggregation(step, FedPWState(by_loss, by_product, now), seen)

    def _pruned_step(
        self, cohort: Cohort, weights: Tensor, rates: Tensor
    ) -> tuple[Tensor, list[float]]:
        """Step 5, block by block, and the factors of amplification."""
        updates = cohort.updates
        step = torch.zeros(updates.shape[1], dtype=torch.float64, device=updates.device)
        factors = []
        for block in cohort.blocks.values():
            rows, dropped = pruned(updates[:, block].to(torch.float64), rates)
            step[block], factor = amplified(
                rows, combine(rows, weights), share=self.drop, dropped=dropped
            )
            factors.append(factor)
        return step, factors
