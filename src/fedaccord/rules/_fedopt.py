"""FedOpt: adaptive steps at the server, element by element."""

from __future__ import annotations

import math
from abc import abstractmethod

import torch
from torch import Tensor

from ..layout import Spec
from ._serveroptimiser import ServerOptimiser, ServerOptimiserState, zeros

PAPER = "Reddi, Charles, Zaheer, Garrett, Rush, Konecny, Kumar, McMahan, ICLR 2021, Algorithm 2"


class FedOpt(ServerOptimiser):
    r"""Momentum, divided element by element by the root of a second moment.

    With the rule's step :math:`\delta`: :math:`m \leftarrow \beta_1 m + (1 - \beta_1) \delta`; the
    step is :math:`\eta_g m / (\sqrt v + \tau)`, without bias correction.

    A subclass has the fields ``beta1``, ``tau`` and ``v0``, and says in ``_second`` what becomes of
    :math:`v`.
    """

    beta1: float
    tau: float
    v0: float | None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.beta1 < 1:
            raise ValueError(f"`beta1` must be in [0, 1). Got {self.beta1}.")
        if not 0 < self.tau < math.inf:
            raise ValueError(f"`tau` must be positive and finite. Got {self.tau}.")
        if self.v0 is not None and not 0 <= self.v0 < math.inf:
            raise ValueError(f"`v0` must be at least 0 and finite, or None. Got {self.v0}.")

    def init(self, spec: Spec) -> ServerOptimiserState:
        """No momentum, and ``v0`` as second moment."""
        v0 = self.tau**2 if self.v0 is None else self.v0
        return ServerOptimiserState(
            zeros(spec), torch.full_like(zeros(spec), v0), self.rule.init(spec)
        )

    @abstractmethod
    def _second(self, v: Tensor, squares: Tensor) -> Tensor:
        """The second moment after a step with these squares."""

    def _moved(self, state: ServerOptimiserState, delta: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        m = self.beta1 * state.first + (1 - self.beta1) * delta
        v = self._second(state.second, delta.square())
        return self.server_lr * m / (v.sqrt() + self.tau), m, v


def check_beta2(beta2: float) -> None:
    """Refuse a decay of the second moment that is out of range.

    :raises ValueError: If it is.
    """
    if not 0 <= beta2 < 1:
        raise ValueError(f"`beta2` must be in [0, 1). Got {beta2}.")
