"""What server optimisers have in common: another rule's step is their gradient."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..clients import ClientAlgorithm, LocalTraining
from ..cohort import Cohort
from ..layout import Spec
from ..linalg import gramian, norm
from ..rule import Aggregation, Flow, Rule
from ._checks import check_server_lr
from ._composition import check_inner, relay
from ._diagnostics import cosines
from .feddyn import FedDyn
from .localonly import LocalOnly


@dataclass(frozen=True)
class ServerOptimiserState:
    """What a server optimiser remembers.

    :param first: Running mean or sum of steps, float64 ``[dim]``.
    :param second: Running mean or sum of their squares, float64 ``[dim]``; empty where unused.
    :param rule: The state of the rule inside.
    """

    first: Tensor
    second: Tensor
    rule: Any


class ServerOptimiser(Rule[ServerOptimiserState]):
    """A rule that makes another step of another rule's step.

    A subclass has the fields ``rule`` and ``server_lr``, and says in ``_moved`` what it makes.
    """

    rule: Rule[Any]
    server_lr: float

    state_types = (ServerOptimiserState,)

    def __post_init__(self) -> None:
        refused: dict[type[Any], str] = {
            ServerOptimiser: "one server optimiser would undo the other one's scale.",
            FedDyn: "its step holds the server's own correction, which must stay as it is.",
            LocalOnly: "it makes no step.",
        }
        check_inner(self, self.rule, name="rule", refused=refused)
        check_server_lr(self.server_lr)

    @abstractmethod
    def _moved(self, state: ServerOptimiserState, delta: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The step, and both moments after it, from the rule's step; all float64 ``[dim]``."""

    @property
    def needs(self) -> Mapping[str, tuple[str, ...]]:
        """What the rule inside needs."""
        return self.rule.needs

    def client_algorithms(self, local: LocalTraining) -> Mapping[str, ClientAlgorithm]:
        """What the rule inside asks for."""
        return self.rule.client_algorithms(local)

    def round(self, state: ServerOptimiserState, params: Tensor) -> Flow[ServerOptimiserState]:
        """The round of the rule inside, with another step made of its step."""
        cohort, inner = yield from relay(self.rule.round(state.rule, params))
        return self._finish(state, cohort, inner)

    def aggregate(
        self, state: ServerOptimiserState, cohort: Cohort
    ) -> Aggregation[ServerOptimiserState]:
        """Make the step of the rule inside, and another one of it."""
        return self._finish(state, cohort, self.rule.aggregate(state.rule, cohort))

    def evaluated(self, state: ServerOptimiserState, params: Tensor) -> Tensor:
        """What the rule inside evaluates."""
        return self.rule.evaluated(state.rule, params)

    def _finish(
        self, state: ServerOptimiserState, cohort: Cohort, inner: Aggregation[Any]
    ) -> Aggregation[ServerOptimiserState]:
        delta = inner.step.to(torch.float64)
        on_device = ServerOptimiserState(
            state.first.to(delta.device), state.second.to(delta.device), state.rule
        )
        moved, first, second = self._moved(on_device, delta)
        step = moved.to(inner.step.dtype)
        # some rules' clients report one update for each task instead
        turned = {"cosines": cosines(cohort, step)} if "update" in cohort.fields else {}
        seen = {
            **inner.diagnostics,
            **turned,
            "rule_step_norm": norm(delta),
            "cosine_with_rule_step": _cosine(delta, moved),
        }
        return Aggregation(step, ServerOptimiserState(first, second, inner.state), seen)


def zeros(spec: Spec) -> Tensor:
    """A moment before the first round, float64 ``[dim]``."""
    return torch.zeros(spec.dim, dtype=torch.float64)


def _cosine(a: Tensor, b: Tensor) -> float:
    lengths = norm(a) * norm(b)
    return float(gramian(a[None], b[None])) / lengths if lengths > 0 else math.nan
