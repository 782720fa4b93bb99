"""SCAFFOLD: control variates against the drift of clients with different data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from ..clients import ClientAlgorithm, ControlVariate, LocalTraining
from ..cohort import Cohort
from ..layout import Spec
from ..linalg import combine, norm
from ..rule import Aggregation, Claims, Flow, Rule
from ._checks import check_server_lr
from ._composition import check_follows, check_hooks, check_inner, relay
from ._diagnostics import by_client, cosines
from .ditto import Ditto
from .feddyn import FedDyn
from .localonly import LocalOnly
from .uniform import Uniform

REFUSED: Mapping[type[Any], str] = {
    Ditto: "its own models would be shifted too. Write `Ditto(lam, server=SCAFFOLD())`.",
    FedDyn: "it corrects the same drift, by duals instead of control variates.",
    LocalOnly: "clients alone do not drift apart from anything.",
}


@dataclass(frozen=True)
class SCAFFOLDState:
    """What SCAFFOLD remembers.

    :param control: The server's control variate :math:`c`, float64 ``[dim]``.
    :param num_clients: Number of all clients.
    :param server: The state of the rule that aggregates.
    """

    control: Tensor
    num_clients: int
    server: Any


@dataclass(frozen=True)
class SCAFFOLD(Rule[SCAFFOLDState]):
    r"""Control variates shift every local gradient, so that clients do not drift apart.

    Local steps are along :math:`\nabla F_i - c_i + c`. Option II of the paper: after :math:`K`
    steps :math:`c_i^+ = c_i - c - U_i / (K \eta_\ell)`, the mean gradient along the path, and
    :math:`c \leftarrow c + \frac1N \sum_{i \in S_t} (c_i^+ - c_i)`. :math:`K` is the number of
    steps the client really made.

    :param server: The rule that turns updates into a step; by default their plain mean.
    :param server_lr: Factor of the step, positive; :math:`\eta_g`. It multiplies ``server``'s own.
    """

    server: Rule[Any] | None = None
    server_lr: float = 1.0

    paper = "Karimireddy, Kale, Mohri, Reddi, Stich, Suresh, ICML 2020, Algorithm 1, option II"
    state_types = (SCAFFOLDState,)

    def __post_init__(self) -> None:
        refused: dict[type[Any], str] = {**REFUSED, SCAFFOLD: "it can be there once."}
        check_inner(self, self._server, name="server", refused=refused)
        check_server_lr(self.server_lr)

    @property
    def needs(self) -> Mapping[str, tuple[str, ...]]:
        """What the aggregating rule needs, and the changes of the clients' control variates."""
        needs = dict(self._server.needs)
        return {**needs, "train": tuple(dict.fromkeys((*needs["train"], "control_update")))}

    @property
    def claims(self) -> Claims:
        """Updates become a step as in the aggregating rule, but for its length."""
        return replace(self._server.claims, keeps_mean_norm=False)

    @property
    def _server(self) -> Rule[Any]:
        return Uniform() if self.server is None else self.server

    def init(self, spec: Spec) -> SCAFFOLDState:
        """Controls of zero."""
        zero = torch.zeros(spec.dim, dtype=torch.float64)
        return SCAFFOLDState(zero, spec.num_clients, self._server.init(spec))

    def client_algorithms(self, local: LocalTraining) -> Mapping[str, ClientAlgorithm]:
        """What the aggregating rule's clients do, along shifted gradients.

        :raises ValueError: If local training is known not to be plain SGD.
        """
        _check_plain(local)
        check_hooks(self, local)
        algorithms = self._server.client_algorithms(ControlVariate(local))
        check_follows(self, self._server, algorithms["train"])
        return algorithms

    def round(self, state: SCAFFOLDState, params: Tensor) -> Flow[SCAFFOLDState]:
        """The aggregating rule's round, with the server's control in every request."""
        control = {"control": state.control.to(params)}
        cohort, inner = yield from relay(self._server.round(state.server, params), control)
        return self._finish(state, cohort, inner)

    def aggregate(self, state: SCAFFOLDState, cohort: Cohort) -> Aggregation[SCAFFOLDState]:
        """Make the step and renew the server's control.

        :param state: ``state.control`` is the ``control`` the clients trained with.
        """
        return self._finish(state, cohort, self._server.aggregate(state.server, cohort))

    def evaluated(self, state: SCAFFOLDState, params: Tensor) -> Tensor:
        """What the aggregating rule evaluates."""
        return self._server.evaluated(state.server, params)

    def _finish(
        self, state: SCAFFOLDState, cohort: Cohort, inner: Aggregation[Any]
    ) -> Aggregation[SCAFFOLDState]:
        changes = cohort["control_update"]
        # divided by all clients, not by those of the round: the others' controls stay
        each = torch.full((len(cohort),), 1 / state.num_clients, dtype=torch.float64)
        control = state.control.to(changes.device) + combine(changes, each)
        step = self.server_lr * inner.step
        seen = {
            "cosines": cosines(cohort, step),
            **inner.diagnostics,
            "control_norm": norm(control),
            "control_changes": by_client(cohort, [norm(change) for change in changes]),
        }
        return Aggregation(step, SCAFFOLDState(control, state.num_clients, inner.state), seen)


def _check_plain(local: LocalTraining) -> None:
    """Refuse local steps that are not the learning rate times the gradient."""
    while hasattr(local, "local"):
        local = local.local
    for name in ("momentum", "weight_decay"):
        if value := getattr(local, name, 0):
            raise ValueError(
                f"SCAFFOLD needs plain SGD: its control variates are the movement divided by the "
                f"learning rate. Got `{name}={value}`. Set it to 0."
            )
