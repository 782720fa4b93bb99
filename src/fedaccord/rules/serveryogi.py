"""ServerYogi: Yogi at the server, on the step of any rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from ..rule import Rule
from ._fedopt import PAPER, FedOpt, check_beta2


@dataclass(frozen=True)
class ServerYogi(FedOpt):
    r"""FedYogi for any rule: a second moment that forgets large steps slowly.

    It is :math:`v \leftarrow v - (1 - \beta_2) \delta^2 \operatorname{sign}(v - \delta^2)`.
    It moves by a part of the newest square, up or down, where :class:`ServerAdam` moves by a part
    of the difference. Everything else is as there.

    :param rule: The rule whose step is the gradient.
    :param server_lr: :math:`\eta_g`, positive; see :class:`ServerAdam`.
    :param beta1: Decay of the first moment, in ``[0, 1)``.
    :param beta2: One minus how much of the newest square counts, in ``[0, 1)``.
    :param tau: Added to :math:`\sqrt v`, positive.
    :param v0: Second moment before the first round, at least 0; the paper's ``tau**2`` if ``None``.
    """

    rule: Rule[Any]
    server_lr: float = 0.1
    beta1: float = 0.9
    beta2: float = 0.99
    tau: float = 1e-3
    v0: float | None = None

    paper = f"{PAPER}, FedYogi"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_beta2(self.beta2)

    def _second(self, v: Tensor, squares: Tensor) -> Tensor:
        return v - (1 - self.beta2) * squares * (v - squares).sign()
