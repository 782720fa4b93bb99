"""Clients whose loss is ``a / 2 |w - c|^2``, so that trajectories can be worked out by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from common import Point, Rows
from fedaccord import Federation, LocalSGD, RoundResult, Rule, run_round, start


def curved_distance(model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
    """Half the mean squared distance of `w` to the points, times each one's curvature: `[1]`."""
    points, curvatures = batch
    return (curvatures * ((model.w - points) ** 2).sum(1)).mean().reshape(1) / 2


def quadratics(
    clients: Sequence[Mapping[str, Any]], *, num_examples: Sequence[int] | None = None
) -> Federation:
    """One client for each curvature ``a`` and centre ``c``, the latter as often as said."""
    counts = [1] * len(clients) if num_examples is None else num_examples
    data = [
        Rows(
            torch.tensor([client["c"]] * count, dtype=torch.float64),
            torch.full((count,), client["a"], dtype=torch.float64),
        )
        for client, count in zip(clients, counts, strict=True)
    ]
    dim = len(clients[0]["c"])
    return Federation(lambda: Point(dim), curved_distance, data)


def rounds_of(
    rule: Rule[Any],
    federation: Federation,
    asked: Sequence[Sequence[int]],
    local: LocalSGD,
    **options: Any,
) -> list[RoundResult]:
    """One round for each list of clients."""
    training, results = start(rule, federation), []
    for client_ids in asked:
        result = run_round(
            rule, federation, training, client_ids=client_ids, local=local, **options
        )
        training = result.training
        results.append(result)
    return results
