"""Which settings make a run the run it is."""

from __future__ import annotations

import hashlib
import json

from ._experiment import Experiment
from ._table import Table, to_table

MAY_CHANGE = ("rounds", "workers", "data_dir")
"""A run may be made longer, and nothing that it does depends on the others."""


def identity(experiment: Experiment) -> Table:
    """Everything that a run in progress must keep."""
    table = to_table(experiment)
    return {key: value for key, value in table.items() if key not in MAY_CHANGE}


def digest(experiment: Experiment) -> str:
    """SHA-256 of :func:`identity`, for a checkpoint to be recognised by."""
    text = json.dumps(identity(experiment), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
