"""Figures: pure functions from runs to ``matplotlib`` figures. Needs the extra ``plots``."""

from __future__ import annotations

from ._figures import (
    accuracy_against_spread,
    accuracy_over_rounds,
    client_accuracies,
    demo_figure,
    task_accuracies,
)
from ._partition import partition_figure
from ._style import Measured
from ._write import write_figure

__all__ = [
    "Measured",
    "accuracy_against_spread",
    "accuracy_over_rounds",
    "client_accuracies",
    "demo_figure",
    "partition_figure",
    "task_accuracies",
    "write_figure",
]
