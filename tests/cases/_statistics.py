"""Models with batch-norm statistics, for the cases about buffers and small clients."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from common import Rows
from fedaccord import Federation


class Normalised(nn.Module):
    """A classifier with a batch-norm layer after a linear one."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 4)
        self.norm = nn.BatchNorm1d(4)
        self.head = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.norm(self.linear(x)))


class NormalisedImages(nn.Module):
    """The same after a convolution, so that one sample gives batch-norm several values."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(1, 4, 2)
        self.norm = nn.BatchNorm1d(4)
        self.head = nn.Linear(8, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.norm(self.conv(x[:, None])).flatten(1))


def two_losses(model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
    """Cross-entropies of the labels and of the opposite labels: `[2]`."""
    x, y = batch
    output = model(x)
    loss = nn.functional.cross_entropy
    return torch.stack([loss(output, y), loss(output, 1 - y)])


def normalised_federation(
    sizes: Sequence[int],
    *,
    scale: Sequence[float] | None = None,
    model: type[nn.Module] = Normalised,
) -> Federation:
    """Clients of the given sizes, whose inputs are multiplied by `scale`."""
    source = torch.Generator().manual_seed(1)
    factors = [1.0] * len(sizes) if scale is None else scale
    clients = [
        Rows(torch.randn(size, 3, generator=source) * factor, torch.arange(size) % 2)
        for size, factor in zip(sizes, factors, strict=True)
    ]
    return Federation(model, two_losses, clients, num_tasks=2)
