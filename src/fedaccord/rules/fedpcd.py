"""FedPCD: the FedAvg direction, bent only as much as every represented client needs."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Literal

import torch

from ..cohort import Cohort
from ..history import History
from ..layout import Spec
from ..linalg import norm
from ..rule import Aggregation, Claims, Diagnostic, Rule
from ._checks import check_rounds_advance, check_server_lr, check_state
from ._fedpcd_diagnostics import diagnostics
from ._fedpcd_program import pose
from ._fedpcd_solution import Infeasible, solve, without_direction
from ._robust import check_max_norm, flags, shorten

# a projected direction shorter than this part of the average's is noise: the only answer is zero
COLLAPSED = 1e-8
STALLED_ROUNDS_TO_WARN = 3


class StalledWarning(RuntimeWarning):
    """Several rounds in a row had no step that hurts nobody."""


@dataclass(frozen=True)
class FedPCDState:
    """What FedPCD remembers.

    :param history: Last update of every client seen in the last ``history`` rounds.
    :param client_lr: The client learning rate each of them was made with.
    :param stalled: Stalled rounds in a row, up to now.
    """

    history: History = field(default_factory=History)
    client_lr: Mapping[int, float] = field(default_factory=dict)
    stalled: int = 0


@dataclass(frozen=True)
class FedPCD(Rule[FedPCDState]):
    r"""Priority-constrained aggregation: the admissible direction nearest to the FedAvg direction.

    Every client of the round, and every client seen in the last ``history`` rounds, asks for a
    :math:`\tau`-share of progress along its own direction :math:`v`: :math:`v^\top d \ge \tau
    \lVert v\rVert^2`. The step is the projection of the average onto these half-spaces, at the
    average's length; it is the average itself, bit for bit, when no client falls short.

    :param tau: Share of progress, in ``[0, 1]``; one number, or one a client id.
    :param history: For how many rounds an absent client stays represented, at least 0; :math:`H`.
    :param infeasible: What to do when no direction gives every client progress. ``"average"`` takes
        the FedAvg step for this round, as the parent method does; ``"protect"`` gives progress to
        all clients that can have it and keeps the others from losing; ``"raise"`` stops.
    :param normalize: Whether each client counts by its direction alone. ``False`` is an ablation.
    :param primary: Whether to stay near the average. ``False`` is an ablation: the shortest
        admissible direction.
    :param eps: Added to lengths before dividing, in units of the pseudo-gradient.
    :param server_lr: Factor of the step, positive; 1 is FedAvg's length.
    :param history_dtype: Keep represented updates in this floating-point type, to save memory.
    :param max_norm: Shorten updates to at most this many median lengths of their round before
        anything else, at least 1; by default updates are taken as they are.

    Deviations: the paper does not say what to do when the program is infeasible (the parent method
    PCD takes the average), nor the scale of the server learning rate (here 1 is FedAvg's length).
    It averages pseudo-gradients; here updates are averaged, as FedAvg does, which differs only
    where clients of one round use different learning rates. ``max_norm`` is ours. Not robust
    against hostile clients, each of whom has a veto.
    """

    tau: float | Sequence[float] = 0.02
    history: int = 10
    infeasible: Infeasible = "average"
    normalize: bool = True
    primary: bool = True
    eps: float = 1e-8
    server_lr: float = 1.0
    history_dtype: Literal["float32", "bfloat16", "float16"] | None = None
    max_norm: float | None = None

    paper = "Irshaid, Varam, AlHajri, preprint 2026, FedPCD"
    state_types = (FedPCDState, History)

    def __post_init__(self) -> None:
        if isinstance(self.tau, Mapping | str):
            raise ValueError(f"`tau` must be one number or one for each client. Got {self.tau!r}.")
        several = not isinstance(self.tau, Real)
        value = tuple(map(float, self.tau)) if several else float(self.tau)  # type: ignore[arg-type]
        object.__setattr__(self, "tau", value)
        taus = self.tau if isinstance(self.tau, tuple) else (self.tau,)
        if not taus or not all(0 <= value <= 1 for value in taus):
            raise ValueError(f"`tau` must be in [0, 1]. Got {self.tau}.")
        if not isinstance(self.history, Integral) or self.history < 0:
            raise ValueError(f"`history` must be an integer of at least 0. Got {self.history!r}.")
        if self.infeasible not in ("average", "protect", "raise"):
            raise ValueError(
                f"`infeasible` must be 'average', 'protect' or 'raise'. Got {self.infeasible!r}."
            )
        if not (self.primary or any(taus)):
            raise ValueError(
                "`tau` must be positive with `primary=False`. With tau = 0 the shortest admissible "
                "direction is zero, and the model would never move."
            )
        if not 0 <= self.eps < math.inf:
            raise ValueError(f"`eps` must be at least 0 and finite. Got {self.eps}.")
        if self.history_dtype not in (None, "float32", "bfloat16", "float16"):
            raise ValueError(
                f"`history_dtype` must be 'float32', 'bfloat16', 'float16' or None. "
                f"Got {self.history_dtype!r}."
            )
        check_server_lr(self.server_lr)
        check_max_norm(self.max_norm)

    @property
    def claims(self) -> Claims:
        """No step against a client, at the average's length unless updates are shortened."""
        return Claims(
            non_conflicting=True,
            scale_equivariant=self.eps == 0,
            keeps_mean_norm=self.max_norm is None,
        )

    def init(self, spec: Spec) -> FedPCDState:
        """An empty history.

        :raises ValueError: If ``tau`` has one value a client, but not for each client.
        """
        if isinstance(self.tau, tuple) and len(self.tau) != spec.num_clients:
            raise ValueError(
                f"`tau` must be one number or one for each of {spec.num_clients} clients. "
                f"Got {len(self.tau)}."
            )
        dtype = None if self.history_dtype is None else getattr(torch, self.history_dtype)
        return FedPCDState(History(dtype=dtype))

    def aggregate(self, state: FedPCDState, cohort: Cohort) -> Aggregation[FedPCDState]:
        """Project the average onto the represented clients' half-spaces.

        :raises InfeasibleError: If the program is infeasible and ``infeasible="raise"``.
        :raises ValueError: If the cohort's round is not after those remembered.
        """
        check_state(state, FedPCDState)
        check_rounds_advance(state.history.rounds.values(), cohort.round)
        cohort, factors = shorten(cohort, self.max_norm)
        recent = state.history.forget(before=cohort.round - self.history)
        rows = recent.join(cohort)
        rates = {**state.client_lr, **_client_lr(cohort)}
        shares = torch.zeros(len(rows.client_ids), dtype=torch.float64)
        shares[: len(cohort)] = cohort.shares
        average = rows.combine(shares)
        length = norm(average)
        noise = min(torch.finfo(t).eps for t in (cohort.updates.dtype, torch.float32))
        noise *= float(shares @ rows.lengths)
        if length <= noise:  # opposite updates leave rounding errors, whose direction is nobody's
            length = 0.0
        program = pose(
            rows,
            shares,
            length,
            rates,
            tau=self.tau,
            eps=self.eps,
            normalize=self.normalize,
            primary=self.primary,
        )
        solution = solve(program, infeasible=self.infeasible)
        while solution.outcome in ("projected", "protected"):
            coefficients = program.target + solution.multipliers * program.scale
            direction = rows.combine(coefficients)
            size = norm(direction)
            if size > max(COLLAPSED * program.average_length, program.noise(coefficients)):
                direction *= length / size
                break
            solution = without_direction(program, solution, infeasible=self.infeasible)
        else:  # the average itself, or no step
            direction = average if solution.moves else torch.zeros_like(average)
        step = self.server_lr * direction.to(cohort.updates.dtype)

        stalled = state.stalled + 1 if solution.outcome == "stalled" else 0
        n = len(cohort)
        seen = {
            **diagnostics(program, solution),
            **flags(cohort, rows.gram[:n, :n], factors),
            "stalled_rounds": stalled,
        }
        if stalled >= STALLED_ROUNDS_TO_WARN:
            _warn(stalled, seen)
        kept = recent.record(cohort, rows) if self.history else recent
        known = {client: rates.get(client, 1.0) for client in kept.rounds}
        return Aggregation(step, FedPCDState(kept, known, stalled), seen)


def _client_lr(cohort: Cohort) -> dict[int, float]:
    """The rates the clients used; 1 where they did not say, so that updates count as they are."""
    rates = cohort.fields.get("client_lr", torch.ones(len(cohort)))
    return dict(zip(cohort.client_ids, rates.tolist(), strict=True))


def _warn(stalled: int, seen: Mapping[str, Diagnostic]) -> None:
    warnings.warn(
        f"{stalled} rounds in a row had no step that makes no client worse. Clients without "
        f"progress: {seen['unprotected']}. One client exactly opposite to the others can veto "
        f'every step; `infeasible="average"` would go on.',
        StalledWarning,
        stacklevel=3,
    )
