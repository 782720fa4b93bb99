"""The losses that clients train with: each task's mean over a batch, ``[m]``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..clients import Batch, Losses

Kind: TypeAlias = Literal["classes", "values", "survival"]
"""What a task predicts: a class, a number, or who has an event first."""


def losses_for(kinds: Sequence[Kind]) -> Losses:
    """Choose the loss for the tasks of a dataset.

    :param kinds: What each task predicts, such as ``Dataset.kinds``.
    :return: ``cross_entropy`` for one task with classes, ``multi_task_nll`` for several,
        ``squared_error`` for values, ``cox_loss`` for survival.
    :raises ValueError: If there is no task, a kind is unknown, kinds are mixed, or there are
        several survival tasks.
    """
    match tuple(kinds):
        case ("classes",):
            return cross_entropy
        case ("survival",):
            return cox_loss
        case several if several and set(several) == {"classes"}:
            return multi_task_nll
        case several if several and set(several) == {"values"}:
            return squared_error
    raise ValueError(
        "`kinds` must all be `classes`, all be `values`, or be one `survival` alone. "
        f"Got {tuple(kinds)}. Write a function `losses(model, batch)` for other mixtures."
    )


def cross_entropy(model: nn.Module, batch: Batch) -> Tensor:
    """Return the mean cross-entropy ``[1]`` of a model with logits ``[b, C]``.

    :param batch: Inputs ``[b, ...]`` and labels ``[b]``.
    """
    x, y = batch[:2]
    return functional.cross_entropy(model(x), y).reshape(1)


def multi_task_nll(model: nn.Module, batch: Batch) -> Tensor:
    """Return the mean negative log-likelihood ``[m]`` of a model with one output per task.

    :param batch: Inputs ``[b, ...]`` and labels ``[b, m]``; the model answers with ``m`` tensors of
        log-probabilities ``[b, C_j]``.
    :raises ValueError: If the model answers with anything positive, which is no log-probability.
    """
    x, y = batch[:2]
    outputs = model(x)
    if any(output.detach().max() > 1e-3 for output in outputs):
        raise ValueError(
            "`multi_task_nll` needs log-probabilities, which are at most 0. The model answers with "
            "larger numbers; end each head with `nn.LogSoftmax(dim=1)`."
        )
    return torch.stack(
        [functional.nll_loss(output, y[:, task]) for task, output in enumerate(outputs)]
    )


def squared_error(model: nn.Module, batch: Batch) -> Tensor:
    """Return the mean squared error ``[m]`` of a model with one value per task.

    :param batch: Inputs ``[b, ...]`` and targets ``[b]`` or ``[b, m]``; the model answers with
        ``[b]``, ``[b, m]``, or ``m`` tensors ``[b]`` or ``[b, 1]``.
    :raises ValueError: If the numbers of values and of target columns differ.
    """
    x, y = batch[:2]
    answer = model(x)
    parts = (answer,) if isinstance(answer, Tensor) else tuple(answer)
    # [b] minus [b, 1] would be [b, b]
    values = torch.cat([part.reshape(len(y), -1) for part in parts], dim=1)
    targets = y.reshape(len(y), -1)
    if values.shape != targets.shape:
        raise ValueError(
            f"The model must answer with one number per task. "
            f"Got {values.shape[1]} numbers for targets of {targets.shape[1]} tasks."
        )
    return (values - targets.to(values)).square().mean(dim=0)


def cox_loss(model: nn.Module, batch: Batch) -> Tensor:
    r"""Return Cox's negative log partial likelihood ``[1]`` of the batch, ties as Breslow has them.

    :math:`\frac1{|E|} \sum_{i \in E} (\log \sum_{j: t_j \ge t_i} e^{r_j} - r_i)` over the batch's
    observed events :math:`E`, with the model's risks :math:`r`. Those at risk are those of the
    batch, so the loss depends on the batches; take the largest that fit. A batch without an event
    says nothing: its loss is zero and so is its gradient.

    Source: Cox, "Regression Models and Life-Tables", 1972; Breslow, "Covariance Analysis of
    Censored Survival Data", 1974.

    :param batch: Inputs ``[b, ...]`` and targets ``[b, 2]``: the time, and 1 if the event was
        observed then or 0 if observation ended. The model answers with ``[b]`` or ``[b, 1]``,
        higher for those it expects to have the event earlier.
    :raises ValueError: If targets or answers have another shape.
    """
    x, y = batch[:2]
    risks: Tensor = model(x)
    if y.ndim != 2 or y.shape[1] != 2 or risks.numel() != len(y):
        raise ValueError(
            f"Targets must be [b, 2], time and event, and the model must answer with one risk per "
            f"example. Got targets {tuple(y.shape)} and risks {tuple(risks.shape)}."
        )
    risks, times, observed = risks.reshape(-1), y[:, 0], y[:, 1] != 0
    if not observed.any():
        return (risks * 0).sum().reshape(1)
    at_risk = times >= times[observed].unsqueeze(1)  # [events, b]
    totals = torch.where(at_risk, risks, -torch.inf).logsumexp(dim=1)
    return (totals - risks[observed]).mean().reshape(1)
