"""ServerMomentum: heavy-ball momentum at the server, on the step of any rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..layout import Spec
from ..rule import Claims, Rule
from ._serveroptimiser import ServerOptimiser, ServerOptimiserState, zeros


@dataclass(frozen=True)
class ServerMomentum(ServerOptimiser):
    r"""FedAvgM for any rule: a part of the last step is added to every step.

    :math:`v \leftarrow \beta v + \delta`, and the step is :math:`\eta_g v`.

    :param rule: The rule whose step :math:`\delta` is.
    :param beta: How much of the last step stays, in ``[0, 1)``; with 0 this is ``rule`` alone.
    :param server_lr: :math:`\eta_g`, positive. Equal steps add up to ``1 / (1 - beta)`` times one.
    """

    rule: Rule[Any]
    beta: float = 0.9
    server_lr: float = 1.0

    paper = "Hsu, Qi, Brown, arXiv:1909.06335, 2019, FedAvgM"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.beta < 1:
            raise ValueError(f"`beta` must be in [0, 1). Got {self.beta}.")

    @property
    def claims(self) -> Claims:
        """The step is linear in the rule's steps; it may be against a client, and longer."""
        return Claims(scale_equivariant=self.rule.claims.scale_equivariant)

    def init(self, spec: Spec) -> ServerOptimiserState:
        """No momentum."""
        return ServerOptimiserState(zeros(spec), torch.zeros(0), self.rule.init(spec))

    def _moved(self, state: ServerOptimiserState, delta: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        velocity = self.beta * state.first + delta
        return self.server_lr * velocity, velocity, state.second
