"""What clients do with a request: train, and report losses."""

from .base import (
    Batch,
    ClientAlgorithm,
    ClientData,
    ClientResult,
    ClientState,
    Correct,
    Descent,
    Job,
    LocalTraining,
    Losses,
    Objective,
)
from .control import ControlVariate
from .dynamic import DynamicRegularisation
from .personal import PERSONAL, OwnModel, PersonalModel, buffers_kept
from .proportional import ProportionallyFair, proportional_loss
from .proximal import Proximal
from .randomness import SeededOperations
from .report import report_losses
from .sgd import LocalSGD

__all__ = [
    "PERSONAL",
    "Batch",
    "ClientAlgorithm",
    "ClientData",
    "ClientResult",
    "ClientState",
    "ControlVariate",
    "Correct",
    "Descent",
    "DynamicRegularisation",
    "Job",
    "LocalSGD",
    "LocalTraining",
    "Losses",
    "Objective",
    "OwnModel",
    "PersonalModel",
    "ProportionallyFair",
    "Proximal",
    "SeededOperations",
    "buffers_kept",
    "proportional_loss",
    "report_losses",
]
