"""AFL: the mixture of clients that is worst for the model gets the step."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from ..cohort import Cohort
from ..errors import NonFiniteError
from ..layout import Spec
from ..linalg import combine, project_onto_simplex
from ..rule import Aggregation, Claims, Diagnostic, Flow, Request, Rule
from ._checks import check_known_clients, check_server_lr, check_state
from ._diagnostics import by_client, cosines


@dataclass(frozen=True)
class AFLState:
    r"""What AFL remembers.

    :param weights: The mixture :math:`\lambda`, float64 ``[num_clients]``.
    :param iterates: How many iterates the average holds.
    :param lag: Last minus average iterate, float64 ``[dim]``; ``None`` while they are equal.
    :param last: The iterate that the lag is measured from, ``[dim]``, where it is known: a rule
        around this one may have taken another step.
    """

    weights: Tensor
    iterates: int
    lag: Tensor | None = None
    last: Tensor | None = None


@dataclass(frozen=True)
class AFL(Rule[AFLState]):
    r"""A mixture of clients that ascends on the losses: the model serves the worst mixture.

    .. math:: \theta \leftarrow \theta + \sum_i \lambda_i U_i, \qquad
              \lambda \leftarrow \Pi(\lambda + \gamma_\lambda F)

    :param lr_lambda: Step of the ascent, at least 0; :math:`\gamma_\lambda`. With 0 all clients
        keep equal weights.
    :param order: ``"aggregate-first"`` uses the weights from before the round's ascent, as two
        implementations do; ``"ascend-first"`` the new ones, as a third does.
    :param evaluates: Which model is the result: the ``"last"`` iterate, the paper's ``"average"``
        of the iterates after each round, or ``"average-with-start"``, which counts the initial
        model too. See :meth:`evaluated`.
    :param server_lr: Factor of the step, positive; the paper's algorithm is 1.

    Deviation: with partial participation, which the paper does not define, the weights of the
    cohort are divided by their sum, and only its entries ascend before the projection. That is
    ours.
    """

    lr_lambda: float
    order: Literal["aggregate-first", "ascend-first"] = "aggregate-first"
    evaluates: Literal["average", "average-with-start", "last"] = "average"
    server_lr: float = 1.0

    paper = "Mohri, Sivek, Suresh, ICML 2019, Agnostic Federated Learning"
    state_types = (AFLState,)

    def __post_init__(self) -> None:
        if not 0 <= self.lr_lambda < math.inf:
            raise ValueError(f"`lr_lambda` must be at least 0 and finite. Got {self.lr_lambda}.")
        if self.order not in ("aggregate-first", "ascend-first"):
            raise ValueError(
                f"`order` must be 'aggregate-first' or 'ascend-first'. Got {self.order!r}."
            )
        if self.evaluates not in ("average", "average-with-start", "last"):
            raise ValueError(
                f"`evaluates` must be 'average', 'average-with-start' or 'last'. "
                f"Got {self.evaluates!r}."
            )
        check_server_lr(self.server_lr)

    @property
    def needs(self) -> Mapping[str, tuple[str, ...]]:
        """The update, and the loss of the received model."""
        return {"train": ("update", "loss")}

    @property
    def claims(self) -> Claims:
        """The weights come from losses alone."""
        return Claims(scale_equivariant=True)

    def init(self, spec: Spec) -> AFLState:
        """Equal weights."""
        equal = torch.full((spec.num_clients,), 1 / spec.num_clients, dtype=torch.float64)
        return AFLState(equal, 1 if self.evaluates == "average-with-start" else 0)

    def aggregate(self, state: AFLState, cohort: Cohort) -> Aggregation[AFLState]:
        """Combine the updates with the mixture, and move the mixture towards high losses.

        :raises NonFiniteError: If ``lr_lambda`` times a loss overflows.
        """
        check_state(state, AFLState)
        check_known_clients(cohort.client_ids, len(state.weights))
        here = list(cohort.client_ids)
        ascended = state.weights.clone()
        ascended[here] += self._moves(cohort, everybody=len(here) == len(ascended))
        ascended = project_onto_simplex(ascended)
        mixture = (ascended if self.order == "ascend-first" else state.weights)[here]
        total = float(mixture.sum())
        weights = mixture / total if total > 0 else torch.full_like(mixture, 1 / len(cohort))
        step = self.server_lr * combine(cohort.updates, weights).to(cohort.updates.dtype)
        outcome = "mixture" if total > 0 else "uniform"
        seen: dict[str, Diagnostic] = {
            "outcome": outcome if step.any() else "stationary",
            "weights": by_client(cohort, weights),
            "next_mixture": by_client(cohort, ascended[here]),
            "clients_without_weight": int((ascended == 0).sum()),
            "cosines": cosines(cohort, step),
        }
        return Aggregation(step, self._after(state, ascended, step), seen)

    def _moves(self, cohort: Cohort, *, everybody: bool) -> Tensor:
        """How far each client's weight ascends."""
        moves = self.lr_lambda * cohort.losses.to(torch.float64)
        if not torch.isfinite(moves).all():
            first = int(moves.isfinite().logical_not().nonzero()[0])
            raise NonFiniteError(
                f"`lr_lambda` times each loss must be finite. Client {cohort.client_ids[first]} "
                f"has loss {float(cohort.losses[first]):.3g}. Lower `lr_lambda`."
            )
        # what all move by alike the projection takes back, but not what it rounds away
        return moves - moves.max() if everybody else moves

    def round(self, state: AFLState, params: Tensor) -> Flow[AFLState]:
        """One request; where the parameters are known, so is the step that was really taken."""
        cohort = yield Request("train", params)
        step, after, seen = self.aggregate(_arrived(state, params), cohort)
        if after.lag is not None:
            after = replace(after, last=params + step)
        return Aggregation(step, after, seen)

    def evaluated(self, state: AFLState, params: Tensor) -> Tensor:
        """The average iterate, or the last with ``evaluates="last"``."""
        lag = _arrived(state, params).lag
        return params if lag is None else params - lag.to(params)

    def _after(self, state: AFLState, weights: Tensor, step: Tensor) -> AFLState:
        if self.evaluates == "last":
            return AFLState(weights, state.iterates)
        # the average over t + 1 iterates lags behind the last by t / (t + 1) of what it lagged
        # behind the one before, and of the step: no iterate has to be known
        moved = step.to(torch.float64) + (0.0 if state.lag is None else state.lag)
        lag = state.iterates / (state.iterates + 1) * moved if state.iterates else None
        return AFLState(weights, state.iterates + 1, lag)


def _arrived(state: AFLState, params: Tensor) -> AFLState:
    """The state after the step that was taken, which a rule around this one may have changed."""
    if state.lag is None or state.last is None:
        return state
    changed = (params - state.last).to(torch.float64)
    # the newest of the averaged iterates moves the average by its part
    return replace(state, lag=state.lag + (1 - 1 / state.iterates) * changed, last=params)
