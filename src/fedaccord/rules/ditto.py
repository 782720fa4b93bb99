"""Ditto: a model of its own for every client, tied to the shared one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from torch import Tensor

from ..clients import LocalTraining, PersonalModel
from ..rule import Flow, Rule
from ._clientside import ClientSide, ClientSideState
from ._composition import relay
from .localonly import LocalOnly


@dataclass(frozen=True)
class Ditto(ClientSide):
    r"""Each client also trains a model of its own, held near the shared one.

    It minimises :math:`F_i(v) + \frac\lambda2 \lVert v - \theta_t \rVert^2` over :math:`v`.

    The shared model is trained as without Ditto, on the same minibatches. A client keeps its own
    model as ``"personal"`` ``[dim]``, in ``TrainingState.client_states``; it is never sent.

    :param lam: How strongly own models are tied to the shared one, at least 0; :math:`\lambda`.
        With 0 they are local models. ``lam`` times the client learning rate must be below 2.
    :param start: What an own model starts as: the first shared model its client ``"received"``, or
        the ``"initial"`` one, as the authors do; it is then sent along in every round.
    :param server: The rule that turns updates into a step; FedAvg if not given.
    :param server_lr: Factor of the step, positive; it multiplies ``server``'s own.

    Deviation: the authors draw clients by size and average plainly; here clients are drawn evenly
    and weighted by examples. ``server=Uniform()`` with :class:`~fedaccord.SizeProportionalSampler`
    is the authors' way.
    """

    lam: float
    start: Literal["received", "initial"] = "received"
    server: Rule[Any] | None = None
    server_lr: float = 1.0

    paper = "Li, Hu, Beirami, Smith, ICML 2021, Algorithm 1"
    refused: ClassVar[Mapping[type[Any], str]] = {
        LocalOnly: "nothing is shared that own models could be tied to."
    }

    def __post_init__(self) -> None:
        if not 0 <= self.lam < math.inf:
            raise ValueError(f"`lam` must be at least 0 and finite. Got {self.lam}.")
        if self.start not in ("received", "initial"):
            raise ValueError(f"`start` must be 'received' or 'initial'. Got {self.start!r}.")
        super().__post_init__()

    def round(self, state: ClientSideState, params: Tensor) -> Flow[ClientSideState]:
        """The aggregating rule's round, with what own models start as."""
        if self.start == "received":
            return (yield from super().round(state, params))
        initial = params if state.initial is None else state.initial
        flow = self._server.round(state.server, params)
        cohort, inner = yield from relay(flow, {"initial": initial})
        return self._finish(replace(state, initial=initial), cohort, inner)

    def _local(self, local: LocalTraining) -> LocalTraining:
        return PersonalModel(local, self.lam)
