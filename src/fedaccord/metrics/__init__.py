"""What a model achieves: for tasks, for clients, and for the worst off among them."""

from __future__ import annotations

from ._client_scores import ClientScores
from ._clients import class_shares, client_accuracies
from ._evaluate import Evaluation, evaluate
from ._fairness import (
    angle,
    best_fraction,
    coefficient_of_variation,
    entropy,
    jain_index,
    spread,
    worst_fraction,
)
from ._fairness_summary import FairnessSummary, fairness_summary
from ._gain import Gain, gain_over_local, rounds_to_reach
from ._label import Label, moment, populations
from ._moments import after_local_steps, personal_models
from ._noise import VarianceParts, variance_parts, wilson_interval
from ._own_rows import evaluate_clients
from ._score import (
    Score,
    Scores,
    SurvivalScores,
    class_scores,
    score_for,
    survival_scores,
    value_scores,
)
from ._seeds import Interval, PairedComparison, interval, paired_comparison
from ._survival import concordance_index
from ._task_summary import TaskSummary, task_summary
from ._tasks import hypervolume

__all__ = [
    "ClientScores",
    "Evaluation",
    "FairnessSummary",
    "Gain",
    "Interval",
    "Label",
    "PairedComparison",
    "Score",
    "Scores",
    "SurvivalScores",
    "TaskSummary",
    "VarianceParts",
    "after_local_steps",
    "angle",
    "best_fraction",
    "class_scores",
    "class_shares",
    "client_accuracies",
    "coefficient_of_variation",
    "concordance_index",
    "entropy",
    "evaluate",
    "evaluate_clients",
    "fairness_summary",
    "gain_over_local",
    "hypervolume",
    "interval",
    "jain_index",
    "moment",
    "paired_comparison",
    "personal_models",
    "populations",
    "rounds_to_reach",
    "score_for",
    "spread",
    "survival_scores",
    "task_summary",
    "value_scores",
    "variance_parts",
    "wilson_interval",
    "worst_fraction",
]
