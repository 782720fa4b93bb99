"""Local training along gradients shifted by control variates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from torch import Tensor, nn

from .base import ClientResult, Correct, Descent, Job, LocalTraining, Objective
from .gradients import in_turn, shift


@dataclass(frozen=True)
class ControlVariate:
    r"""Gradients shifted by :math:`c - c_i`: what all clients drift by, without the own drift.

    Receives the server's control :math:`c` as ``control`` ``[dim]``, keeps its own :math:`c_i` as
    ``control`` and reports its change as ``control_update``. The new one is the mean gradient along
    the path, option II of SCAFFOLD, for which steps must be plain SGD.

    :param local: The local training.
    """

    local: LocalTraining

    @property
    def reports(self) -> tuple[str, ...]:
        """The fields of its replies."""
        return (*self.local.reports, "control_update")

    def reporting(self, budget: Literal["all"] | int | None, /) -> ControlVariate:
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
        """Train along the shifted gradients, and renew the own control."""
        own, steps = job.kept("control"), 0

        def count(_: nn.Module) -> None:
            nonlocal steps
            steps += 1

        result = self.local(
            job,
            model,
            objective=objective,
            correct=in_turn(count, self._shifted(job, correct)),
        )
        rate = float(result.fields["client_lr"])
        renewed = own - _sent(job) - result.fields["update"].to(own) / (steps * rate)
        return replace(
            result,
            fields={**result.fields, "control_update": renewed - own},
            state={**(result.state or {}), "control": renewed},
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
        """Train along the shifted gradients without reporting; the own control stays."""
        return self.local.descend(
            job, model, start=start, objective=objective, correct=self._shifted(job, correct)
        )

    def _shifted(self, job: Job, correct: Correct | None) -> Correct | None:
        return in_turn(shift(job.layout, _sent(job) - job.kept("control")), correct)


def _sent(job: Job) -> Tensor:
    return job.payload["control"].to(job.params)
