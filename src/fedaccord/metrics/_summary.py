"""Summaries that carry what they are about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from ._evaluate import Evaluation
from ._fairness import Values, angle, as_vector, jain_index, spread, worst_fraction
from ._tasks import hypervolume


@dataclass(frozen=True)
class Label:
    """What a number is about.

    :param model: Which model, for example ``"global"``.
    :param moment: When, for example ``"after round 150"``.
    :param population: Over whom, for example ``"all clients"``.
    :param weighting: What counts how much.
    """

    model: str
    moment: str
    population: str
    weighting: str

    def __str__(self) -> str:
        return f"{self.model} model, {self.moment}, {self.population}, {self.weighting}"


@dataclass(frozen=True)
class FairnessSummary:
    """How a quantity of which more is better is distributed over clients.

    :param label: What it is about.
    :param num_clients: Number of clients with a value.
    :param num_missing: Number of clients without, which are left out of everything below.
    :param mean: Mean over clients.
    :param worst: Mean over the worst ``fraction`` of them.
    :param fraction: Which fraction ``worst`` is about.
    :param spread: Population standard deviation.
    :param jain: Jain's index.
    :param angle: Angle to equal values in radians.
    """

    label: Label
    num_clients: int
    num_missing: int
    mean: float
    worst: float
    fraction: float
    spread: float
    jain: float
    angle: float

    def __str__(self) -> str:
        missing = f", {self.num_missing} without a value left out" if self.num_missing else ""
        return (
            f"mean {self.mean:.4f}, worst {100 * self.fraction:g} % {self.worst:.4f}, "
            f"spread {self.spread:.4f}, Jain {self.jain:.4f} "
            f"({self.label}; {self.num_clients} clients{missing})"
        )


@dataclass(frozen=True)
class TaskSummary:
    """What one model reaches on each task; with one task its accuracy is the pooled one.

    :param label: What it is about.
    :param tasks: Name of each task.
    :param losses: Loss of each task.
    :param accuracies: Accuracy of each task, in ``[0, 1]``.
    :param mean_accuracy: Mean over tasks (MeanAcc).
    :param worst_accuracy: Lowest of the tasks (WorstAcc).
    :param mean_loss: Mean over tasks (MeanLoss).
    :param hypervolume: Product of reference minus loss, 0 as soon as one loss reaches it (HV).
    :param reference: The reference of the hypervolume.
    """

    label: Label
    tasks: tuple[str, ...]
    losses: tuple[float, ...]
    accuracies: tuple[float, ...]
    mean_accuracy: float
    worst_accuracy: float
    mean_loss: float
    hypervolume: float
    reference: float

    def __str__(self) -> str:
        each = ", ".join(
            f"{task} {accuracy:.4f} (loss {loss:.4f})"
            for task, accuracy, loss in zip(self.tasks, self.accuracies, self.losses, strict=True)
        )
        return (
            f"{each}; mean accuracy {self.mean_accuracy:.4f}, worst {self.worst_accuracy:.4f}, "
            f"mean loss {self.mean_loss:.4f}, hypervolume {self.hypervolume:.4f} "
            f"below {self.reference:g} ({self.label})"
        )


def fairness_summary(
    values: Values,
    *,
    model: str = "global",
    moment: str,
    population: str = "all clients",
    fraction: float = 0.1,
) -> FairnessSummary:
    """Summarise one value per client, each client counted once.

    :param values: ``[N]``, for example ``client_accuracies``; NaN means that a client has no value.
    :param model: Which model was measured.
    :param moment: When, for example ``"after round 150"``.
    :param population: Which clients the values are of.
    :param fraction: How many count as worst off, in ``(0, 1]``.
    :raises ValueError: If no client has a value, one is negative, or ``fraction`` is out of range.
    """
    array = np.asarray(values.detach().cpu() if isinstance(values, Tensor) else values)
    array = array.astype(np.float64)
    present = array[~np.isnan(array)]
    if len(present) == 0:
        raise ValueError(f"At least one client must have a value. Got none of {array.size}.")
    return FairnessSummary(
        label=Label(model, moment, population, "each client counted once"),
        num_clients=len(present),
        num_missing=array.size - len(present),
        mean=float(present.mean()),
        worst=worst_fraction(present, fraction),
        fraction=fraction,
        spread=spread(present),
        jain=jain_index(present),
        angle=angle(present),
    )


def task_summary(
    evaluation: Evaluation,
    *,
    tasks: Sequence[str],
    model: str = "global",
    moment: str,
    population: str = "whole test set",
    reference: float = 3.0,
) -> TaskSummary:
    """Summarise an evaluation by task, each example counted once.

    :param evaluation: What was measured, ``m`` tasks.
    :param tasks: Name of each task, ``m`` of them.
    :param model: Which model was measured.
    :param moment: When, for example ``"after round 150"``.
    :param population: On which examples.
    :param reference: Reference of the hypervolume.
    :raises ValueError: If the number of names is another or a value is NaN.
    """
    losses = as_vector(evaluation.losses, "losses")
    accuracies = as_vector(evaluation.accuracies, "accuracies")
    if len(tasks) != len(losses):
        raise ValueError(f"`tasks` must name {len(losses)} tasks. Got {tuple(tasks)}.")
    return TaskSummary(
        label=Label(model, moment, population, "each example counted once"),
        tasks=tuple(tasks),
        losses=tuple(losses.tolist()),
        accuracies=tuple(accuracies.tolist()),
        mean_accuracy=float(accuracies.mean()),
        worst_accuracy=float(accuracies.min()),
        mean_loss=float(losses.mean()),
        hypervolume=hypervolume(losses, reference),
        reference=reference,
    )
