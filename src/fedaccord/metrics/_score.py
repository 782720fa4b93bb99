"""What a model scores on each example of a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..clients import Batch
from ..models import Kind, cox_loss
from ._survival import concordance_index


class Scores(NamedTuple):
    """What a model scores on each example of a batch, for ``b`` examples and ``m`` tasks.

    :param losses: ``[b, m]``.
    :param correct: ``[b, m]``, bool: whether the most likely class is the label; ``None`` for tasks
        without classes.
    :param labels: ``[b, m]``, int64: the true classes; ``None`` for tasks without classes.
    """

    losses: Tensor
    correct: Tensor | None = None
    labels: Tensor | None = None


class SurvivalScores(NamedTuple):
    """What a survival model answers on a batch; every measure of it is one of the whole set.

    :param risks: ``[b]``, higher for examples that shall have their event earlier.
    :param times: ``[b]``, when the event happened or observation ended.
    :param events: ``[b]``, bool: whether the event was observed; else the example is censored.
    """

    risks: Tensor
    times: Tensor
    events: Tensor

    def loss(self) -> float | None:
        """Return ``cox_loss`` of the whole set; ``None`` without an event, which says nothing.

        It depends on who else is in the set, so that values of sets of different size do not
        compare: ``n`` equal risks with all events observed give about ``log n - 1``.
        """
        if not self.events.any():
            return None
        targets = torch.stack([self.times, self.events.to(self.times)], 1)
        return cox_loss(nn.Identity(), (self.risks, targets)).item()

    def concordance(self) -> float | None:
        """Return Harrell's index of the whole set; ``None`` without a comparable pair."""
        return concordance_index(*self)


Score: TypeAlias = Callable[[nn.Module, Batch], Scores | SurvivalScores]
"""``score(model, batch)``: what the model scores on each example."""


def class_scores(model: nn.Module, batch: Batch) -> Scores:
    """Score a classifier of one or several tasks, among them next-character models.

    The loss of an example is its cross-entropy. Log-probabilities are logits of themselves, so
    both kinds of output are taken.

    :param batch: Inputs ``[b, ...]`` and labels ``[b]`` or ``[b, m]``; the model answers with
        logits or log-probabilities: one tensor ``[b, C]`` or ``m`` of them.
    :raises ValueError: If the numbers of outputs and of label columns differ, or labels are not
        integers in ``[0, C)``.
    """
    x, y = batch[:2]
    answer = model(x)
    outputs = (answer,) if isinstance(answer, Tensor) else tuple(answer)
    labels = y.reshape(len(y), -1)
    if len(outputs) != labels.shape[1]:
        raise ValueError(
            f"The model must answer with one output per task. "
            f"Got {len(outputs)} outputs for labels of {labels.shape[1]} tasks."
        )
    if labels.is_floating_point():
        raise ValueError(
            f"Labels must be integers. Got {labels.dtype}. For targets that are numbers use "
            f"`score=value_scores`."
        )
    labels = labels.to(torch.int64)
    # checked before the loss, which takes -100 for "leave out" and stops a GPU at other mistakes
    require_labels(labels, [output.shape[1] for output in outputs], "the model's outputs")
    pairs = list(zip(outputs, labels.unbind(1), strict=True))
    losses = [functional.cross_entropy(output, label, reduction="none") for output, label in pairs]
    correct = [output.argmax(1) == label for output, label in pairs]
    return Scores(torch.stack(losses, 1), torch.stack(correct, 1), labels)


def value_scores(model: nn.Module, batch: Batch) -> Scores:
    """Score a regression of one or several tasks.

    The loss of an example is its squared error, in the square of the unit its target has in the
    data. There is no accuracy.

    :param batch: Inputs ``[b, ...]`` and targets ``[b]`` or ``[b, m]``; the model answers with
        ``[b]``, ``[b, m]``, or ``m`` tensors ``[b]`` or ``[b, 1]``.
    :raises ValueError: If the numbers of outputs and of target columns differ.
    """
    x, y = batch[:2]
    answer = model(x)
    parts = (answer,) if isinstance(answer, Tensor) else tuple(answer)
    # [b] minus [b, 1] would be [b, b]
    outputs = torch.cat([part.reshape(len(y), -1) for part in parts], 1)
    targets = y.reshape(len(y), -1)
    if outputs.shape != targets.shape:
        raise ValueError(
            f"The model must answer with one number per task. "
            f"Got {outputs.shape[1]} numbers for targets of {targets.shape[1]} tasks."
        )
    return Scores((outputs - targets.to(outputs)).square())


def survival_scores(model: nn.Module, batch: Batch) -> SurvivalScores:
    """Score a survival model, of one task.

    :param batch: Inputs ``[b, ...]`` and targets ``[b, 2]``: the time, and 1 if the event was
        observed then or 0 if observation ended. The model answers with ``[b]`` or ``[b, 1]``, the
        higher the earlier it expects the event.
    :raises ValueError: If targets or outputs have another shape, or an event is neither 0 nor 1.
    """
    x, y = batch[:2]
    risks = model(x)
    if y.ndim != 2 or y.shape[1] != 2:
        raise ValueError(f"Targets must be [b, 2], time and event. Got {tuple(y.shape)}.")
    if risks.numel() != len(y):
        raise ValueError(
            f"The model must answer with one risk per example. "
            f"Got {tuple(risks.shape)} for {len(y)} examples."
        )
    if not ((y[:, 1] == 0) | (y[:, 1] == 1)).all():
        raise ValueError("Events must be 0 or 1. Swap the columns if times come second.")
    return SurvivalScores(risks.reshape(-1), y[:, 0], y[:, 1] == 1)


def score_for(kinds: Sequence[Kind]) -> Score:
    """Choose the score function for the tasks of a data set.

    :param kinds: What each task predicts, such as ``Dataset.kinds``.
    :raises ValueError: If a kind is unknown, kinds are mixed, or there are several survival tasks.
    """
    known: dict[Kind, Score] = {
        "classes": class_scores,
        "values": value_scores,
        "survival": survival_scores,
    }
    if not kinds or any(kind not in known for kind in kinds):
        raise ValueError(f"Each task's kind must be one of {list(known)}. Got {tuple(kinds)}.")
    if len(set(kinds)) > 1 or (kinds[0] == "survival" and len(kinds) > 1):
        raise ValueError(
            f"Tasks must all predict classes or all numbers, and survival is one task alone. "
            f"Got {tuple(kinds)}. Write a `score` function for other mixtures."
        )
    return known[kinds[0]]


def require_labels(labels: Tensor, num_classes: Sequence[int], meaning: str) -> None:
    """Check that the labels ``[b, m]`` of each task are in range.

    :param num_classes: Number of classes of each task.
    :param meaning: What that number comes from.
    :raises ValueError: If a label is out of range; the message names the task.
    """
    if len(labels) == 0:
        return
    for task, classes in enumerate(num_classes):
        low, high = int(labels[:, task].min()), int(labels[:, task].max())
        if low < 0 or high >= classes:
            raise ValueError(
                f"Labels of task {task} must be in [0, {classes}). Got {low} to {high}. "
                f"The number of classes is that of {meaning}."
            )
