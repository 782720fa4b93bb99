"""What rules that only change the clients have in common: another rule makes the step."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from torch import Tensor

from ..clients import ClientAlgorithm, LocalTraining
from ..cohort import Cohort
from ..layout import Spec
from ..rule import Aggregation, Claims, Flow, Rule
from ._checks import check_server_lr
from ._composition import check_follows, check_hooks, check_inner, relay
from ._diagnostics import cosines
from .fedavg import FedAvg


@dataclass(frozen=True)
class ClientSideState:
    """What a rule that changes the clients remembers.

    :param server: The state of the rule that aggregates.
    :param initial: The model before round 0, ``[dim]``, where clients need it.
    """

    server: Any
    initial: Tensor | None = None


class ClientSide(Rule[ClientSideState]):
    """A rule that changes what clients do and leaves the step to another one.

    A subclass has the fields ``server``, FedAvg if ``None``, and ``server_lr``, which multiplies
    the step; it says what clients do in ``_local``.
    """

    server: Rule[Any] | None
    server_lr: float

    state_types = (ClientSideState,)
    refused: ClassVar[Mapping[type[Any], str]] = {}

    def __post_init__(self) -> None:
        refused = {**self.refused, type(self): "it can be there once."}
        check_inner(self, self._server, name="server", refused=refused)
        check_server_lr(self.server_lr)

    @abstractmethod
    def _local(self, local: LocalTraining) -> LocalTraining:
        """What clients do instead of ``local``."""

    @property
    def _server(self) -> Rule[Any]:
        """The rule that aggregates."""
        return FedAvg() if self.server is None else self.server

    @property
    def needs(self) -> Mapping[str, tuple[str, ...]]:
        """What the aggregating rule needs."""
        return self._server.needs

    @property
    def claims(self) -> Claims:
        """Updates become a step as in the aggregating rule, but for its length."""
        return replace(self._server.claims, keeps_mean_norm=False)

    def init(self, spec: Spec) -> ClientSideState:
        """The aggregating rule's."""
        return ClientSideState(self._server.init(spec))

    def client_algorithms(self, local: LocalTraining) -> Mapping[str, ClientAlgorithm]:
        """What the aggregating rule's clients do, with local training replaced."""
        check_hooks(self, local)
        algorithms = self._server.client_algorithms(self._local(local))
        check_follows(self, self._server, algorithms["train"])
        return algorithms

    def round(self, state: ClientSideState, params: Tensor) -> Flow[ClientSideState]:
        """The aggregating rule's round."""
        cohort, inner = yield from relay(self._server.round(state.server, params))
        return self._finish(state, cohort, inner)

    def aggregate(self, state: ClientSideState, cohort: Cohort) -> Aggregation[ClientSideState]:
        """The aggregating rule's step."""
        return self._finish(state, cohort, self._server.aggregate(state.server, cohort))

    def evaluated(self, state: ClientSideState, params: Tensor) -> Tensor:
        """What the aggregating rule evaluates."""
        return self._server.evaluated(state.server, params)

    def _finish(
        self, state: ClientSideState, cohort: Cohort, inner: Aggregation[Any]
    ) -> Aggregation[ClientSideState]:
        step = inner.step if self.server_lr == 1 else self.server_lr * inner.step
        seen = {"cosines": cosines(cohort, step), **inner.diagnostics}
        return Aggregation(step, replace(state, server=inner.state), seen)
