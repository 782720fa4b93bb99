"""FedHV: task weights from the slack of each task's loss to a fixed reference."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from ..clients import ClientAlgorithm, LocalTraining
from ..cohort import Cohort
from ..errors import MalformedReplyError
from ..layout import Spec
from ..rule import Aggregation, Claims, Diagnostic, Flow, Rule
from ._checks import check_report, check_server_lr
from ._composition import check_inner, relay
from .localonly import LocalOnly
from .uniform import Uniform


@dataclass(frozen=True)
class FedHVState:
    """What FedHV remembers.

    :param weights: Task weights of the next round, float64 ``[m]``.
    :param server: The state of the rule that aggregates.
    """

    weights: Tensor
    server: Any


@dataclass(frozen=True)
class FedHV(Rule[FedHVState]):
    r"""Normalised inverse slacks as task weights: the gradient of the log-hypervolume.

    Clients report every task's loss of the received model and train on the weighted sum. With the
    mean report :math:`F_j`, the next round's weights are
    :math:`w_j \propto 1/\max(r_j - F_j, \text{floor})`.

    :param reference: One finite number a task: a loss too large to accept, above the losses to
        come; :math:`r`. The nearer a task's loss is to it, the larger its weight. Get it from
        :func:`~fedaccord.calibrate`.
    :param floor: Smallest slack, positive; :math:`\rho_\text{clip}`. It keeps weights finite when a
        loss passes its reference, but does not make a reference that is too low a good one.
    :param report: How much of its data a client reports on: ``"all"``, or a number of minibatches.
    :param server: The rule that turns updates into a step; by default their plain mean. With
        :class:`FedPCD` task weights act at the clients and the projection at the server; the
        average then weights clients by examples, and cached updates are those of older weights.
    :param server_lr: Factor of the step, positive; :math:`\eta_g`. It multiplies ``server``'s own.

    Deviation: the paper does not say in which mode reports are made; here in evaluation mode,
    without augmentation.
    """

    reference: Sequence[float]
    floor: float = 1e-6
    report: Literal["all"] | int = "all"
    server: Rule[Any] | None = None
    server_lr: float = 1.0

    paper = "Dehghanpour, Azimi-Abarghouyi, Brinton, FedHV"
    state_types = (FedHVState,)

    def __post_init__(self) -> None:
        if isinstance(self.reference, Mapping | str):
            raise ValueError(f"`reference` must hold one number a task. Got {self.reference!r}.")
        object.__setattr__(self, "reference", tuple(float(r) for r in self.reference))
        if not self.reference or not all(math.isfinite(r) for r in self.reference):
            raise ValueError(f"`reference` must hold finite numbers. Got {self.reference}.")
        if not 0 < self.floor < math.inf:
            raise ValueError(f"`floor` must be positive and finite. Got {self.floor}.")
        check_report(self.report)
        check_server_lr(self.server_lr)
        reason = "it has no shared model whose tasks could be weighted."
        check_inner(self, self._server, name="server", refused={LocalOnly: reason})

    @property
    def needs(self) -> Mapping[str, tuple[str, ...]]:
        """What the aggregating rule needs, and every task's loss."""
        needs = dict(self._server.needs)
        needs["train"] = tuple(dict.fromkeys((*needs["train"], "task_loss")))
        return needs

    @property
    def claims(self) -> Claims:
        """Task weights do not touch how updates become a step, but for its length."""
        inner = self._server.claims
        return Claims(
            non_conflicting=inner.non_conflicting, scale_equivariant=inner.scale_equivariant
        )

    @property
    def _server(self) -> Rule[Any]:
        return Uniform() if self.server is None else self.server

    def init(self, spec: Spec) -> FedHVState:
        """Equal weights.

        :raises ValueError: If ``reference`` does not have one number for each task.
        """
        if len(self.reference) != spec.num_tasks:
            raise ValueError(
                f"`reference` must have one number for each of {spec.num_tasks} tasks. "
                f"Got {len(self.reference)}."
            )
        m = spec.num_tasks
        weights = torch.full((m,), 1 / m, dtype=torch.float64)
        return FedHVState(weights, self._server.init(spec))

    def client_algorithms(self, local: LocalTraining) -> Mapping[str, ClientAlgorithm]:
        """Report every task's loss, then do what the aggregating rule asks for."""
        return self._server.client_algorithms(local.reporting(self.report))

    def round(self, state: FedHVState, params: Tensor) -> Flow[FedHVState]:
        """The aggregating rule's round, with the task weights in every request."""
        weights = {"task_weights": state.weights}
        cohort, inner = yield from relay(self._server.round(state.server, params), weights)
        return self._weigh(state, cohort, inner)

    def aggregate(self, state: FedHVState, cohort: Cohort) -> Aggregation[FedHVState]:
        """Make the step, and the weights of the next round.

        :param state: ``state.weights`` are the task weights the clients trained with.
        """
        return self._weigh(state, cohort, self._server.aggregate(state.server, cohort))

    def evaluated(self, state: FedHVState, params: Tensor) -> Tensor:
        """What the aggregating rule evaluates."""
        return self._server.evaluated(state.server, params)

    def _weigh(
        self, state: FedHVState, cohort: Cohort, inner: Aggregation[Any]
    ) -> Aggregation[FedHVState]:
        losses = cohort.task_losses
        if tuple(losses.shape) != (len(cohort), len(self.reference)):
            raise MalformedReplyError(
                f"`task_loss` must hold one number for each of {len(self.reference)} tasks. Got "
                f"{tuple(losses.shape[1:])} from each client."
            )
        losses = losses.to(torch.float64).mean(0)
        slacks = torch.tensor(self.reference, dtype=torch.float64) - losses
        inverse = 1 / slacks.clamp(min=self.floor)
        weights = inverse / inverse.sum()
        seen: dict[str, Diagnostic] = {
            "task_losses": losses,
            "slacks": slacks,
            "floored_tasks": tuple((slacks <= self.floor).nonzero().flatten().tolist()),
            "task_weights": state.weights,
            "next_task_weights": weights,
            "log_hypervolume": float(slacks.log().sum()) if (slacks > 0).all() else -math.inf,
        }
        return Aggregation(
            self.server_lr * inner.step,
            FedHVState(weights, inner.state),
            {**inner.diagnostics, **seen},
        )
