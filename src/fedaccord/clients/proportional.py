"""Local training whose loss grows steeper towards a largest acceptable value."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor, nn

from .base import ClientResult, Correct, Descent, Job, LocalTraining, Objective


def proportional_loss(loss: Tensor, *, base: float, epsilon: float, huber: bool) -> Tensor:
    r"""Minus the logarithm of the distance to ``base``: :math:`-\log(1 - \ell/M_b)`.

    Where less than ``epsilon`` is left, a straight line takes over: :math:`\ell / M_b`, or
    :math:`\ell / \epsilon` with ``huber``.

    :param loss: Any shape.
    :param base: A loss too large to accept, positive; :math:`M_b`.
    :param epsilon: Positive.
    :param huber: Which line.
    """
    near = base - loss >= epsilon
    # the branch not taken must stay finite, or its gradient would be NaN
    inside = torch.where(near, loss, 0.0)
    return torch.where(near, -torch.log1p(-inside / base), loss / (epsilon if huber else base))


@dataclass(frozen=True)
class ProportionallyFair:
    """Local training on :func:`proportional_loss` of each minibatch's weighted loss.

    ``train_loss`` is the mean of what is minimised; reported losses are the plain ones.

    :param local: The local training.
    :param base: See :func:`proportional_loss`, as for the others.
    :param epsilon: Positive.
    :param huber: Which line.
    """

    local: LocalTraining
    base: float
    epsilon: float
    huber: bool = False

    @property
    def reports(self) -> tuple[str, ...]:
        """The fields of its replies."""
        return self.local.reports

    def reporting(self, budget: Literal["all"] | int | None, /) -> ProportionallyFair:
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
        """Train on the transformed loss, and report."""
        return self.local(
            job, model, objective=self._of(objective or job.objective), correct=correct
        )

    def descend(
        self,
        job: Job,
        model: nn.Module,
        *,
        start: Tensor | None = None,
        objective: Objective | None = None,
        correct: Correct | None = None,
    ) -> Descent:
        """Train on the transformed loss without reporting."""
        objective = self._of(objective or job.objective)
        return self.local.descend(job, model, start=start, objective=objective, correct=correct)

    def _of(self, objective: Objective) -> Objective:
        return lambda losses: proportional_loss(
            objective(losses), base=self.base, epsilon=self.epsilon, huber=self.huber
        )
