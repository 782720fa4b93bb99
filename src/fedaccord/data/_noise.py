"""Clients whose inputs are noisy, each more than the one before."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from ..clients import Batch, ClientData
from ..random import derive, generator
from ._arrays import as_rows, require_rows
from ._feasibility import as_whole
from ._labels import Indices


@dataclass(frozen=True, eq=False)
class NoisyData:
    """A client's data with noise on the inputs, added when a batch is made.

    A sample's noise is the same whenever, in whatever batch and in whatever subset it is seen.

    :param data: The data without noise; inputs are the first part of a batch.
    :param scale: Standard deviation of the noise, at least 0.
    :param seed: Of this client's noise.
    :param rows: Which samples of ``data`` these are, int64 ``[k]``; ``None`` means all.
    """

    data: ClientData
    scale: float
    seed: int
    rows: Tensor | None = None

    def __len__(self) -> int:
        return len(self.data) if self.rows is None else len(self.rows)

    def batch(self, index: Tensor) -> Batch:
        """The samples at ``index``, int64 ``[b]``."""
        rows = index if self.rows is None else self.rows[index]
        inputs, *rest = self.data.batch(rows)
        if not inputs.is_floating_point():
            raise ValueError(
                f"Only floating-point inputs can have noise. Got {inputs.dtype}. Convert them."
            )
        return inputs + self.scale * self._noise(rows, inputs), *rest

    def subset(self, index: Indices | Tensor | Sequence[int]) -> NoisyData:
        """Some of the samples, with the noise they have here.

        :param index: Which, ``[k]`` in ``[0, len(self))``.
        :raises ValueError: If an index is out of range.
        """
        chosen = as_rows(index)
        require_rows(chosen, len(self))
        return replace(self, rows=chosen if self.rows is None else self.rows[chosen])

    @property
    def inputs(self) -> Tensor:
        """All inputs ``[n, ...]``, with their noise."""
        return self.batch(torch.arange(len(self)))[0]

    @property
    def targets(self) -> Tensor:
        """All targets ``[n, ...]``."""
        return self.data.batch(torch.arange(len(self)) if self.rows is None else self.rows)[1]

    def _noise(self, rows: Tensor, like: Tensor) -> Tensor:
        noise = torch.empty(like.shape, dtype=like.dtype)
        for place, row in enumerate(rows.tolist()):
            noise[place].normal_(generator=generator(self.seed, row))
        return noise.to(like.device)


def noisy_clients(
    clients: Sequence[ClientData], *, variance: float, seed: int = 0
) -> tuple[NoisyData, ...]:
    r"""Add Gaussian noise to the clients' inputs, more from client to client.

    Client ``i`` of ``N``, counted from 1, gets noise of variance :math:`\sigma i / N` on every
    entry of its inputs. Nothing is copied or computed before a batch is asked for.

    Source: Li, Diao, Chen, He, ICDE 2022, arXiv:2102.02079 (NIID-Bench), "noise-based
    feature imbalance".

    :param clients: ``len`` and ``batch`` each, such as ``ArrayData``; inputs are floating-point.
    :param variance: That of the last client, :math:`\sigma`, finite and at least 0.
    :param seed: Any integer.
    :return: The clients, in the same order.
    :raises ValueError: If ``variance`` is out of range.
    """
    seed = as_whole("seed", seed)
    if not 0 <= variance < math.inf:
        raise ValueError(f"`variance` must be finite and at least 0. Got {variance}.")
    scales = np.sqrt(variance * np.arange(1, len(clients) + 1) / max(len(clients), 1))
    return tuple(
        NoisyData(data, scale, derive(seed, "noise", client))
        for client, (data, scale) in enumerate(zip(clients, scales.tolist(), strict=True))
    )
