"""Experiments as values, and their runs in folders."""

from __future__ import annotations

from ._choices import ModelChoice, PartitionChoice
from ._experiment import Calibration, Experiment
from ._folder import FolderError, RunFolder, check_writable
from ._measures import Measure, legend, measures, over_seeds, spell
from ._names import hyperparameters, model_factories, options_of, partition_functions, rule_classes
from ._read import Run
from ._rule_choice import RuleChoice
from ._run import carry_out, prepare, run
from ._setup import Setup, set_up
from ._summary import remarks, summarise
from ._table import from_table, override, preset, to_table
from ._watch import Watch

__all__ = [
    "Calibration",
    "Experiment",
    "FolderError",
    "Measure",
    "ModelChoice",
    "PartitionChoice",
    "RuleChoice",
    "Run",
    "RunFolder",
    "Setup",
    "Watch",
    "carry_out",
    "check_writable",
    "from_table",
    "hyperparameters",
    "legend",
    "measures",
    "model_factories",
    "options_of",
    "over_seeds",
    "override",
    "partition_functions",
    "prepare",
    "preset",
    "remarks",
    "rule_classes",
    "run",
    "set_up",
    "spell",
    "summarise",
    "to_table",
]
