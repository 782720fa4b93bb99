"""What is measured in a run, and over whom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..data import ArrayData, Dataset, Partition
from ..executors import own_settings
from ..metrics import (
    Evaluation,
    class_shares,
    client_accuracies,
    evaluate,
    fairness_summary,
    task_summary,
)

BY_CLASS = "training share of each class x accuracy on that class over the whole test set"
BY_OWN_ROWS = "accuracy on the client's own test rows"


@dataclass(frozen=True, eq=False)
class Evaluator:
    """Measures a global model: every task on the whole test set, and every client.

    A client's accuracy is that on its own test rows where the data come by client and are used so.
    Else, with one task, it is the class accuracies on the whole test set weighted by the client's
    training shares. With several tasks only tasks are measured.

    :param dataset: Test samples, tasks, classes.
    :param partition: Who trained on what.
    """

    dataset: Dataset
    partition: Partition

    def __call__(self, model: nn.Module, *, rounds: int) -> dict[str, Any]:
        """Measure a model.

        :param model: The model.
        :param rounds: After how many rounds, for the labels.
        :return: ``examples`` (test samples), and under ``tasks`` and, with one task, ``clients``
            the labelled numbers.
        :raises ValueError: If the model answers with NaN.
        """
        moment = f"after {rounds} rounds" if rounds != 1 else "after 1 round"
        with own_settings():  # so that the number of threads does not show in the last digits
            whole = self._evaluate(model, self.dataset.test)
            measured: dict[str, Any] = {
                "examples": whole.num_examples,
                "tasks": task_summary(whole, tasks=self.dataset.tasks, moment=moment),
            }
            if self.dataset.num_tasks == 1:
                measured["clients"] = self._clients(model, whole, moment)
        return measured

    @property
    def by_own_rows(self) -> bool:
        """Whether clients are measured on test rows of their own."""
        natural = self.partition.name == "natural"
        return natural and self.dataset.test_client_ids is not None

    def _evaluate(self, model: nn.Module, data: ArrayData) -> Evaluation:
        return evaluate(model, data, num_classes=self.dataset.num_classes)

    def _clients(self, model: nn.Module, whole: Evaluation, moment: str) -> Mapping[str, Any]:
        if self.by_own_rows:
            values, counts = self._own_rows(model)
            population, method = "all clients, on their own test rows", BY_OWN_ROWS
        else:
            shares = class_shares(
                self.dataset.labels, self.partition, num_classes=self.dataset.num_classes[0]
            )
            values, counts = client_accuracies(whole.class_accuracies[0], shares), None
            population, method = "all clients", BY_CLASS
        measured: dict[str, Any] = {
            "summary": fairness_summary(values, moment=moment, population=population),
            "accuracy_is": method,
            "accuracies": values,
        }
        if counts is not None:
            measured["names"] = self.dataset.client_names
            measured["test_rows"] = counts
        return measured

    def _own_rows(self, model: nn.Module) -> tuple[Tensor, list[int]]:
        owner = self.dataset.test_client_ids
        assert owner is not None
        values, counts = [], []
        for name in self.partition.client_names:
            rows = (owner == int(str(name))).nonzero().flatten()
            counts.append(len(rows))
            if len(rows) == 0:
                values.append(float("nan"))
                continue
            own = self._evaluate(model, self.dataset.test.subset(rows))
            values.append(float(own.accuracies[0]))
        return torch.tensor(values, dtype=torch.float64), counts
