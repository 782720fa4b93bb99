"""FedDyn: clients regularised so that their optimum is the federation's."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from ..clients import ClientAlgorithm, DynamicRegularisation, LocalTraining
from ..cohort import Cohort
from ..layout import Spec
from ..linalg import combine, norm
from ..rule import Aggregation, Claims, Diagnostic, Rule
from ._composition import check_hooks
from ._diagnostics import by_client, cosines, outcome_of


@dataclass(frozen=True)
class FedDynState:
    """What FedDyn remembers.

    :param h: Minus ``alpha`` times the clients' movements so far, over the number of all clients;
        float64 ``[dim]``.
    :param num_clients: Number of all clients.
    """

    h: Tensor
    num_clients: int


@dataclass(frozen=True)
class FedDyn(Rule[FedDynState]):
    r"""Dynamic regularisation: the mean of the local models, moved on by a memory of past steps.

    Client :math:`i` minimises :math:`F_i(\theta) - \langle \hat g_i, \theta \rangle + \frac\alpha2
    \lVert \theta - \theta_t \rVert^2` and keeps :math:`\hat g_i \leftarrow \hat g_i - \alpha U_i`;
    the server keeps :math:`h \leftarrow h - \frac\alpha N \sum_{i \in S_t} U_i` and makes the step
    :math:`\frac1M \sum_{i \in S_t} U_i - h / \alpha`.

    :param alpha: Strength of the regularisation, positive; :math:`\alpha`.
    """

    alpha: float

    paper = "Acar, Zhao, Matas, Mattina, Whatmough, Saligrama, ICLR 2021, Algorithm 1"
    state_types = (FedDynState,)

    def __post_init__(self) -> None:
        if not 0 < self.alpha < math.inf:
            raise ValueError(f"`alpha` must be positive and finite. Got {self.alpha}.")

    @property
    def claims(self) -> Claims:
        """The step is linear in the updates, those of earlier rounds included."""
        return Claims(scale_equivariant=True)

    def init(self, spec: Spec) -> FedDynState:
        """No movement so far."""
        return FedDynState(torch.zeros(spec.dim, dtype=torch.float64), spec.num_clients)

    def client_algorithms(self, local: LocalTraining) -> Mapping[str, ClientAlgorithm]:
        """Local training with dynamic regularisation."""
        check_hooks(self, local)
        return {"train": DynamicRegularisation(local, self.alpha)}

    def aggregate(self, state: FedDynState, cohort: Cohort) -> Aggregation[FedDynState]:
        """Average the models with equal client weights, and move on."""
        equal = torch.full((len(cohort),), 1 / len(cohort), dtype=torch.float64)
        mean = combine(cohort.updates, equal)
        # sums over clients go by N, not M: absent clients keep their part of h
        moved = len(cohort) / state.num_clients * mean
        h = state.h.to(mean.device) - self.alpha * moved
        step = (mean - h / self.alpha).to(cohort.updates.dtype)
        seen: dict[str, Diagnostic] = {
            "outcome": outcome_of(step),
            "weights": by_client(cohort, equal),
            "cosines": cosines(cohort, step),
            "mean_norm": norm(mean),
            "correction_norm": norm(h) / self.alpha,
        }
        return Aggregation(step, FedDynState(h, state.num_clients), seen)
