"""When a target is reached, and who gains by joining."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ._values import Values, as_vector


def rounds_to_reach(
    curve: Mapping[int, float] | Iterable[tuple[int, float]],
    target: float,
    *,
    higher_is_better: bool = True,
    window: int | None = None,
) -> int | None:
    """Return after how many rounds a curve first reaches a target.

    :param curve: Pairs of rounds done and value, in the order of rounds. Only these are looked at:
        a target reached between two evaluations is found at the second.
    :param target: The value to reach; equal counts.
    :param higher_is_better: ``True`` for accuracies, ``False`` for losses.
    :param window: Compare the mean of so many evaluations in a row, at least 1, so that one lucky
        evaluation does not count; the round is that of the last of them. ``None`` means 1.
    :return: The rounds, or ``None`` if the target is never reached. NaN reaches nothing.
    :raises ValueError: If the target is NaN, rounds do not increase, or ``window`` is below 1.
    """
    if math.isnan(target):
        raise ValueError("`target` must be a number. Got NaN.")
    size = 1 if window is None else window
    if size < 1:
        raise ValueError(f"`window` must be at least 1. Got {window}.")
    pairs = tuple(curve.items()) if isinstance(curve, Mapping) else tuple(curve)
    rounds, values = [int(done) for done, _ in pairs], [float(value) for _, value in pairs]
    if any(later <= earlier for earlier, later in itertools.pairwise(rounds)):
        raise ValueError(f"`curve` must be in the order of rounds, each once. Got {rounds}.")
    for end in range(size, len(values) + 1):
        reached = _mean(values[end - size : end])
        if reached >= target if higher_is_better else reached <= target:
            return rounds[end - 1]
    return None


def _mean(values: Sequence[float]) -> float:
    """The mean, NaN if a value is; that of equal values is their value to the last bit."""
    mean = sum(values) / len(values)
    return mean if math.isnan(mean) else min(max(mean, min(values)), max(values))


@dataclass(frozen=True, eq=False)
class Gain:
    """What clients gain by training together.

    :param gains: ``[N]`` float64, positive for a client that is better off; NaN for one that lacks
        one of the two values.
    :param num_clients: Number of clients with both values.
    :param num_missing: Number without, which are left out of everything else.
    :param losers: Ids of the clients that are worse off than alone.
    :param mean: Mean gain, each client counted once.
    :param worst: Lowest gain.
    """

    gains: Tensor
    num_clients: int
    num_missing: int
    losers: tuple[int, ...]
    mean: float
    worst: float

    @property
    def num_losers(self) -> int:
        """Number of clients that are worse off than alone."""
        return len(self.losers)


def gain_over_local(
    values: Values,
    local_values: Values,
    *,
    higher_is_better: bool = True,
    client_ids: Sequence[int] | None = None,
) -> Gain:
    """Compare what each client has from training together with what it has from training alone.

    :param values: ``[N]``, with the model under test; NaN for a client without a value.
    :param local_values: ``[N]``, of the same clients with a model trained on their own data only.
    :param higher_is_better: ``True`` for accuracies, ``False`` for losses.
    :param client_ids: ``[N]``, the clients; ``0`` to ``N - 1`` if not given.
    :raises ValueError: If lengths differ, or no client has both values.
    """
    joined = as_vector(values, "values", missing=True)
    alone = as_vector(local_values, "local_values", missing=True)
    ids = range(len(joined)) if client_ids is None else client_ids
    if not len(joined) == len(alone) == len(ids):
        raise ValueError(
            f"`values`, `local_values` and `client_ids` must have equal lengths. "
            f"Got {len(joined)}, {len(alone)} and {len(ids)}."
        )
    # two infinite losses are equal, though their difference is NaN
    differences = np.subtract(joined, alone, out=np.zeros_like(joined), where=joined != alone)
    gains = differences if higher_is_better else -differences
    present = gains[~np.isnan(gains)]
    if len(present) == 0:
        raise ValueError(f"At least one client must have both values. Got none of {len(gains)}.")
    return Gain(
        gains=torch.from_numpy(gains),
        num_clients=len(present),
        num_missing=len(gains) - len(present),
        losers=tuple(client for client, gain in zip(ids, gains, strict=True) if gain < 0),
        mean=float(present.mean()),
        worst=float(present.min()),
    )
