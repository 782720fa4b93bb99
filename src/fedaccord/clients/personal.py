"""Models that clients keep to themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from torch import Tensor, nn

from ..buffers import trained_buffers
from .base import ClientResult, ClientState, Correct, Descent, Job, LocalTraining, Objective
from .gradients import pull

PERSONAL = "personal"
"""Where a client keeps its own model's parameters ``[dim]``."""

BESIDE = "personal buffer: "
"""What the names of its own model's buffers begin with there, so that they meet no other name."""


@dataclass(frozen=True)
class PersonalModel:
    r"""Local training, and before it a step of the client's own model towards its own optimum.

    The own model :math:`v_i` minimises :math:`F_i(v) + \frac\lambda2 \lVert v - \theta_t \rVert^2`
    on the minibatches that local training sees; nothing of it is sent. It starts as ``initial``
    ``[dim]`` where the rule sends it, else as the first model the client receives, and stays as it
    is while the client is absent.

    :param local: The local training, of both.
    :param lam: At least 0; :math:`\lambda`.
    """

    local: LocalTraining
    lam: float

    @property
    def reports(self) -> tuple[str, ...]:
        """The fields of its replies."""
        return self.local.reports

    def reporting(self, budget: Literal["all"] | int | None, /) -> PersonalModel:
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
        """Train the own model, then the shared one; the hooks are for the shared one."""
        own_job = with_own_model(job)
        own_job.load(model)
        towards = pull(job.layout, job.params, self.lam)
        own = self.local.descend(own_job, model, correct=towards).params
        kept = {PERSONAL: own, **_named(trained_buffers(model))}
        result = self.local(job, model, objective=objective, correct=correct)
        return replace(result, state={**(result.state or {}), **kept})

    def descend(
        self,
        job: Job,
        model: nn.Module,
        *,
        start: Tensor | None = None,
        objective: Objective | None = None,
        correct: Correct | None = None,
    ) -> Descent:
        """Train the shared model alone."""
        return self.local.descend(job, model, start=start, objective=objective, correct=correct)


@dataclass(frozen=True)
class OwnModel:
    """Training of the client's own model, as if it were the received one.

    The ``update`` and losses it reports are the own model's. Its running statistics stay with it.

    :param local: The local training.
    """

    local: LocalTraining

    @property
    def reports(self) -> tuple[str, ...]:
        """The fields of its replies."""
        return self.local.reports

    def __call__(self, job: Job, model: nn.Module, /) -> ClientResult:
        """Train the own model."""
        own_job = with_own_model(job)
        result = self.local(own_job, model)
        own = own_job.params + result.fields["update"]
        kept = {**(result.state or {}), PERSONAL: own, **_named(result.buffers)}
        return replace(result, state=kept, buffers={})


def with_own_model(job: Job) -> Job:
    """A client's job with its own model as the received one, running statistics included.

    :param job: The client's ``state`` holds the own model, unless this is its first round.
    """
    state = job.state or {}
    return replace(
        job,
        params=state.get(PERSONAL, job.payload.get("initial", job.params)).to(job.params),
        buffers={name: state.get(BESIDE + name, value) for name, value in job.buffers.items()},
    )


def buffers_kept(state: ClientState) -> dict[str, Tensor]:
    """The buffers of a client's own model, by their names in the model."""
    return {
        name.removeprefix(BESIDE): value for name, value in state.items() if name.startswith(BESIDE)
    }


def _named(buffers: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {BESIDE + name: value for name, value in buffers.items()}
