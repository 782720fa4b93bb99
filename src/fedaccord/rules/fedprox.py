"""FedProx: clients stay near the model they received."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ..clients import LocalTraining, Proximal
from ..rule import Rule
from ._clientside import ClientSide
from .ditto import Ditto
from .feddyn import FedDyn
from .localonly import LocalOnly


@dataclass(frozen=True)
class FedProx(ClientSide):
    r"""Clients train near the received model, to which a quadratic term holds them.

    They minimise :math:`F_i(\theta) + \frac\mu2 \lVert \theta - \theta_t \rVert^2`.

    Each local step adds :math:`\mu (\theta - \theta_t)` to the gradient; the first one is FedAvg's.

    :param mu: How strongly clients are held, at least 0; with 0 this is the aggregating rule alone.
    :param server: The rule that turns updates into a step; FedAvg if not given.
    :param server_lr: Factor of the step, positive; it multiplies ``server``'s own.
    """

    mu: float
    server: Rule[Any] | None = None
    server_lr: float = 1.0

    paper = "Li, Sahu, Zaheer, Sanjabi, Talwalkar, Smith, MLSys 2020, Algorithm 2"
    refused: ClassVar[Mapping[type[Any], str]] = {
        Ditto: "its own models would be held as well. Write `Ditto(lam, server=FedProx(mu))`.",
        FedDyn: "it holds clients by a term of its own.",
        LocalOnly: "nothing is shared that clients could stay near.",
    }

    def __post_init__(self) -> None:
        if not 0 <= self.mu < math.inf:
            raise ValueError(f"`mu` must be at least 0 and finite. Got {self.mu}.")
        super().__post_init__()

    def _local(self, local: LocalTraining) -> LocalTraining:
        return Proximal(local, self.mu)
