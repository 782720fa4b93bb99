"""FedAvg: the mean of the updates, weighted by the number of examples."""

from __future__ import annotations

from dataclasses import dataclass

from ..cohort import Cohort
from ..linalg import combine
from ..rule import Aggregation, Claims, StatelessRule
from ._checks import check_server_lr


@dataclass(frozen=True)
class FedAvg(StatelessRule):
    r"""Mean of the updates, weighted by the number of examples: :math:`\sum_i p_i U_i`.

    :param server_lr: Factor of the step, positive; the paper's algorithm is 1.
    """

    server_lr: float = 1.0

    paper = "McMahan, Moore, Ramage, Hampson, Aguera y Arcas, AISTATS 2017, Algorithm 1"
    claims = Claims(scale_equivariant=True, keeps_mean_norm=True)

    def __post_init__(self) -> None:
        check_server_lr(self.server_lr)

    def aggregate(self, state: None, cohort: Cohort) -> Aggregation[None]:
        """Average the updates by example shares."""
        mean = combine(cohort.updates, cohort.shares).to(cohort.updates.dtype)
        return Aggregation(self.server_lr * mean, None)
