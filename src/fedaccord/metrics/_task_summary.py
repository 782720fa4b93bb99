"""What one model reaches on each task, in one value that says what it is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ._evaluate import Evaluation
from ._label import EACH_EXAMPLE, Label
from ._tasks import hypervolume
from ._values import Values, Vector, as_finite, as_vector

# of the evaluation of FedHV, whose tasks are classifications of about ten classes
REFERENCE = 3.0


@dataclass(frozen=True)
class TaskSummary:
    """What one model reaches on each task; with one task its accuracy is the pooled one.

    :param label: What it is about.
    :param tasks: Name of each task.
    :param losses: Loss of each task; for numbers the mean squared error in the data's unit.
    :param accuracies: Accuracy of each task, in ``[0, 1]``; ``None`` for tasks without classes.
    :param mean_accuracy: Mean over tasks (MeanAcc).
    :param worst_accuracy: Lowest of the tasks (WorstAcc).
    :param mean_loss: Mean over tasks (MeanLoss).
    :param hypervolume: Product of reference minus loss, 0 as soon as one loss reaches it (HV);
        ``None`` without a reference.
    :param reference: The reference of the hypervolume.
    :param unit_losses: Mean squared error of each task in the square of its own unit.
    :param concordance: Harrell's index of a survival task.
    """

    label: Label
    tasks: tuple[str, ...]
    losses: tuple[float, ...]
    accuracies: tuple[float, ...] | None
    mean_accuracy: float | None
    worst_accuracy: float | None
    mean_loss: float
    hypervolume: float | None
    reference: float | None
    unit_losses: tuple[float, ...] | None = None
    concordance: float | None = None

    def __str__(self) -> str:
        if self.accuracies is None:
            pairs = zip(self.tasks, self.losses, strict=True)
            each = ", ".join(f"{task} loss {loss:.4f}" for task, loss in pairs)
        else:
            triples = zip(self.tasks, self.accuracies, self.losses, strict=True)
            each = ", ".join(
                f"{task} {accuracy:.4f} (loss {loss:.4f})" for task, accuracy, loss in triples
            )
        means = [
            f"{name} {value:.4f}"
            for name, value in (
                ("mean accuracy", self.mean_accuracy),
                ("worst", self.worst_accuracy),
                ("mean loss", self.mean_loss),
                ("concordance", self.concordance),
            )
            if value is not None
        ]
        if self.hypervolume is not None:
            means.append(f"hypervolume {self.hypervolume:.4f} below {self.reference:g}")
        return f"{each}; {', '.join(means)} ({self.label})"


def task_summary(
    evaluation: Evaluation,
    *,
    tasks: Sequence[str],
    model: str = "global",
    moment: str,
    population: str = "whole test set",
    reference: float | None = None,
    target_scales: Values | None = None,
) -> TaskSummary:
    """Summarise an evaluation by task, each example counted once.

    :param evaluation: What was measured, ``m`` tasks.
    :param tasks: Name of each task, ``m`` of them.
    :param model: Which model was measured.
    :param moment: When, for example ``"after 150 rounds"``.
    :param population: On which examples.
    :param reference: Reference of the hypervolume; 3 if not given and the tasks have classes.
    :param target_scales: ``[m]``, above 0: what each target was divided by when the data were
        standardised. Then ``unit_losses`` are the losses times its square.
    :raises ValueError: If the number of names or scales is another, or a loss is NaN, except that
        of survival without events.
    """
    survival = evaluation.accuracies is None and evaluation.losses.isnan().all()
    losses = as_vector(evaluation.losses, "losses", missing=bool(survival))
    if len(tasks) != len(losses):
        raise ValueError(f"`tasks` must name {len(losses)} tasks. Got {tuple(tasks)}.")
    accuracies = None
    if evaluation.accuracies is not None:
        accuracies = as_vector(evaluation.accuracies, "accuracies")
        reference = REFERENCE if reference is None else reference
    return TaskSummary(
        label=Label(model, moment, population, EACH_EXAMPLE),
        tasks=tuple(tasks),
        losses=tuple(losses.tolist()),
        accuracies=None if accuracies is None else tuple(accuracies.tolist()),
        mean_accuracy=None if accuracies is None else float(accuracies.mean()),
        worst_accuracy=None if accuracies is None else float(accuracies.min()),
        mean_loss=float(losses.mean()),
        hypervolume=None if reference is None else hypervolume(losses, reference),
        reference=reference,
        unit_losses=None if target_scales is None else _in_units(losses, target_scales),
        concordance=evaluation.concordance,
    )


def _in_units(losses: Vector, target_scales: Values) -> tuple[float, ...]:
    scales = as_finite(target_scales, "target_scales")
    if len(scales) != len(losses) or scales.min() <= 0:
        raise ValueError(
            f"`target_scales` must be above 0, one per task, {len(losses)} of them. "
            f"Got {scales.tolist()}."
        )
    return tuple((losses * scales**2).tolist())
