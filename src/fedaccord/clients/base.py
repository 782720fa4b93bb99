"""The values that travel to a client and back, and the two protocols of what it does with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias, runtime_checkable

import torch
from torch import Tensor, nn

from .. import buffers
from ..layout import Layout
from ..random import generator

Batch: TypeAlias = tuple[Tensor, ...]
"""One minibatch: tensors with the examples along their first axis."""

Losses: TypeAlias = Callable[[nn.Module, Batch], Tensor]
"""``losses(model, batch)``: each task's mean loss over the batch, ``[m]``."""

ClientState: TypeAlias = Mapping[str, Tensor]
"""What a client keeps from one of its rounds to the next."""

Objective: TypeAlias = Callable[[Tensor], Tensor]
"""Task losses ``[m]`` to the scalar to minimise."""

Correct: TypeAlias = Callable[[nn.Module], None]
"""Called between the backward pass and the step of each minibatch; may change gradients."""


class ClientData(Protocol):
    """One client's training set."""

    def __len__(self) -> int:
        """Number of examples."""
        ...

    def batch(self, index: Tensor, /) -> Batch:
        """The examples at ``index``, int64 ``[b]``."""
        ...


@dataclass(frozen=True)
class Job:
    """One client's work in one phase of a round: plain data, fit to cross a process boundary.

    :param client_id: The client.
    :param layout: The layout of ``params``.
    :param losses: Each task's mean loss on a batch, ``[m]``.
    :param data: The client's training set.
    :param params: The received parameters ``[dim]``.
    :param payload: What else the rule sends, for example ``task_weights`` ``[m]``.
    :param seed: The seed of everything this job draws.
    :param state: What the client kept from its last round.
    :param buffers: Frozen parameters and buffers of the received model, by name.
    :param round: The round, counted from 0.
    :param num_tasks: Number of tasks ``m``.
    """

    client_id: int
    layout: Layout
    losses: Losses
    data: ClientData
    params: Tensor
    payload: Mapping[str, Tensor]
    seed: int
    state: ClientState | None = None
    buffers: Mapping[str, Tensor] = field(default_factory=dict)
    round: int = 0
    num_tasks: int = 1

    def generator(self, *path: str, device: torch.device | str = "cpu") -> torch.Generator:
        """A random stream of this job: ``"batches"``, ``"report"``, ``"model"`` are separate."""
        return generator(self.seed, *path, device=device)

    @property
    def task_weights(self) -> Tensor:
        """Weights of the tasks in the training loss, ``[m]``: those sent, else uniform."""
        weights = self.payload.get("task_weights")
        if weights is None:
            weights = torch.full((self.num_tasks,), 1 / self.num_tasks, dtype=torch.float64)
        return weights.to(self.params)

    def kept(self, name: str) -> Tensor:
        """A vector ``[dim]`` that the client kept; zero in its first round."""
        state = self.state or {}
        return state[name].to(self.params) if name in state else torch.zeros_like(self.params)

    @property
    def objective(self) -> Objective:
        """The weighted sum of the task losses."""
        weights = self.task_weights
        # losses may have another precision than the parameters
        return lambda losses: weights.to(losses.dtype) @ losses

    def batch(self, index: Tensor) -> Batch:
        """The examples at ``index``, on the parameters' device.

        :raises TypeError: If the data gives anything but a tuple or list of tensors.
        """
        batch = self.data.batch(index)
        whole = isinstance(batch, tuple | list) and all(isinstance(p, Tensor) for p in batch)
        if not whole:
            raise TypeError(
                f"`batch(index)` must give a tuple of tensors. Got {type(batch).__name__}. Write "
                f"`(x[index],)` for inputs alone."
            )
        return tuple(part.to(self.params.device) for part in batch)

    def task_losses(self, model: nn.Module, batch: Batch) -> Tensor:
        """Each task's mean loss on a batch, ``[m]``.

        :raises ValueError: If ``losses`` gives another shape.
        """
        values = self.losses(model, batch)
        shape = tuple(values.shape) if isinstance(values, Tensor) else type(values).__name__
        if shape != (self.num_tasks,):
            raise ValueError(
                f"`losses(model, batch)` must give one mean loss for each task, a tensor of shape "
                f"({self.num_tasks},). Got {shape}. A single loss is "
                f"`loss.reshape(1)`; several are `torch.stack(...)` with `num_tasks` set on the "
                f"`Federation`."
            )
        return values

    def load(self, model: nn.Module) -> None:
        """Put the received parameters, frozen parameters and buffers into ``model``."""
        self.layout.write(self.params, model)
        buffers.write(self.buffers, model)


@dataclass(frozen=True)
class ClientResult:
    """What one job brought.

    :param fields: The reply's fields.
    :param num_examples: Size of the client's training set.
    :param state: What the client keeps; ``None`` deletes what was kept.
    :param buffers: The model's buffers after training, by name.
    """

    fields: Mapping[str, Tensor]
    num_examples: int
    state: ClientState | None = None
    buffers: Mapping[str, Tensor] = field(default_factory=dict)


@runtime_checkable
class ClientAlgorithm(Protocol):
    """What a client does with a job."""

    @property
    def reports(self) -> tuple[str, ...]:
        """The fields of its replies."""
        ...

    def __call__(self, job: Job, model: nn.Module, /) -> ClientResult:
        """Do the work.

        :param job: The work.
        :param model: Scratch memory: a model whose parameters and buffers are undefined on entry.
        """
        ...


@dataclass(frozen=True)
class Descent:
    """Where local training ended.

    :param params: Parameters after the last step, ``[dim]``.
    :param client_lr: The learning rate used.
    :param steps: Number of optimiser steps.
    :param train_loss: Mean training objective over the examples seen on the way.
    """

    params: Tensor
    client_lr: float
    steps: int
    train_loss: Tensor


@runtime_checkable
class LocalTraining(ClientAlgorithm, Protocol):
    """Local training that a rule can ask for reports and for other objectives.

    Called as a client algorithm it trains on the task-weighted loss and reports at least ``update``
    and ``client_lr``. What other client algorithms build on it is handed in as ``objective`` and
    ``correct``.
    """

    def __call__(
        self,
        job: Job,
        model: nn.Module,
        /,
        *,
        objective: Objective | None = None,
        correct: Correct | None = None,
    ) -> ClientResult:
        """Report if asked to, train from the received model, and report the update.

        :param job: The work.
        :param model: Scratch memory: a model whose parameters and buffers are undefined on entry.
        :param objective: As for :meth:`descend`; reports do not depend on it.
        :param correct: As for :meth:`descend`.
        """
        ...

    def reporting(self, budget: Literal["all"] | int | None, /) -> LocalTraining:
        """The same training that also reports ``loss`` and ``task_loss`` of the received model.

        :param budget: ``"all"`` of the client's data, a number of minibatches, or ``None`` for no
            report.
        """
        ...

    def descend(
        self,
        job: Job,
        model: nn.Module,
        *,
        start: Tensor | None = None,
        objective: Objective | None = None,
        correct: Correct | None = None,
    ) -> Descent:
        """Train without reporting: the part that other client algorithms are built from.

        Two calls with the same job see the same minibatches.

        :param job: The work.
        :param model: Scratch memory with the job's buffers loaded.
        :param start: Parameters to start from ``[dim]``; the received ones by default.
        :param objective: Task losses ``[m]`` to the scalar to minimise; their weighted sum by
            default.
        :param correct: Called between the backward pass and the step; may change gradients.
        """
        ...
