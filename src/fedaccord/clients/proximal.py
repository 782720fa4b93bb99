"""Local training that stays near the received model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from torch import Tensor, nn

from .base import ClientResult, Correct, Descent, Job, LocalTraining, Objective
from .gradients import in_turn, pull


@dataclass(frozen=True)
class Proximal:
    r"""Local training with :math:`\frac\mu2 \lVert \theta - \theta_t \rVert^2` in its objective.

    ``train_loss`` leaves this term out.

    :param local: The local training.
    :param mu: At least 0.
    """

    local: LocalTraining
    mu: float

    @property
    def reports(self) -> tuple[str, ...]:
        """The fields of its replies."""
        return self.local.reports

    def reporting(self, budget: Literal["all"] | int | None, /) -> Proximal:
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
        """Train near the received model, and report."""
        return self.local(job, model, objective=objective, correct=self._pulled(job, correct))

    def descend(
        self,
        job: Job,
        model: nn.Module,
        *,
        start: Tensor | None = None,
        objective: Objective | None = None,
        correct: Correct | None = None,
    ) -> Descent:
        """Train near the received model without reporting."""
        return self.local.descend(
            job, model, start=start, objective=objective, correct=self._pulled(job, correct)
        )

    def _pulled(self, job: Job, correct: Correct | None) -> Correct | None:
        return in_turn(pull(job.layout, job.params, self.mu), correct)
