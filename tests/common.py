"""Small inputs that many tests share."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from fedaccord import Cohort, Federation, Layout, Reply, Spec

EXAMPLES = json.loads((Path(__file__).parent / "data" / "examples.json").read_text())


def examples(algorithm: str) -> list[Any]:
    """The worked examples of one algorithm, for `pytest.mark.parametrize`."""
    return [entry for entry in EXAMPLES if entry["algorithm"] == algorithm]


def flat_layout(dim: int) -> Layout:
    return Layout(("w",), ((dim,),))


def spec(dim: int = 2, num_clients: int = 10, num_tasks: int = 1) -> Spec:
    return Spec(flat_layout(dim), num_clients, num_tasks)


def make_cohort(
    updates: Sequence[Sequence[float]] | Tensor,
    *,
    client_ids: Sequence[int] | None = None,
    num_examples: Sequence[int] | None = None,
    round: int = 0,
    dtype: torch.dtype = torch.float64,
    **fields: Sequence[Any],
) -> Cohort:
    """A cohort from rows; other fields are given one entry a client."""
    rows = torch.as_tensor(updates, dtype=dtype)
    ids = list(range(len(rows))) if client_ids is None else client_ids
    counts = [1] * len(rows) if num_examples is None else num_examples
    return Cohort.stack(
        [
            Reply(
                client,
                count,
                {
                    "update": row,
                    **{
                        name: torch.as_tensor(values[i], dtype=torch.float64)
                        for name, values in fields.items()
                    },
                },
            )
            for i, (client, count, row) in enumerate(zip(ids, counts, rows, strict=True))
        ],
        round=round,
        layout=flat_layout(rows.shape[1]),
    )


class Rows:
    """Client data held as tensors."""

    def __init__(self, *parts: Tensor) -> None:
        self.parts = parts

    def __len__(self) -> int:
        return len(self.parts[0])

    def batch(self, index: Tensor) -> tuple[Tensor, ...]:
        return tuple(part[index] for part in self.parts)


class Point(nn.Module):
    """A model that is its parameter `w`."""

    def __init__(self, dim: int = 2, start: float = 0.0) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.full((dim,), start, dtype=torch.float64))


def squared_distance(model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
    """Half the mean squared distance of `w` to the batch's points: `[1]`."""
    return ((model.w - batch[0]) ** 2).sum(1).mean().reshape(1) / 2


def quadratic_federation(centres: Sequence[Sequence[Sequence[float]]]) -> Federation:
    """Each client pulls `w` towards its points."""
    clients = [Rows(torch.tensor(points, dtype=torch.float64)) for points in centres]
    dim = clients[0].parts[0].shape[1]
    return Federation(lambda: Point(dim), squared_distance, clients)


def two_task_distances(model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
    """One such distance for each of two tasks: `[2]`."""
    return torch.stack([((model.w - points) ** 2).sum(1).mean() / 2 for points in batch])


def classification_federation(
    num_clients: int = 6, *, examples: int = 12, dropout: float = 0.0, seed: int = 3
) -> Federation:
    """Small linear classifiers in float64 on clients that hold different classes."""
    rng = torch.Generator().manual_seed(seed)
    clients = []
    for client in range(num_clients):
        x = torch.randn(examples, 5, generator=rng, dtype=torch.float64) + client % 3
        y = (torch.arange(examples) + client) % 3
        clients.append(Rows(x, y))

    def model() -> nn.Module:
        return nn.Sequential(
            nn.Linear(5, 4), nn.ReLU(), nn.Dropout(dropout), nn.Linear(4, 3)
        ).double()

    def losses(module: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
        return nn.functional.cross_entropy(module(batch[0]), batch[1]).reshape(1)

    return Federation(model, losses, clients)
