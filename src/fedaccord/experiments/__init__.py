"""Experiments as values, and their runs in folders."""

from __future__ import annotations

from ._choices import HoldoutChoice, ModelChoice, PartitionChoice
from ._experiment import Calibration, Experiment
from ._folder import FolderError, RunFolder, check_writable
from ._json import dumps, read_json, write_json
from ._measures import (
    Measure,
    count,
    legend,
    measures,
    of_clients,
    over_seeds,
    span,
    spell,
    subject,
)
from ._names import hyperparameters, model_factories, options_of, partition_functions, rule_classes
from ._presets import (
    Preset,
    completed,
    list_presets,
    preset,
    read_file,
    read_preset,
    usual_settings,
)
from ._read import Run
from ._rule_choice import RuleChoice
from ._run import carry_out, prepare, run
from ._setup import Setup, set_up
from ._summary import remarks, summarise
from ._table import Table, from_table, override, to_table
from ._verify import Check, verify
from ._watch import Watch

__all__ = [
    "Calibration",
    "Check",
    "Experiment",
    "FolderError",
    "HoldoutChoice",
    "Measure",
    "ModelChoice",
    "PartitionChoice",
    "Preset",
    "RuleChoice",
    "Run",
    "RunFolder",
    "Setup",
    "Table",
    "Watch",
    "carry_out",
    "check_writable",
    "completed",
    "count",
    "dumps",
    "from_table",
    "hyperparameters",
    "legend",
    "list_presets",
    "measures",
    "model_factories",
    "options_of",
    "of_clients",
    "over_seeds",
    "override",
    "partition_functions",
    "prepare",
    "preset",
    "read_file",
    "read_json",
    "read_preset",
    "remarks",
    "rule_classes",
    "run",
    "set_up",
    "span",
    "spell",
    "subject",
    "summarise",
    "to_table",
    "usual_settings",
    "verify",
    "write_json",
]
