"""PropFair: proportional fairness, by a loss that grows steeper where little is left."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ..clients import LocalTraining, ProportionallyFair
from ..rule import Rule
from ._clientside import ClientSide
from .ditto import Ditto
from .localonly import LocalOnly


@dataclass(frozen=True)
class PropFair(ClientSide):
    r"""Proportional fairness: relative gains of clients count equally; only their loss changes.

    It maximises :math:`\sum_i p_i \log(M_b - F_i)`. A minibatch of loss :math:`\ell` counts as
    :math:`-\log(1 - \ell / M_b)`, with slope :math:`1 / (M_b - \ell)`, while at least ``epsilon``
    is left to :math:`M_b`, and by a straight line above.

    :param base: A loss too large to accept, positive; :math:`M_b`. Choose it above the losses to
        come.
    :param epsilon: In ``(0, base]``; :math:`\epsilon`.
    :param huber: Slope of the line: :math:`1 / \epsilon`, where the logarithm's ends, instead of
        :math:`1 / M_b`.
    :param server: The rule that turns updates into a step; FedAvg if not given.
    :param server_lr: Factor of the step, positive; it multiplies ``server``'s own.
    """

    base: float = 2.0
    epsilon: float = 0.2
    huber: bool = False
    server: Rule[Any] | None = None
    server_lr: float = 1.0

    paper = "Zhang, Malekmohammadi, Chen, Yu, TMLR 2023, PropFair"
    refused: ClassVar[Mapping[type[Any], str]] = {
        Ditto: "its own models would have the same loss. Write `Ditto(lam, server=PropFair())`.",
        LocalOnly: "a client alone has nobody to be fair to.",
    }

    def __post_init__(self) -> None:
        if not 0 < self.base < math.inf:
            raise ValueError(f"`base` must be positive and finite. Got {self.base}.")
        if not 0 < self.epsilon <= self.base:
            raise ValueError(f"`epsilon` must be in (0, base]. Got {self.epsilon}.")
        super().__post_init__()

    def _local(self, local: LocalTraining) -> LocalTraining:
        return ProportionallyFair(local, self.base, self.epsilon, self.huber)
