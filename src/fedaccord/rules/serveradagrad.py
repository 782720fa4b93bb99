"""ServerAdagrad: Adagrad at the server, on the step of any rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from ..rule import Rule
from ._fedopt import PAPER, FedOpt


@dataclass(frozen=True)
class ServerAdagrad(FedOpt):
    r"""FedAdagrad for any rule: steps get shorter as their squares add up.

    The second moment is :math:`v \leftarrow v + \delta^2`. Everything else is as in
    :class:`ServerAdam`.

    :param rule: The rule whose step is the gradient.
    :param server_lr: :math:`\eta_g`, positive; see :class:`ServerAdam`.
    :param beta1: Decay of the first moment, in ``[0, 1)``; the paper's experiments have 0 here.
    :param tau: Added to :math:`\sqrt v`, positive.
    :param v0: Second moment before the first round, at least 0; the paper's ``tau**2`` if ``None``.
    """

    rule: Rule[Any]
    server_lr: float = 0.1
    beta1: float = 0.9
    tau: float = 1e-3
    v0: float | None = None

    paper = f"{PAPER}, FedAdagrad"

    def _second(self, v: Tensor, squares: Tensor) -> Tensor:
        return v + squares
