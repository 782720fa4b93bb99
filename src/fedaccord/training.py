"""What a round starts from and what it leaves behind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from .clients import ClientState
from .rule import Diagnostic


@dataclass(frozen=True)
class TrainingState:
    """Everything that changes from round to round. A checkpoint is this value in a file.

    :param round: The round about to run, counted from 0.
    :param params: The global model's trainable parameters, ``[dim]``.
    :param rule_state: What the rule remembers.
    :param client_states: What each client keeps, by id.
    :param buffers: Frozen parameters and buffers of the global model, by name.
    :param client_buffers: Buffers that clients keep to themselves, by id, with
        ``Federation(buffers="local")``.
    """

    round: int
    params: Tensor
    rule_state: Any
    client_states: Mapping[int, ClientState] = field(default_factory=dict)
    buffers: Mapping[str, Tensor] = field(default_factory=dict)
    client_buffers: Mapping[int, Mapping[str, Tensor]] = field(default_factory=dict)


@dataclass(frozen=True)
class RoundResult:
    """What a round did.

    :param training: The state after the round.
    :param client_ids: The clients asked, sorted.
    :param diagnostics: What the rule saw and did.
    :param num_examples: Size of each of these clients' training sets, by id.
    :param failures: Clients whose contribution was not used, and why.
    :param without_examples: Clients that hold no data and were not asked, and those that said so in
        their reply, which count nothing where rules weight by examples.
    :param empty: Whether nothing could be aggregated, so that the model stayed as it was.
    :param step_norm: Length of the step.
    """

    training: TrainingState
    client_ids: tuple[int, ...]
    diagnostics: Mapping[str, Diagnostic]
    num_examples: Mapping[int, int] = field(default_factory=dict)
    failures: Mapping[int, str] = field(default_factory=dict)
    without_examples: tuple[int, ...] = ()
    empty: bool = False
    step_norm: float = 0.0

    @property
    def stationary(self) -> bool:
        """Whether there was something to aggregate, and the answer was to stay."""
        return not self.empty and self.step_norm == 0

    @property
    def round(self) -> int:
        """The round that ran, counted from 0."""
        return self.training.round - 1
