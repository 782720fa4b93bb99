"""Figures: pure functions from runs to ``matplotlib`` figures. Needs the extra ``plots``."""

from __future__ import annotations

from ._figures import accuracy_over_rounds, client_accuracies, demo_figure, task_accuracies
from ._style import Measured

__all__ = [
    "Measured",
    "accuracy_over_rounds",
    "client_accuracies",
    "demo_figure",
    "task_accuracies",
]
