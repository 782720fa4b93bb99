"""What a model achieves: for tasks, for clients, and for the worst off among them."""

from __future__ import annotations

from ._clients import class_shares, client_accuracies
from ._evaluate import Evaluation, evaluate
from ._fairness import angle, jain_index, spread, worst_fraction
from ._score import Score, Scores, class_scores
from ._summary import FairnessSummary, Label, TaskSummary, fairness_summary, task_summary
from ._tasks import hypervolume

__all__ = [
    "Evaluation",
    "FairnessSummary",
    "Label",
    "Score",
    "Scores",
    "TaskSummary",
    "angle",
    "class_scores",
    "class_shares",
    "client_accuracies",
    "evaluate",
    "fairness_summary",
    "hypervolume",
    "jain_index",
    "spread",
    "task_summary",
    "worst_fraction",
]
