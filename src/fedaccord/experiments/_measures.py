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

    First what tasks reach on the whole test set, then how clients fare if they have values: mean,
    worst tenth, spread and Jain's index; last the losses.

    :param evaluation: As a run's record holds it.
    """
    tasks = evaluation["tasks"]
    several = len(tasks["tasks"]) > 1
    found: list[Measure] = []
    if tasks["accuracies"] is not None:
        names = tasks["tasks"] if several else ["test set"]
        found += [Measure(name, a) for name, a in zip(names, tasks["accuracies"], strict=True)]
    if tasks["concordance"] is not None:
        found.append(Measure("C-index", tasks["concordance"], fraction=False))
    if several and tasks["accuracies"] is not None:
        found += [
            Measure("MeanAcc", tasks["mean_accuracy"]),
            Measure("WorstAcc", tasks["worst_accuracy"]),
        ]
    if "clients" in evaluation:
        found += of_clients(evaluation["clients"])
    loss = {"fraction": False, "lower_is_better": True}
    if several and tasks["accuracies"] is None:
        losses = zip(tasks["tasks"], tasks["losses"], strict=True)
        found += [Measure(f"loss {name}", _number(value), **loss) for name, value in losses]
    name = "MeanLoss" if several else "test loss"
    found.append(Measure(name, _number(tasks["mean_loss"]), **loss))
    if several and tasks["reference"] is not None:
        found.append(Measure("HV", _number(tasks["hypervolume"]), fraction=False))
    return tuple(found)


def of_clients(block: Mapping[str, Any]) -> tuple[Measure, ...]:
    """The numbers to show of some clients.

    :param block: An entry of an evaluation's ``clients`` or ``also``.
    """
    summary, quantity = block["summary"], block["quantity"]
    look = {"fraction": quantity == "accuracy", "lower_is_better": quantity == "loss"}
    return (
        Measure("client mean", _number(summary["mean"]), **look),
        Measure(f"worst {100 * summary['fraction']:g} %", _number(summary["worst"]), **look),
        Measure(
            "spread", _number(summary["spread"]), fraction=look["fraction"], lower_is_better=True
        ),
        Measure("Jain", _number(summary["jain"]), fraction=False),
    )


def subject(block: Mapping[str, Any]) -> str:
    """What the numbers of some clients are about, in a few words.

    :param block: An entry of an evaluation's ``clients`` or ``also``.
    """
    label = block["summary"]["label"]
    return f"{label['model']} model {label['moment']}, {label['population']}: {block['quantity']}"


def legend(evaluation: Mapping[str, Any]) -> list[str]:
    """Say what the numbers of :func:`measures` are about.

    :param evaluation: As a run's record holds it.
    """
    tasks = evaluation["tasks"]
    label = tasks["label"]
    head = f"{label['model'].capitalize()} model {label['moment']}."
    several = len(tasks["tasks"]) > 1
    lines = []
    if tasks["accuracies"] is None:
        what = "loss" if tasks["concordance"] is None else "Harrell's concordance index and loss"
        lines.append(f"{head} {what} on the {label['population']}, {label['weighting']}.")
    elif several:
        lines.append(
            f"{head} Accuracy and loss on the {label['population']}, {label['weighting']}. "
            f"MeanAcc, MeanLoss: mean over tasks; WorstAcc: lowest of the tasks; HV: hypervolume, "
            f"reference {tasks['reference']:g}."
        )
    else:
        lines.append(
            f"{head} test set: accuracy on the {label['population']}, {label['weighting']}."
        )
    if "clients" in evaluation:
        block = evaluation["clients"]
        summary = block["summary"]
        missing = summary["num_missing"]
        left_out = f", {missing} without a value left out" if missing else ""
        lines.append(
            f"client mean, worst {100 * summary['fraction']:g} %, spread (population standard "
            f"deviation), Jain: over {summary['num_clients']} clients "
            f"({summary['label']['population']}{left_out}), {summary['label']['weighting']}; "
            f"a client's {block['quantity']}: {block['measured']}."
        )
        if noise := block.get("variance"):
            part = noise["sampling"] / noise["total"] if noise["total"] else 0.0
            lines.append(
                f"Of the variance over clients {100 * min(part, 1.0):.0f} % is what so few rows "
                f"({span(block['rows'])} a client) make by chance."
            )
    return lines


def spell(value: float, *, fraction: bool) -> str:
    """Write a number as tables show it: in per cent with one digit, or plain with three."""
    if math.isnan(value):
        return "not finite"
    return f"{100 * value:.1f} %" if fraction else f"{value:.3f}"


def count(number: int, thing: str) -> str:
    """``"1 round"``, ``"2 rounds"``."""
    return f"{number} {thing}{'s' * (number != 1)}"


def span(numbers: Sequence[int]) -> str:
    """``"3"``, or ``"3 to 7"`` where they differ."""
    return " to ".join(map(str, sorted({min(numbers), max(numbers)})))


def over_seeds(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean and sample standard deviation; ``None`` for the latter with a single value."""
    mean = sum(values) / len(values)
    if len(values) < 2:
        return mean, None
    return mean, (sum((value - mean) ** 2 for value in values) / (len(values) - 1)) ** 0.5
