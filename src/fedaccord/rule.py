"""What a rule is: hyperparameters, state in and out, and a round that asks clients for answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, ClassVar, Generic, NamedTuple, TypeAlias, TypeVar

from torch import Tensor

from .clients import ClientAlgorithm, LocalTraining
from .cohort import Cohort
from .layout import Spec

S = TypeVar("S")

Diagnostic: TypeAlias = Tensor | float | int | str | Mapping[int, float] | tuple[int, ...]
"""One thing a rule tells about a round: a number, a word, a value or flag for each client id."""


class Aggregation(NamedTuple, Generic[S]):
    """What a rule makes of a round.

    :param step: ``[dim]``, to be **added** to the parameters.
    :param state: The rule's state after the round.
    :param diagnostics: What it saw and did.
    """

    step: Tensor
    state: S
    diagnostics: Mapping[str, Diagnostic] = {}


@dataclass(frozen=True)
class Request:
    """What a rule asks of every client of the round.

    :param phase: A key of ``rule.client_algorithms(...)``.
    :param params: The parameters to send, ``[dim]``.
    :param payload: What else to send, for example ``task_weights`` ``[m]``.
    """

    phase: str
    params: Tensor
    payload: Mapping[str, Tensor] = field(default_factory=dict)


Flow: TypeAlias = Generator[Request, Cohort, Aggregation[S]]
"""One round: yields requests, receives cohorts, returns the aggregation."""


@dataclass(frozen=True)
class Claims:
    """What a rule's paper promises of every step; the test battery checks what is claimed.

    :param non_conflicting: The step has no negative product with any update of the cohort, unless
        the diagnostics say that the round had no such step.
    :param scale_equivariant: Scaling all updates scales the step.
    :param keeps_mean_norm: The step is as long as the share-weighted mean, or zero.
    """

    non_conflicting: bool = False
    scale_equivariant: bool = False
    keeps_mean_norm: bool = False


class Rule(ABC, Generic[S]):
    """A rule for making one step out of many clients' contributions.

    A rule is a frozen dataclass of hyperparameters. It holds no state: what it remembers goes in
    and comes out of :meth:`aggregate`.

    Class attributes of a rule: ``paper`` names the paper and the equation; ``state_types`` are
    the classes its state is made of, apart from tensors, numbers, strings, tuples and mappings,
    which a checkpoint may then hold.
    """

    paper: ClassVar[str] = ""
    state_types: ClassVar[tuple[type, ...]] = ()

    @property
    def needs(self) -> Mapping[str, tuple[str, ...]]:
        """The fields it needs from clients in each phase; checked before the first round."""
        return {"train": ("update",)}

    @property
    def claims(self) -> Claims:
        """The promises the battery tests."""
        return Claims()

    @abstractmethod
    def init(self, spec: Spec) -> S:
        """The state before round 0.

        :raises ValueError: If the hyperparameters do not fit the federation.
        """

    @abstractmethod
    def aggregate(self, state: S, cohort: Cohort) -> Aggregation[S]:
        """Make the step of a round.

        :param state: The state before the round; not changed.
        :param cohort: The round's contributions; not changed.
        """

    def client_algorithms(self, local: LocalTraining) -> Mapping[str, ClientAlgorithm]:
        """What clients do in each phase: by default they train, and report losses if needed."""
        losses = {"loss", "task_loss"} & set(self.needs["train"])
        if losses - set(local.reports):
            local = local.reporting("all")
        return {"train": local}

    def round(self, state: S, params: Tensor) -> Flow[S]:
        """One round as a protocol: by default one request and one aggregation."""
        cohort = yield Request("train", params)
        return self.aggregate(state, cohort)

    def evaluated(self, state: S, params: Tensor) -> Tensor:
        """The parameters that are the result of training so far: by default the last ones.

        :param state: The state after a round; not changed.
        :param params: The parameters after that round, ``[dim]``; not changed.
        """
        return params


class StatelessRule(Rule[None]):
    """A rule that remembers nothing."""

    def init(self, spec: Spec) -> None:
        """No state."""
        return


def allowed_state_types(rule: Rule[Any]) -> tuple[type, ...]:
    """The classes that a checkpoint of ``rule``, and of rules inside it, may hold."""
    types = list(rule.state_types)
    if is_dataclass(rule):
        for part in fields(rule):
            inner = getattr(rule, part.name)
            if isinstance(inner, Rule):
                types += allowed_state_types(inner)
    return tuple(dict.fromkeys(types))


def remembers(rule: Rule[Any], state: Any) -> bool:
    """Whether a state is of the kind that ``rule``, and rules inside it, remember."""
    if isinstance(rule, StatelessRule):
        return state is None
    if rule.state_types and not isinstance(state, rule.state_types[0]):
        return False
    if not is_dataclass(rule):
        return True
    inner = {part.name: getattr(rule, part.name) for part in fields(rule)}
    return all(
        remembers(part, getattr(state, name))
        for name, part in inner.items()
        if isinstance(part, Rule) and hasattr(state, name)
    )
