"""Local training by stochastic gradient descent."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from ..buffers import trained_buffers
from .base import ClientResult, Correct, Descent, Job, Objective
from .randomness import SeededOperations
from .report import report_losses


@dataclass(frozen=True)
class LocalSGD:
    """Plain SGD from the received model, with a fresh optimiser every round.

    One epoch visits every example once in random order; the last minibatch of an epoch may be
    smaller. With ``steps`` the passes restart until that many minibatches were used. A minibatch of
    a single example uses running statistics in batch-norm layers, whose batch variance would be
    undefined.

    Reports ``update``, ``client_lr`` and ``train_loss``, and with ``report`` also ``task_loss``
    ``[m]`` and ``loss`` (their weighted sum) of the received model in evaluation mode, before
    training, on minibatches drawn from a stream of their own.

    :param lr: Learning rate in round 0, above 0.
    :param momentum: In ``[0, 1)``.
    :param weight_decay: At least 0.
    :param batch_size: At least 1.
    :param epochs: Passes over the client's data, at least 1; 1 if ``steps`` is not given either.
    :param steps: Number of minibatches instead of ``epochs``, at least 1.
    :param lr_decay: Factor a round, in ``(0, 1]``: round ``t`` uses ``lr * lr_decay**t``.
    :param drop_last: Leave out an epoch's incomplete minibatch, unless it is the only one.
    :param report: ``"all"`` of the data, a number of minibatches (at least 1), or ``None``.
    :raises ValueError: If a value is out of range, or both ``epochs`` and ``steps`` are given.
    """

    lr: float = 0.1
    momentum: float = 0.0
    weight_decay: float = 0.0
    batch_size: int = 32
    epochs: int | None = None
    steps: int | None = None
    lr_decay: float = 1.0
    drop_last: bool = False
    report: Literal["all"] | int | None = None

    def __post_init__(self) -> None:
        if not 0 < self.lr < float("inf"):
            raise ValueError(f"`lr` must be positive and finite. Got {self.lr}.")
        if not 0 <= self.momentum < 1:
            raise ValueError(f"`momentum` must be in [0, 1). Got {self.momentum}.")
        if not 0 <= self.weight_decay < float("inf"):
            raise ValueError(f"`weight_decay` must be at least 0. Got {self.weight_decay}.")
        if not 0 < self.lr_decay <= 1:
            raise ValueError(f"`lr_decay` must be in (0, 1]. Got {self.lr_decay}.")
        if self.epochs is not None and self.steps is not None:
            raise ValueError(
                f"Give `epochs` or `steps`, not both. Got {self.epochs} and {self.steps}."
            )
        for name in ("batch_size", "epochs", "steps"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, Integral) or value < 1):
                raise ValueError(f"`{name}` must be an integer of at least 1. Got {value!r}.")
        number = isinstance(self.report, Integral) and not isinstance(self.report, bool)
        if not (self.report in ("all", None) or (number and int(self.report) >= 1)):
            raise ValueError(
                f"`report` must be 'all', a number of minibatches of at least 1, or None. "
                f"Got {self.report!r}."
            )

    @property
    def reports(self) -> tuple[str, ...]:
        """The fields of its replies."""
        trained = ("update", "client_lr", "train_loss")
        return trained if self.report is None else (*trained, "loss", "task_loss")

    def reporting(self, budget: Literal["all"] | int | None, /) -> LocalSGD:
        """The same training with another ``report``."""
        return replace(self, report=budget)

    def lr_at(self, round: int) -> float:
        """The learning rate of a round, counted from 0."""
        return self.lr * self.lr_decay**round

    def __call__(
        self,
        job: Job,
        model: nn.Module,
        /,
        *,
        objective: Objective | None = None,
        correct: Correct | None = None,
    ) -> ClientResult:
        """Report on the received model if asked to, train, and report the update."""
        job.load(model)
        fields: dict[str, Tensor] = {}
        if self.report is not None:
            fields["task_loss"] = report_losses(
                job, model, budget=self.report, batch_size=self.batch_size
            )
            fields["loss"] = job.task_weights.to(torch.float64) @ fields["task_loss"]
        descent = self.descend(job, model, objective=objective, correct=correct)
        fields["update"] = descent.params - job.params
        fields["client_lr"] = torch.tensor(descent.client_lr, dtype=torch.float64)
        fields["train_loss"] = descent.train_loss
        return ClientResult(
            fields=fields,
            num_examples=len(job.data),
            state=job.state,
            buffers=trained_buffers(model),
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
        """Train without reporting; see :meth:`LocalTraining.descend`."""
        objective, device = objective or job.objective, job.params.device
        job.layout.write(job.params if start is None else start, model)
        model.train()
        parameters = [p for p in model.parameters() if p.requires_grad]
        optimiser = torch.optim.SGD(
            parameters,
            lr=self.lr_at(job.round),
            momentum=self.momentum,
            weight_decay=self.weight_decay,
        )
        randomness = SeededOperations(job.generator("model", device=device))
        total, seen, steps = torch.zeros((), dtype=torch.float64, device=device), 0, 0
        for index in self._minibatches(len(job.data), job.generator("batches")):
            with randomness.step(), _batch_norm_for(model, examples=len(index)):
                loss = objective(job.task_losses(model, job.batch(index)))
                optimiser.zero_grad()
                loss.backward()
            if correct is not None:
                correct(model)
            optimiser.step()
            total += loss.detach() * len(index)
            seen, steps = seen + len(index), steps + 1
        return Descent(
            params=job.layout.flatten(model),
            client_lr=self.lr_at(job.round),
            steps=steps,
            train_loss=(total / seen).cpu(),
        )

    def _minibatches(self, size: int, source: torch.Generator) -> Iterator[Tensor]:
        made = 0
        passes = 0
        while self.steps is not None or passes < (self.epochs or 1):
            minibatches = torch.randperm(size, generator=source).split(self.batch_size)
            if self.drop_last and len(minibatches) > 1 and len(minibatches[-1]) < self.batch_size:
                minibatches = minibatches[:-1]
            for index in minibatches:
                yield index
                made += 1
                if made == self.steps:
                    return
            passes += 1


@contextlib.contextmanager
def _batch_norm_for(model: nn.Module, *, examples: int) -> Iterator[None]:
    """Batch-norm layers in evaluation mode while a minibatch holds a single example."""
    layers = [m for m in model.modules() if isinstance(m, _BatchNorm)] if examples == 1 else []
    layers = [layer for layer in layers if layer.training]
    for layer in layers:
        layer.eval()
    yield
    for layer in layers:
        layer.train()
