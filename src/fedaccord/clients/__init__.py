"""What clients do with a request: train, and report losses."""

from .base import (
    Batch,
    ClientAlgorithm,
    ClientData,
    ClientResult,
    ClientState,
    Descent,
    Job,
    LocalTraining,
    Losses,
)
from .randomness import SeededOperations
from .report import report_losses
from .sgd import LocalSGD

__all__ = [
    "Batch",
    "ClientAlgorithm",
    "ClientData",
    "ClientResult",
    "ClientState",
    "Descent",
    "Job",
    "LocalSGD",
    "LocalTraining",
    "Losses",
    "SeededOperations",
    "report_losses",
]
