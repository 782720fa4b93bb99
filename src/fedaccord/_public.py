"""Everything that ``import fedaccord`` offers; ``fedaccord`` loads it with the first name asked."""

from __future__ import annotations

from .calibration import calibrate
from .checkpoint import load, save, save_model
from .clients import (
    Batch,
    ClientAlgorithm,
    ClientData,
    ClientResult,
    Job,
    LocalSGD,
    LocalTraining,
    Losses,
)
from .cohort import Cohort
from .errors import (
    CheckpointError,
    ClientFailedError,
    ContributionError,
    DataFileError,
    EmptyRoundError,
    FedAccordError,
    InfeasibleError,
    MalformedReplyError,
    MissingDataError,
    MissingFieldError,
    NonFiniteError,
    SolverError,
    StaleHistoryError,
    UncontrolledRandomnessError,
    UnknownNameError,
)
from .executors import Threads, serial
from .federation import Federation
from .history import History
from .layout import Layout, Spec
from .reply import Policy, Reply
from .round import drive, run_round
from .rule import Aggregation, Claims, Request, Rule, StatelessRule
from .rules import FedAvg, FedHV, FedPCD, StalledWarning, Uniform
from .samplers import SizeProportionalSampler, UniformSampler
from .simulation import check, simulate, start
from .training import RoundResult, TrainingState

__all__ = [
    "Aggregation",
    "Batch",
    "CheckpointError",
    "Claims",
    "ClientAlgorithm",
    "ClientData",
    "ClientFailedError",
    "ClientResult",
    "Cohort",
    "ContributionError",
    "DataFileError",
    "EmptyRoundError",
    "FedAccordError",
    "FedAvg",
    "FedHV",
    "FedPCD",
    "Federation",
    "History",
    "InfeasibleError",
    "Job",
    "Layout",
    "LocalSGD",
    "LocalTraining",
    "Losses",
    "MalformedReplyError",
    "MissingDataError",
    "MissingFieldError",
    "NonFiniteError",
    "Policy",
    "Reply",
    "Request",
    "RoundResult",
    "Rule",
    "SizeProportionalSampler",
    "SolverError",
    "Spec",
    "StaleHistoryError",
    "StalledWarning",
    "StatelessRule",
    "Threads",
    "TrainingState",
    "UncontrolledRandomnessError",
    "Uniform",
    "UniformSampler",
    "UnknownNameError",
    "calibrate",
    "check",
    "drive",
    "load",
    "run_round",
    "save",
    "save_model",
    "serial",
    "simulate",
    "start",
]
