"""Losses of the received model on a client's data."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from .base import Job
from .randomness import SeededOperations


def report_losses(
    job: Job, model: nn.Module, *, budget: Literal["all"] | int, batch_size: int
) -> Tensor:
    """Mean loss of each task at the parameters ``model`` holds, evaluation mode, float64 ``[m]``.

    :param job: Gives data and losses; draws from its stream ``"report"``, so that reporting does
        not change which minibatches training sees.
    :param model: Holds the received model; left in evaluation mode.
    :param budget: ``"all"`` of the data, or this many minibatches drawn without replacement
        (all of the data if there are fewer).
    :param batch_size: Examples a minibatch of the report.
    """
    size, device = len(job.data), job.params.device
    if budget == "all":
        # the mean does not depend on how the data is cut, so cut it coarsely
        minibatches = torch.arange(size).split(max(batch_size, 512))
    else:
        order = torch.randperm(size, generator=job.generator("report"))
        minibatches = order[: budget * batch_size].split(batch_size)
    randomness = SeededOperations(job.generator("report", "model", device=device))
    total = torch.zeros(job.num_tasks, dtype=torch.float64, device=device)
    model.eval()
    with torch.no_grad():
        for index in minibatches:
            with randomness.step():
                total += job.task_losses(model, job.batch(index)).to(torch.float64) * len(index)
    return (total / sum(len(index) for index in minibatches)).cpu()
