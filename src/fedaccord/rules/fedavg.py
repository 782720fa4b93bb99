"""FedAvg: the mean of the updates, weighted by the number of examples."""

from __future__ import annotations

from dataclasses import dataclass

from ..cohort import Cohort
from ..linalg import combine
from ..rule import Aggregation, Claims, Diagnostic, StatelessRule
from ._checks import check_server_lr
from ._diagnostics import by_client, outcome_of


@dataclass(frozen=True)
class FedAvg(StatelessRule):
    r"""Mean of the updates, weighted by the number of examples.

    The step is :math:`\sum_i p_i U_i` with shares :math:`p_i`.

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
        step = self.server_lr * mean
        seen: dict[str, Diagnostic] = {
            "outcome": outcome_of(step),
            "weights": by_client(cohort, cohort.shares),
        }
        return Aggregation(step, None, seen)
