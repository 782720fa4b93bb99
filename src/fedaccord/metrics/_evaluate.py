"""One pass of a model over a set of examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..clients import ClientData
from ._score import Score, class_scores


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What one model scores on one set of examples, each example counted once; ``m`` tasks.

    :param losses: ``[m]`` float64, the mean loss of each task.
    :param accuracies: ``[m]`` float64, the fraction that is correct, in ``[0, 1]``.
    :param class_accuracies: For each task ``[C_j]`` float64, the fraction of each class that is
        correct; NaN for a class without examples.
    :param class_counts: For each task ``[C_j]`` int64, the number of examples of each class.
    :param num_examples: Number of examples.
    """

    losses: Tensor
    accuracies: Tensor
    class_accuracies: tuple[Tensor, ...]
    class_counts: tuple[Tensor, ...]
    num_examples: int


def evaluate(
    model: nn.Module,
    data: ClientData,
    *,
    num_classes: Sequence[int] | int,
    score: Score = class_scores,
    batch_size: int = 1000,
) -> Evaluation:
    """Score a model on every example, once, in evaluation mode and without gradients.

    Afterwards the model's training flags are as before.

    :param model: The model; batches are moved to its device.
    :param data: The examples, at least one.
    :param num_classes: Number of classes of each task, ``m`` of them; one number for one task.
    :param score: What a batch scores; the default takes logits or log-probabilities of one or
        several tasks.
    :param batch_size: Examples at a time, at least 1; the result is the same up to rounding.
    :raises ValueError: If there is no example, a loss is NaN, a label is not in
        ``[0, num_classes)``, or the number of tasks is another.
    """
    if not hasattr(data, "batch"):
        raise TypeError(
            f"`data` must have `batch(index)`. Got {type(data).__name__}. "
            "`fedaccord.data.ArrayData.of(x, y)` makes it from arrays."
        )
    if batch_size < 1:
        raise ValueError(f"`batch_size` must be at least 1. Got {batch_size}.")
    classes_of = (num_classes,) if isinstance(num_classes, int) else tuple(num_classes)
    if len(data) == 0:
        raise ValueError("An evaluation needs at least one example. Got none.")
    device = next((parameter.device for parameter in model.parameters()), None)
    flags = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.inference_mode():
            batches = [
                score(model, tuple(part.to(device) for part in data.batch(index)))
                for index in torch.arange(len(data)).split(batch_size)
            ]
    finally:
        for module, training in flags:
            module.training = training
    losses, correct, labels = (torch.cat(part).cpu() for part in zip(*batches, strict=True))
    _require_scores(losses, labels, classes_of)
    totals, hits = zip(
        *(
            _count(correct[:, task], labels[:, task], classes)
            for task, classes in enumerate(classes_of)
        ),
        strict=True,
    )
    return Evaluation(
        losses=losses.to(torch.float64).mean(0),
        accuracies=correct.to(torch.float64).mean(0),
        class_accuracies=tuple(hit / total for hit, total in zip(hits, totals, strict=True)),
        class_counts=totals,
        num_examples=len(data),
    )


def _count(correct: Tensor, labels: Tensor, num_classes: int) -> tuple[Tensor, Tensor]:
    total = torch.bincount(labels, minlength=num_classes)
    hit = torch.bincount(labels[correct], minlength=num_classes).to(torch.float64)
    return total, hit


def _require_scores(losses: Tensor, labels: Tensor, num_classes: Sequence[int]) -> None:
    if labels.shape[1] != len(num_classes):
        raise ValueError(
            f"`num_classes` must have one entry per task. "
            f"Got {tuple(num_classes)} for {labels.shape[1]} tasks."
        )
    for task, classes in enumerate(num_classes):
        low, high = int(labels[:, task].min()), int(labels[:, task].max())
        if low < 0 or high >= classes:
            raise ValueError(
                f"Labels of task {task} must be in [0, {classes}). Got {low} to {high}."
            )
        if losses[:, task].isnan().any():
            raise ValueError(
                f"The loss of task {task} must be a number. The model answers with NaN."
            )
