"""Local training with dynamic regularisation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from torch import Tensor, nn

from .base import ClientResult, Correct, Descent, Job, LocalTraining, Objective
from .gradients import in_turn, pull, shift


@dataclass(frozen=True)
class DynamicRegularisation:
    r"""Local training on an objective whose optimum is the federation's.

    Adds :math:`-\langle \hat g_i, \theta \rangle + \frac\alpha2 \lVert \theta - \theta_t \rVert^2`.
    Keeps :math:`\hat g_i`, the gradient at the model it ended at, as ``dual`` ``[dim]``.
    ``train_loss`` leaves both terms out.

    :param local: The local training.
    :param alpha: Positive.
    """

    local: LocalTraining
    alpha: float

    @property
    def reports(self) -> tuple[str, ...]:
        """The fields of its replies."""
        return self.local.reports

    def reporting(self, budget: Literal["all"] | int | None, /) -> DynamicRegularisation:
        """The same training with another report."""
        return replace(self, local=self.local.reporting(budget))

    def __call__(
        self,
        job: Job,
        model: nn.Module,
        /,
        *,
        objective: Objective | None = None,
        correct: Correct | None = None,
    ) -> ClientResult:
        """Train on the regularised objective, and renew the dual."""
        result = self.local(
            job, model, objective=objective, correct=self._regularised(job, correct)
        )
        dual = job.kept("dual") - self.alpha * result.fields["update"]
        return replace(result, state={**(result.state or {}), "dual": dual})

    def descend(
        self,
        job: Job,
        model: nn.Module,
        *,
        start: Tensor | None = None,
        objective: Objective | None = None,
        correct: Correct | None = None,
    ) -> Descent:
        """Train on the regularised objective without reporting; the dual stays."""
        return self.local.descend(
            job, model, start=start, objective=objective, correct=self._regularised(job, correct)
        )

    def _regularised(self, job: Job, correct: Correct | None) -> Correct | None:
        against = shift(job.layout, -job.kept("dual"))
        return in_turn(against, pull(job.layout, job.params, self.alpha), correct)
