"""FedHEAL: parameters a client moves against its own habit are left out; distance gives weight."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ..cohort import Cohort
from ..layout import Spec
from ..linalg import norm
from ..rule import Aggregation, Claims, Diagnostic, Rule
from ._checks import check_server_lr, check_state
from ._diagnostics import by_client, cosines


@dataclass(frozen=True)
class ClientHabit:
    r"""What FedHEAL remembers of one client.

    :param rounds: In how many rounds it took part.
    :param nonnegative: In how many of them each entry of its delta was at least 0, int32 ``[dim]``.
    :param trend: The running share of distance; :math:`\delta_i`.
    :param weight: The accumulated weight, not normalised; :math:`W_i`.
    """

    rounds: int
    nonnegative: Tensor
    trend: float
    weight: float


@dataclass(frozen=True)
class FedHEALState:
    """What FedHEAL remembers.

    :param clients: Each client's habit, by id.
    """

    clients: Mapping[int, ClientHabit] = field(default_factory=dict)


@dataclass(frozen=True)
class FedHEAL(Rule[FedHEALState]):
    r"""Masked updates, weighted by accumulated distance, averaged entry by entry.

    An entry counts if its sign agrees with more than ``threshold`` of the client's earlier rounds.
    Weights grow with the client's distance from the global model.

    :param threshold: In ``[0, 1)``; :math:`\theta`.
    :param beta: Share of the newest distance in its running mean, in ``[0, 1]``.
    :param server_lr: Factor of the step, positive; the paper's algorithm is 1.

    Deviation: with partial participation, which the paper does not define, a client's own rounds
    are counted, distances are shared out within the cohort, and absent clients keep what they had.
    That is ours.
    """

    threshold: float = 0.3
    beta: float = 0.4
    server_lr: float = 1.0

    paper = "Chen, Huang, Ye, CVPR 2024, FedHEAL"
    state_types = (FedHEALState, ClientHabit)

    def __post_init__(self) -> None:
        if not 0 <= self.threshold < 1:
            raise ValueError(f"`threshold` must be in [0, 1). Got {self.threshold}.")
        if not 0 <= self.beta <= 1:
            raise ValueError(f"`beta` must be in [0, 1]. Got {self.beta}.")
        check_server_lr(self.server_lr)

    @property
    def claims(self) -> Claims:
        """Signs and shares of distance do not depend on scale."""
        return Claims(scale_equivariant=True)

    def init(self, spec: Spec) -> FedHEALState:
        """No habits."""
        return FedHEALState()

    def aggregate(self, state: FedHEALState, cohort: Cohort) -> Aggregation[FedHEALState]:
        """Mask, weigh, and average every entry over the clients that kept it."""
        check_state(state, FedHEALState)
        n, blocks = len(cohort), cohort.blocks.values()
        known = [state.clients.get(client) for client in cohort.client_ids]
        signs = [delta >= 0 for delta in cohort.deltas]
        masks = [self._mask(habit, sign) for habit, sign in zip(known, signs, strict=True)]
        distances = torch.tensor(
            [
                sum(norm((update * mask)[block]) for block in blocks)
                for update, mask in zip(cohort.updates, masks, strict=True)
            ],
            dtype=torch.float64,
        )
        total = float(distances.sum())
        shares = distances / total if total > 0 else torch.full_like(distances, 1 / n)
        habits = {
            client: self._after(habit, sign, share, n)
            for client, habit, sign, share in zip(
                cohort.client_ids, known, signs, shares.tolist(), strict=True
            )
        }
        weights = torch.tensor([habit.weight for habit in habits.values()], dtype=torch.float64)
        weights = weights / weights.sum()

        step = self.server_lr * _average_kept(cohort.updates, masks, weights)
        step = step.to(cohort.updates.dtype)
        seen: dict[str, Diagnostic] = {
            "outcome": "moved" if step.any() else "stationary",
            "weights": by_client(cohort, weights),
            "distances": by_client(cohort, distances),
            "masked": by_client(cohort, [1 - float(m.double().mean()) for m in masks]),
            "entries_nobody_kept": int((~torch.stack(masks).any(0)).sum()),
            "cosines": cosines(cohort, step),
        }
        return Aggregation(step, FedHEALState({**state.clients, **habits}), seen)

    def _mask(self, habit: ClientHabit | None, sign: Tensor) -> Tensor:
        if habit is None:
            return torch.ones_like(sign)
        agreeing = torch.where(sign, habit.nonnegative, habit.rounds - habit.nonnegative)
        return agreeing.to(torch.float64) / habit.rounds > self.threshold

    def _after(self, habit: ClientHabit | None, sign: Tensor, share: float, n: int) -> ClientHabit:
        if habit is None:
            habit = ClientHabit(0, torch.zeros_like(sign, dtype=torch.int32), 0.0, 1 / n)
        trend = (1 - self.beta) * habit.trend + self.beta * share
        return ClientHabit(habit.rounds + 1, habit.nonnegative + sign, trend, habit.weight + trend)


def _average_kept(updates: Tensor, masks: list[Tensor], weights: Tensor) -> Tensor:
    """Each entry's weighted mean over the clients whose mask keeps it, float64; else 0."""
    moved = torch.zeros(updates.shape[1], dtype=torch.float64, device=updates.device)
    kept = torch.zeros_like(moved)
    for update, mask, weight in zip(updates, masks, weights.tolist(), strict=True):
        share = weight * mask.to(torch.float64)
        moved += share * update
        kept += share
    return torch.where(kept > 0, moved / kept, 0.0)
