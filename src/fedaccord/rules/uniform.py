"""Uniform scalarisation: every task has the same weight, every client too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch

from ..clients import ClientAlgorithm, LocalTraining
from ..cohort import Cohort
from ..linalg import combine
from ..rule import Aggregation, Claims, Diagnostic, StatelessRule
from ._checks import check_report, check_server_lr
from ._diagnostics import by_client, outcome_of


@dataclass(frozen=True)
class Uniform(StatelessRule):
    r"""Clients train on the mean of the task losses; the step is the plain mean of the updates.

    :param server_lr: Factor of the step, positive; :math:`\eta_g`.
    :param report: Whether clients report task losses of the received model, and on how much of
        their data; only looked at, never used. See :class:`~fedaccord.LocalSGD`.
    """

    server_lr: float = 1.0
    report: Literal["all"] | int | None = None

    paper = "Dehghanpour, Azimi-Abarghouyi, Brinton, FedHV paper, baseline 'Uniform'"

    def __post_init__(self) -> None:
        check_server_lr(self.server_lr)
        if self.report is not None:
            check_report(self.report)

    @property
    def needs(self) -> Mapping[str, tuple[str, ...]]:
        """The update, and task losses if they are to be looked at."""
        return {"train": ("update",) if self.report is None else ("update", "task_loss")}

    @property
    def claims(self) -> Claims:
        """A mean scales with what it is the mean of."""
        return Claims(scale_equivariant=True)

    def client_algorithms(self, local: LocalTraining) -> Mapping[str, ClientAlgorithm]:
        """Train on equal task weights."""
        return {"train": local if self.report is None else local.reporting(self.report)}

    def aggregate(self, state: None, cohort: Cohort) -> Aggregation[None]:
        """Average the updates with equal client weights."""
        equal = torch.full((len(cohort),), 1 / len(cohort), dtype=torch.float64)
        mean = combine(cohort.updates, equal).to(cohort.updates.dtype)
        step = self.server_lr * mean
        seen: dict[str, Diagnostic] = {
            "outcome": outcome_of(step),
            "weights": by_client(cohort, equal),
        }
        if self.report is not None:
            seen["task_losses"] = cohort.task_losses.to(torch.float64).mean(0)
        return Aggregation(step, None, seen)
