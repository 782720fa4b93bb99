"""FedMGDA+: the shortest combination of unit updates, near a prior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from ..cohort import Cohort
from ..linalg import INFEASIBLE_MARGIN, combine, gramian, min_norm_weights, norm
from ..rule import Aggregation, Claims, Diagnostic, StatelessRule
from ._checks import check_server_lr
from ._diagnostics import by_client, checked_lengths, chosen, cosines


@dataclass(frozen=True)
class FedMGDAPlus(StatelessRule):
    r"""The shortest combination of unit updates, with weights within ``epsilon`` of a prior.

    .. math:: \lambda^* = \arg\min_\lambda \Bigl\lVert \sum_i \lambda_i
              \frac{U_i}{\lVert U_i \rVert} \Bigr\rVert, \quad
              \lvert \lambda_i - \lambda^0_i \rvert \le \epsilon

    :param epsilon: How far a weight may be from the prior, in ``[0, 1]``; 0 is normalised
        averaging, 1 is MGDA without bounds.
    :param prior: ``"uniform"``, or ``"shares"`` of the examples; :math:`\lambda^0`.
    :param keep_zero: Whether a client with a zero update stays in the problem, as a row of zeros.
        It then draws all the weight it may have. By default it is left out and the prior of the
        others renormalised.
    :param server_lr: Length of the step where all agree, positive; :math:`\eta_g`. It does not
        depend on the updates' lengths: 1 moves the model by up to 1.
    """

    epsilon: float = 0.1
    prior: Literal["uniform", "shares"] = "uniform"
    keep_zero: bool = False
    server_lr: float = 1.0

    paper = "Hu, Shaloudegi, Zhang, Yu, IEEE TNSE 2022, FedMGDA+"

    def __post_init__(self) -> None:
        if not 0 <= self.epsilon <= 1:
            raise ValueError(f"`epsilon` must be in [0, 1]. Got {self.epsilon}.")
        if self.prior not in ("uniform", "shares"):
            raise ValueError(f"`prior` must be 'uniform' or 'shares'. Got {self.prior!r}.")
        check_server_lr(self.server_lr)

    @property
    def claims(self) -> Claims:
        """Without bounds the shortest combination is against nobody."""
        return Claims(non_conflicting=self.epsilon == 1)

    def aggregate(self, state: None, cohort: Cohort) -> Aggregation[None]:
        """Find the weights and combine the unit updates.

        :raises NonFiniteError: If an update is too large to square.
        :raises SolverError: If no solver's weights could be proven optimal.
        """
        gram = gramian(cohort.updates)
        lengths = checked_lengths(cohort, gram.diagonal())
        moving = lengths > 0
        scale = torch.where(moving, 1 / lengths, 0.0)
        prior = self._prior(cohort, moving)
        weights = torch.zeros_like(prior)
        rows = (moving | self.keep_zero).nonzero().flatten()
        if moving.any() and prior.sum() > 0:
            unit = (gram * scale[:, None] * scale)[rows][:, rows]
            near = prior[rows]
            weights[rows] = min_norm_weights(
                unit, lower=near - self.epsilon, upper=near + self.epsilon
            )
        direction = combine(cohort.updates, weights * scale)
        length = norm(direction)
        # unit rows in a coarse dtype are known to its precision only
        noise = max(INFEASIBLE_MARGIN, torch.finfo(cohort.updates.dtype).eps / 2)
        moves = length > noise
        step = (self.server_lr * direction if moves else torch.zeros_like(direction)).to(
            cohort.updates.dtype
        )
        seen: dict[str, Diagnostic] = {
            "outcome": "moved" if moves else self._reason(moving, prior),
            "weights": by_client(cohort, weights),
            "prior": by_client(cohort, prior),
            "zero_updates": chosen(cohort, ~moving),
            "direction_length": length,
            "cosines": cosines(cohort, step, lengths=lengths),
        }
        return Aggregation(step, None, seen)

    def _prior(self, cohort: Cohort, moving: Tensor) -> Tensor:
        equal = torch.ones(len(cohort), dtype=torch.float64)
        prior = equal if self.prior == "uniform" else cohort.shares
        prior = prior * (moving | self.keep_zero)
        return prior / prior.sum() if prior.sum() > 0 else prior

    def _reason(self, moving: Tensor, prior: Tensor) -> str:
        """Why there is no step."""
        if not moving.any():
            return "all-zero"
        if not prior.any():
            return "no-examples"  # only clients without examples moved
        return "stationary" if moving.all() or not self.keep_zero else "held-by-zero-updates"
