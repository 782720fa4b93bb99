"""One pass of a model over a set of examples."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from ..clients import Batch, ClientData
from ._score import Score, Scores, SurvivalScores, class_scores, require_labels


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What one model scores on one set of examples, each example counted once; ``m`` tasks.

    :param losses: ``[m]`` float64, the mean loss of each task; NaN for survival without events.
    :param accuracies: ``[m]`` float64, the fraction that is correct, in ``[0, 1]``; ``None`` for
        tasks without classes.
    :param class_accuracies: For each task ``[C_j]`` float64, the fraction of each class that is
        correct; NaN for a class without examples. Empty for tasks without classes.
    :param class_counts: For each task ``[C_j]`` int64, the number of examples of each class.
    :param num_examples: Number of examples.
    :param concordance: Harrell's index of a survival model; ``None`` if no pair is comparable.
    """

    losses: Tensor
    accuracies: Tensor | None
    class_accuracies: tuple[Tensor, ...]
    class_counts: tuple[Tensor, ...]
    num_examples: int
    concordance: float | None = None


def evaluate(
    model: nn.Module,
    data: ClientData,
    *,
    num_classes: Sequence[int] | int | None = None,
    score: Score = class_scores,
    batch_size: int = 1000,
) -> Evaluation:
    """Score a model on every example, once, in evaluation mode and without gradients.

    Afterwards the model's training flags are as before.

    :param model: The model; batches are moved to its device.
    :param data: The examples, at least one.
    :param num_classes: Number of classes of each task, ``m`` of them; one number for one task;
        ``None`` for tasks without classes.
    :param score: What a batch scores; the default takes logits or log-probabilities of one or
        several tasks. ``score_for(kinds)`` chooses for other tasks.
    :param batch_size: Examples at a time, at least 1; the result is the same up to rounding.
    :raises ValueError: If there is no example, a loss is NaN, a label is not in
        ``[0, num_classes)``, or the number of tasks is another.
    """
    require_data(data, "`data`")
    require_batch_size(batch_size)
    if len(data) == 0:
        raise ValueError("An evaluation needs at least one example. Got none.")
    batches = (data.batch(index) for index in torch.arange(len(data)).split(batch_size))
    scores = scores_of(model, batches, score)
    classes = () if num_classes is None else require_classes(scores, num_classes)
    if isinstance(scores, SurvivalScores):
        return _survival_evaluation(scores)
    if scores.labels is None or scores.correct is None:
        return Evaluation(scores.losses.mean(0), None, (), (), len(data))
    if num_classes is None:
        raise ValueError("`num_classes` must be given for tasks with classes. Got None.")
    totals, hits = zip(
        *(
            _count(scores.correct[:, task], scores.labels[:, task], number)
            for task, number in enumerate(classes)
        ),
        strict=True,
    )
    return Evaluation(
        losses=scores.losses.mean(0),
        accuracies=scores.correct.to(torch.float64).mean(0),
        class_accuracies=tuple(hit / total for hit, total in zip(hits, totals, strict=True)),
        class_counts=totals,
        num_examples=len(data),
    )


def scores_of(model: nn.Module, batches: Iterable[Batch], score: Score) -> Scores | SurvivalScores:
    """Score every example of some batches in evaluation mode, on the model's device.

    :return: The scores of all, on the CPU, in the batches' order, floating-point ones as float64.
    :raises TypeError: If the model is none.
    :raises ValueError: If an answer is NaN.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(
            f"A model must be a module, such as `federation.module(training)`. "
            f"Got {type(model).__name__}."
        )
    device = next((parameter.device for parameter in model.parameters()), None)
    with _evaluation_mode(model), torch.inference_mode():
        parts = [score(model, tuple(part.to(device) for part in batch)) for batch in batches]
    columns = [_joined(column) for column in zip(*parts, strict=True)]
    first = columns[0]
    assert first is not None
    answers = first.reshape(len(first), -1)  # losses, or risks
    for task, bad in enumerate(answers.isnan().any(0).tolist()):
        if bad:
            raise ValueError(
                f"The loss of task {task} must be a number. The model answers with NaN."
            )
    return type(parts[0])(*columns)  # type: ignore[arg-type]  # as optional as they came


def require_data(data: object, name: str) -> None:
    """Check that something can be evaluated on.

    :raises TypeError: If it has no ``batch``.
    """
    if not hasattr(data, "batch"):
        raise TypeError(
            f"{name} must have `batch(index)`. Got {type(data).__name__}. "
            "`fedaccord.data.ArrayData.of(x, y)` makes it from arrays."
        )


def require_batch_size(batch_size: int) -> None:
    """Check the number of examples at a time.

    :raises ValueError: If it is below 1.
    """
    if batch_size < 1:
        raise ValueError(f"`batch_size` must be at least 1. Got {batch_size}.")


def require_classes(
    scores: Scores | SurvivalScores, num_classes: Sequence[int] | int
) -> tuple[int, ...]:
    """Check the labels of some scores, and return the number of classes of each task.

    :raises ValueError: If the tasks have no classes, their number is another, or a label is not in
        ``[0, num_classes)``.
    """
    # `int` alone would refuse NumPy's integers
    counts = (num_classes,) if isinstance(num_classes, int | np.integer) else tuple(num_classes)
    labels = None if isinstance(scores, SurvivalScores) else scores.labels
    if labels is None:
        raise ValueError(f"`num_classes` must be None for tasks without classes. Got {counts}.")
    if labels.shape[1] != len(counts):
        raise ValueError(
            f"`num_classes` must have one entry per task. Got {counts} for {labels.shape[1]} tasks."
        )
    require_labels(labels, counts, "`num_classes`")
    return counts


@contextlib.contextmanager
def naming(client: int) -> Iterator[None]:
    """Name the client in the message of a ``ValueError``."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"Client {client}: {error}") from error


@contextlib.contextmanager
def _evaluation_mode(model: nn.Module) -> Iterator[None]:
    flags = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in flags:
            module.training = training


def _joined(column: Sequence[Tensor | None]) -> Tensor | None:
    parts = [part.cpu() for part in column if part is not None]
    if not parts:
        return None
    whole = torch.cat(parts)
    return whole.to(torch.float64) if whole.is_floating_point() else whole


def _count(correct: Tensor, labels: Tensor, num_classes: int) -> tuple[Tensor, Tensor]:
    total = torch.bincount(labels, minlength=num_classes)
    hit = torch.bincount(labels[correct], minlength=num_classes).to(torch.float64)
    return total, hit


def _survival_evaluation(scores: SurvivalScores) -> Evaluation:
    loss = scores.loss()
    return Evaluation(
        losses=torch.tensor([math.nan if loss is None else loss], dtype=torch.float64),
        accuracies=None,
        class_accuracies=(),
        class_counts=(),
        num_examples=len(scores.risks),
        concordance=scores.concordance(),
    )
