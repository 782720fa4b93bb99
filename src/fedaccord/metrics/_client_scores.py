"""What models score on each client's own test rows, with the noise of few rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ._noise import wilson_interval
from ._score import Scores, SurvivalScores


@dataclass(frozen=True, eq=False)
class ClientScores:
    """What models score on each client's own test rows; ``N`` clients, ``m`` tasks.

    A client without test rows, and one without a model, has NaN everywhere, never zero.

    :param client_ids: The clients, ``N`` of them, sorted.
    :param num_examples: ``[N]`` int64, numbers of test rows.
    :param losses: ``[N, m]`` float64, mean loss.
    :param loss_errors: ``[N, m]`` float64, standard error of that mean: the sample standard
        deviation over the square root of the number of rows; NaN with a single row.
    :param accuracies: ``[N, m]`` float64, fraction correct; ``None`` for tasks without classes.
    :param accuracy_errors: ``[N, m]`` float64, standard error ``sqrt(a (1 - a) / n)``. It is zero
        where all rows are correct or none, which ``accuracy_intervals`` are not.
    :param concordances: ``[N]`` float64, Harrell's index of a survival task, NaN where no pair is
        comparable; ``None`` for other tasks.
    """

    client_ids: tuple[int, ...]
    num_examples: Tensor
    losses: Tensor
    loss_errors: Tensor
    accuracies: Tensor | None
    accuracy_errors: Tensor | None
    concordances: Tensor | None

    @property
    def missing(self) -> tuple[int, ...]:
        """The clients without a loss."""
        absent = self.losses.isnan().all(1).tolist()
        return tuple(c for c, gone in zip(self.client_ids, absent, strict=True) if gone)

    def accuracy_intervals(self, level: float = 0.95) -> Tensor:
        """Return Wilson's confidence interval of each accuracy, ``[N, m, 2]``.

        :param level: In ``(0, 1)``.
        :raises ValueError: If the tasks have no classes, or ``level`` is out of range.
        """
        if self.accuracies is None:
            raise ValueError("Intervals of accuracies need tasks with classes.")
        return wilson_interval(self.accuracies, self.num_examples, level=level)

    def of(self, client_ids: Iterable[int]) -> ClientScores:
        """Return the scores of some of the clients, for example of one of the ``populations``.

        :raises ValueError: If a client is not among these.
        """
        row = {client: position for position, client in enumerate(self.client_ids)}
        chosen = tuple(sorted(set(client_ids)))
        if unknown := [client for client in chosen if client not in row]:
            raise ValueError(f"Clients {unknown[:10]} have not been evaluated.")
        rows = torch.tensor([row[client] for client in chosen], dtype=torch.int64)
        return ClientScores(
            client_ids=chosen,
            num_examples=self.num_examples[rows],
            losses=self.losses[rows],
            loss_errors=self.loss_errors[rows],
            accuracies=None if self.accuracies is None else self.accuracies[rows],
            accuracy_errors=None if self.accuracy_errors is None else self.accuracy_errors[rows],
            concordances=None if self.concordances is None else self.concordances[rows],
        )


def client_scores(
    client_ids: Sequence[int],
    num_examples: Sequence[int],
    scores: Mapping[int, Scores | SurvivalScores],
) -> ClientScores:
    """Put clients' scores into a table.

    :param client_ids: The clients, ``N`` of them, sorted.
    :param num_examples: Numbers of test rows, ``N`` of them.
    :param scores: What each of them scored, one at least; clients that did not are left out.
    """
    found = {client: _row(each) for client, each in scores.items()}
    first = next(iter(found.values()))
    none = tuple(None if value is None else torch.full_like(value, math.nan) for value in first)
    rows = [found.get(client, none) for client in client_ids]
    losses, loss_errors, accuracies, accuracy_errors, concordances = (
        _stacked(column) for column in zip(*rows, strict=True)
    )
    assert losses is not None
    assert loss_errors is not None
    return ClientScores(
        client_ids=tuple(client_ids),
        num_examples=torch.tensor(num_examples, dtype=torch.int64),
        losses=losses,
        loss_errors=loss_errors,
        accuracies=accuracies,
        accuracy_errors=accuracy_errors,
        concordances=concordances,
    )


def _stacked(column: Sequence[Tensor | None]) -> Tensor | None:
    values = [value for value in column if value is not None]
    return torch.stack(values) if values else None


def _row(scores: Scores | SurvivalScores) -> tuple[Tensor | None, ...]:
    """One client's losses, their errors, accuracies, their errors, and concordance."""
    if isinstance(scores, SurvivalScores):
        loss, index = scores.loss(), scores.concordance()
        losses = torch.tensor([math.nan if loss is None else loss], dtype=torch.float64)
        concordance = torch.tensor(math.nan if index is None else index, dtype=torch.float64)
        return losses, torch.full_like(losses, math.nan), None, None, concordance
    size = len(scores.losses)
    losses = scores.losses.mean(0)
    # the deviation of a single row is no estimate
    deviation = scores.losses.std(0) if size > 1 else torch.full_like(losses, math.nan)
    errors = deviation / math.sqrt(size)
    if scores.correct is None:
        return losses, errors, None, None, None
    accuracies = scores.correct.to(torch.float64).mean(0)
    return losses, errors, accuracies, (accuracies * (1 - accuracies) / size).sqrt(), None
