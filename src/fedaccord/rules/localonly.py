"""LocalOnly: no federation, every client trains a model of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from ..clients import ClientAlgorithm, LocalTraining, OwnModel
from ..cohort import Cohort
from ..rule import Aggregation, StatelessRule


@dataclass(frozen=True)
class LocalOnly(StatelessRule):
    """Every client trains its own model; the shared one stays as it began.

    The baseline that answers whether joining helps a client. Own models start as the initial model
    and are kept as ``"personal"`` ``[dim]`` in ``TrainingState.client_states``. The ``update`` a
    client reports is that of its own model; it is looked at and not used.
    """

    paper = "No paper: local training without a federation"

    def client_algorithms(self, local: LocalTraining) -> Mapping[str, ClientAlgorithm]:
        """Train the own model."""
        return {"train": OwnModel(local)}

    def aggregate(self, state: None, cohort: Cohort) -> Aggregation[None]:
        """No step."""
        return Aggregation(torch.zeros_like(cohort.updates[0]), None, {"outcome": "local"})
