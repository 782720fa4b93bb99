"""What one pair of axes shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from ._style import Measured, label_ends, per_cent_axis, style_of, tidy

LABEL_GAP = 6.5


def draw_client_accuracies(axes: Axes, runs: Sequence[Measured]) -> None:
    """Every client's accuracy after the last round, each run's from the worst off to the best."""
    for number, run in enumerate(runs):
        style = style_of(number)
        values = _client_accuracies(run)
        ranks = np.arange(1, len(values) + 1)
        axes.plot(ranks, values, drawstyle="steps-mid", **style.line())
        # where a tenth of the clients is reached, a mark tells runs apart without colour
        marks = ranks[:: max(1, len(ranks) // 10)]
        axes.plot(marks, values[marks - 1], style.marker, color=style.colour, markersize=4)
        axes.plot([], [], label=run.name, marker=style.marker, markersize=4, **style.line())
    per_cent_axis(axes, label="accuracy of a client (%)")
    rounds = runs[0].evaluations[-1][0]
    count = len(_client_accuracies(runs[0]))
    tidy(axes, title=f"Every client after {rounds} rounds", xlabel=f"{count} clients, worst first")
    axes.set_xlim(0, count + 1)
    # sorted values leave the lower right corner free; their ends often meet
    axes.legend(loc="lower right", frameon=False, fontsize=9)


def draw_accuracy_over_rounds(axes: Axes, runs: Sequence[Measured]) -> None:
    """Mean over clients, and over the worst tenth of them, after each evaluation."""
    ends = []
    for number, run in enumerate(runs):
        style = style_of(number)
        rounds = [done for done, _ in run.evaluations]
        for key, words, look in (
            ("mean", "mean", {"linewidth": 1.8}),
            ("worst", "worst 10 %", {"linewidth": 1.2, "linestyle": "--"}),
        ):
            values = [100 * e["clients"]["summary"][key] for _, e in run.evaluations]
            axes.plot(rounds, values, marker=style.marker, markersize=3.5, **style.line(**look))
            ends.append((rounds[-1], values[-1], f"{run.name}, {words}", style.colour))
    per_cent_axis(axes, label="accuracy over clients (%)")
    tidy(axes, title="Mean and worst tenth of the clients", xlabel="rounds")
    axes.set_xlim(left=0)
    label_ends(axes, ends, gap=LABEL_GAP)


def draw_task_accuracies(axes: Axes, runs: Sequence[Measured]) -> None:
    """Accuracy of every task after each evaluation."""
    ends = []
    tasks: Sequence[str] = runs[0].evaluations[-1][1]["tasks"]["tasks"]
    for number, run in enumerate(runs):
        style = style_of(number)
        rounds = [done for done, _ in run.evaluations]
        for position, task in enumerate(tasks):
            look: dict[str, Any] = {"linestyle": ("-", "--", "-.", ":")[position % 4]}
            values = [100 * e["tasks"]["accuracies"][position] for _, e in run.evaluations]
            axes.plot(rounds, values, marker=style.marker, markersize=3.5, **style.line(**look))
            ends.append((rounds[-1], values[-1], f"{run.name}, {task}", style.colour))
    per_cent_axis(axes, label="accuracy on the test set (%)")
    tidy(axes, title="Every task", xlabel="rounds")
    axes.set_xlim(left=0)
    label_ends(axes, ends, gap=LABEL_GAP)


def _client_accuracies(run: Measured) -> Any:
    """Sorted, in per cent; clients without a value are left out."""
    values = run.evaluations[-1][1]["clients"]["values"]
    return 100 * np.sort(np.array([value for value in values if value is not None]))
