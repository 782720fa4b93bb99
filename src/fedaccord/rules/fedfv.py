"""FedFV: pairwise conflicts removed in order of loss, then conflicts with recent absentees."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Literal

import torch
from torch import Tensor

from ..cohort import Cohort
from ..history import History, Represented
from ..layout import Spec
from ..linalg import norm
from ..rule import Aggregation, Claims, Diagnostic, Rule
from ._checks import check_rounds_advance, check_server_lr, check_state
from ._diagnostics import SMALLEST, by_client, chosen, cosines
from ._fedfv_projections import without_external, without_internal


@dataclass(frozen=True)
class FedFV(Rule[History]):
    r"""The mean of updates that are projected onto each other's normal planes, at its old length.

    In order of loss, lowest first, an update gives up what is against another's original. Then
    the mean gives up what is against clients seen in the last ``tau`` rounds, oldest first.

    :param alpha: Fraction of clients, those of highest loss, whose updates stay as they are; in
        ``[0, 1]``.
    :param tau: For how many rounds absent clients count, at least 0; :math:`\tau`.
    :param window: ``"original"`` is the paper's: the ``tau`` rounds before this one. ``"shifted"``
        is that of a later implementation: one round later, so that it holds this round's clients
        instead of the oldest.
    :param server_lr: Factor of the step, positive; 1 is the length of the plain mean.
    """

    alpha: float = 0.1
    tau: int = 1
    window: Literal["original", "shifted"] = "original"
    server_lr: float = 1.0

    paper = "Wang, Fan, Qi, Wen, Wang, Yu, IJCAI 2021, Algorithm 1"
    state_types = (History,)

    def __post_init__(self) -> None:
        if not 0 <= self.alpha <= 1:
            raise ValueError(f"`alpha` must be in [0, 1]. Got {self.alpha}.")
        if not isinstance(self.tau, Integral) or self.tau < 0:
            raise ValueError(f"`tau` must be an integer of at least 0. Got {self.tau!r}.")
        if self.window not in ("original", "shifted"):
            raise ValueError(f"`window` must be 'original' or 'shifted'. Got {self.window!r}.")
        check_server_lr(self.server_lr)

    @property
    def needs(self) -> Mapping[str, tuple[str, ...]]:
        """The update, and the loss of the received model."""
        return {"train": ("update", "loss")}

    @property
    def claims(self) -> Claims:
        """Projections scale with what is projected."""
        return Claims(scale_equivariant=True)

    def init(self, spec: Spec) -> History:
        """An empty history."""
        return History()

    def aggregate(self, state: History, cohort: Cohort) -> Aggregation[History]:
        """Remove conflicts, in coefficients of the updates; their Gramian is all it takes.

        :raises NonFiniteError: If an update is too large to square.
        :raises ValueError: If the cohort's round is not after those remembered.
        """
        check_state(state, History)
        check_rounds_advance(state.rounds.values(), cohort.round)
        recent = state.forget(before=cohort.round - self.tau)
        rows = recent.join(cohort)
        n = len(cohort)
        order = torch.sort(cohort.losses, stable=True).indices.tolist()
        kept = set(order[self._first_kept(n) :])
        own, conflicts = without_internal(rows.gram, order, kept)
        mean = torch.zeros(len(rows.client_ids), dtype=torch.float64)
        mean[:n] = 1 / n
        coefficients = own.mean(0)
        external: tuple[int, ...] = ()
        if cohort.round + 1 >= self.tau:  # the paper counts rounds from 1
            last = [cohort.round] * n + [recent.rounds[c] for c in rows.client_ids[n:]]
            coefficients, against = without_external(
                rows.gram, coefficients, last, [cohort.round - lag for lag in self._lags()]
            )
            external = tuple(sorted(rows.client_ids[k] for k in against))

        average, direction = rows.combine(mean), rows.combine(coefficients)
        length, size = norm(average), norm(direction)
        average_moves = length > _noise(rows, mean)
        moves = average_moves and size > _noise(rows, coefficients)
        factor = length / size if moves else 0.0
        step = (self.server_lr * factor * direction if moves else torch.zeros_like(direction)).to(
            cohort.updates.dtype
        )
        moving = rows.lengths[:n] ** 2 >= SMALLEST
        seen: dict[str, Diagnostic] = {
            "outcome": "moved" if moves else "collapsed" if average_moves else "no-average",
            "weights": dict(zip(rows.client_ids, (factor * coefficients).tolist(), strict=True)),
            "kept": tuple(sorted(cohort.client_ids[i] for i in kept)),
            "internal_conflicts": by_client(cohort, conflicts),
            "external_conflicts": external,
            "zero_updates": chosen(cohort, ~moving),
            "cosine_with_mean": _cosine(average, direction) if moves else math.nan,
            "cosines": cosines(cohort, step, lengths=rows.lengths[:n] * moving),
        }
        return Aggregation(step, recent.record(cohort, rows), seen)

    def _first_kept(self, n: int) -> int:
        """Where in the order of losses the updates begin that stay as they are."""
        # 3 * (1 - 1/3) is a little more than 2 in floating point
        return math.ceil((n - 1) * (1 - self.alpha) - 1e-9) if self.alpha > 0 else n

    def _lags(self) -> range:
        """How many rounds ago the groups of absent clients answered, oldest first."""
        shift = 1 if self.window == "shifted" else 0
        return range(self.tau - shift, -shift, -1)


def _noise(rows: Represented, coefficients: Tensor) -> float:
    """How long a combination can be that is rounding alone."""
    return float(4 * (coefficients.abs() * rows.lengths * rows.rounding).sum())


def _cosine(a: Tensor, b: Tensor) -> float:
    a, b = (v / v.abs().max() for v in (a, b))
    return min(1.0, max(-1.0, float(a @ b) / (norm(a) * norm(b))))
