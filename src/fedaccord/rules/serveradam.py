"""ServerAdam: Adam at the server, on the step of any rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from ..rule import Rule
from ._fedopt import PAPER, FedOpt, check_beta2


@dataclass(frozen=True)
class ServerAdam(FedOpt):
    r"""FedAdam for any rule: its step is an optimiser's gradient, scaled element by element.

    With the rule's step :math:`\delta`, :math:`m \leftarrow \beta_1 m + (1 - \beta_1) \delta` and
    :math:`v \leftarrow \beta_2 v + (1 - \beta_2) \delta^2`; the step is :math:`\eta_g m / (\sqrt v
    + \tau)`, element by element and without bias correction. ``ServerAdam(FedAvg())`` is the
    paper's FedAdam.

    :param rule: The rule whose step is the gradient.
    :param server_lr: :math:`\eta_g`, positive. About the largest movement of one parameter in one
        round: the step has a length of its own, whatever the length of the updates.
    :param beta1: Decay of the first moment, in ``[0, 1)``.
    :param beta2: Decay of the second moment, in ``[0, 1)``.
    :param tau: Added to :math:`\sqrt v`, positive.
    :param v0: Second moment before the first round, at least 0; the paper's ``tau**2`` if ``None``.
        Flower and others use 0.
    """

    rule: Rule[Any]
    server_lr: float = 0.1
    beta1: float = 0.9
    beta2: float = 0.99
    tau: float = 1e-3
    v0: float | None = None

    paper = f"{PAPER}, FedAdam"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_beta2(self.beta2)

    def _second(self, v: Tensor, squares: Tensor) -> Tensor:
        return self.beta2 * v + (1 - self.beta2) * squares
