"""The numbers of an evaluation that tables show, in order, each with what it is about."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Measure:
    """One number of an evaluation.

    :param name: A short name, for a table's head.
    :param value: The number; NaN where it was not finite, as an overflown loss is not.
    :param fraction: Whether it is in ``[0, 1]`` and read in per cent.
    :param lower_is_better: For losses and spreads.
    """

    name: str
    value: float
    fraction: bool = True
    lower_is_better: bool = False

    def __str__(self) -> str:
        return spell(self.value, fraction=self.fraction)


def _number(value: float | None) -> float:
    """JSON has nothing but null for what is not finite."""
    return math.nan if value is None else value


def measures(evaluation: Mapping[str, Any]) -> tuple[Measure, ...]:
    """The numbers to show of an evaluation.

    With clients: accuracy on the pooled test set, then mean, worst tenth, spread and Jain's index
    of the clients' accuracies. With several tasks: accuracy of each, their mean and worst, mean
    loss, hypervolume.

    :param evaluation: As a run's record holds it.
    """
    tasks = evaluation["tasks"]
    if "clients" in evaluation:
        clients = evaluation["clients"]["summary"]
        return (
            Measure("test set", tasks["accuracies"][0]),
            Measure("client mean", clients["mean"]),
            Measure(f"worst {100 * clients['fraction']:g} %", clients["worst"]),
            Measure("spread", clients["spread"], lower_is_better=True),
            Measure("Jain", clients["jain"], fraction=False),
            Measure("test loss", _number(tasks["mean_loss"]), fraction=False, lower_is_better=True),
        )
    each = zip(tasks["tasks"], tasks["accuracies"], strict=True)
    return (
        *(Measure(name, accuracy) for name, accuracy in each),
        Measure("MeanAcc", tasks["mean_accuracy"]),
        Measure("WorstAcc", tasks["worst_accuracy"]),
        Measure("MeanLoss", _number(tasks["mean_loss"]), fraction=False, lower_is_better=True),
        Measure("HV", _number(tasks["hypervolume"]), fraction=False),
    )


def legend(evaluation: Mapping[str, Any]) -> list[str]:
    """Say what the numbers of :func:`measures` are about.

    :param evaluation: As a run's record holds it.
    """
    tasks = evaluation["tasks"]
    label = tasks["label"]
    head = f"{label['model'].capitalize()} model {label['moment']}."
    if "clients" in evaluation:
        clients = evaluation["clients"]["summary"]
        missing = clients["num_missing"]
        left_out = f", {missing} without a value left out" if missing else ""
        return [
            f"{head} test set: accuracy on the whole test set, {label['weighting']}.",
            f"client mean, worst {100 * clients['fraction']:g} %, spread (population standard "
            f"deviation), Jain: over {clients['num_clients']} clients "
            f"({clients['label']['population']}{left_out}), {clients['label']['weighting']}; "
            f"a client's accuracy: {evaluation['clients']['accuracy_is']}.",
        ]
    return [
        f"{head} Accuracy and loss on the {label['population']}, {label['weighting']}. MeanAcc, "
        f"MeanLoss: mean over tasks; WorstAcc: lowest of the tasks; HV: hypervolume, reference "
        f"{tasks['reference']:g}."
    ]


def spell(value: float, *, fraction: bool) -> str:
    """Write a number as tables show it: in per cent with one digit, or plain with three."""
    if math.isnan(value):
        return "not finite"
    return f"{100 * value:.1f} %" if fraction else f"{value:.3f}"


def over_seeds(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean and sample standard deviation; ``None`` for the latter with a single value."""
    mean = sum(values) / len(values)
    if len(values) < 2:
        return mean, None
    return mean, (sum((value - mean) ** 2 for value in values) / (len(values) - 1)) ** 0.5
