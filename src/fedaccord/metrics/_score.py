"""What a classifier scores on each example of a batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..clients import Batch


class Scores(NamedTuple):
    """What a model scores on each example of a batch, for ``b`` examples and ``m`` tasks.

    :param losses: ``[b, m]``.
    :param correct: ``[b, m]``, bool: whether the most likely class is the label.
    :param labels: ``[b, m]``, int64: the true classes.
    """

    losses: Tensor
    correct: Tensor
    labels: Tensor


Score: TypeAlias = Callable[[nn.Module, Batch], Scores]
"""``score(model, batch)``: what the model scores on each example."""


def class_scores(model: nn.Module, batch: Batch) -> Scores:
    """Score a classifier of one or several tasks.

    The loss of an example is its cross-entropy. Log-probabilities are logits of themselves, so
    both kinds of output are taken.

    :param batch: Inputs ``[b, ...]`` and labels ``[b]`` or ``[b, m]``; the model answers with
        logits or log-probabilities: one tensor ``[b, C]`` or ``m`` of them.
    :raises ValueError: If the numbers of outputs and of label columns differ.
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
    pairs = list(zip(outputs, labels.unbind(1), strict=True))
    losses = [functional.cross_entropy(output, label, reduction="none") for output, label in pairs]
    correct = [output.argmax(1) == label for output, label in pairs]
    return Scores(torch.stack(losses, 1), torch.stack(correct, 1), labels)
