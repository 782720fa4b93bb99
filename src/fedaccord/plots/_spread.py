"""Clients' mean accuracy against its spread, a point a rule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from adjustText import adjust_text
from matplotlib.axes import Axes

from ._style import Measured, style_of, tidy


class Point(NamedTuple):
    """Where a rule's clients are, in per cent.

    :param name: What is written beside it.
    :param spread: Population standard deviation over clients.
    :param mean: Mean over clients.
    :param own: Whether it is of the clients' own models.
    """

    name: str
    spread: float
    mean: float
    own: bool


def points_of(runs: Sequence[Measured]) -> list[Point]:
    """The points of some runs; those of one name, with different seeds, are averaged."""
    found: dict[tuple[str, bool], list[tuple[float, float]]] = {}
    for run in runs:
        for model, summary in _summaries(run.evaluations[-1][1]):
            name = run.name if model == "global" else f"{run.name}, {model} models"
            where = (100 * summary["spread"], 100 * summary["mean"])
            found.setdefault((name, model != "global"), []).append(where)
    points = []
    for (name, own), places in found.items():
        spread, mean = np.mean(places, axis=0).tolist()
        points.append(Point(name, spread, mean, own))
    return points


def draw_accuracy_against_spread(axes: Axes, runs: Sequence[Measured]) -> None:
    """Draw the points with their names, which keep out of each other's way."""
    points = sorted(points_of(runs), key=lambda point: point.mean)
    colours = {name: style_of(number).colour for number, name in enumerate((False, True))}
    drawn = []
    for point in points:
        colour = colours[point.own]
        face = "none" if point.own else colour
        look: dict[str, Any] = {"color": colour, "markerfacecolor": face, "zorder": 4}
        drawn += axes.plot(point.spread, point.mean, "o", markersize=6, **look)
    rounds = runs[0].evaluations[-1][0]
    tidy(
        axes,
        title=f"Mean and spread of the clients' accuracies after {rounds} rounds",
        xlabel="spread over clients (percentage points), less is more even",
    )
    axes.set_ylabel("mean over clients (%)")
    axes.grid(axis="x", color="#DDDDDD", linewidth=0.6)
    axes.margins(x=0.12, y=0.08)
    names = [
        axes.text(point.spread, point.mean, point.name, fontsize=8, color="#222222", va="bottom")
        for point in points
    ]
    # a fixed number of iterations, not a time: the same figure on every machine
    adjust_text(
        names,
        x=[point.spread for point in points],
        y=[point.mean for point in points],
        ax=axes,
        objects=drawn,
        iter_lim=500,
        expand=(1.1, 1.5),
        force_static=(0.2, 0.4),
        min_arrow_len=0,  # of two near points each needs a line to its name
        arrowprops={"arrowstyle": "-", "color": "#AAAAAA", "linewidth": 0.6},
    )


def _summaries(evaluation: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The model and summary of accuracies of all clients, global first."""
    for block in (evaluation["clients"], *evaluation.get("also", ())):
        summary = block["summary"]
        label = summary["label"]
        everyone = label["population"] == evaluation["clients"]["summary"]["label"]["population"]
        if block["quantity"] != "accuracy" or not everyone or "local steps" in label["moment"]:
            continue
        yield label["model"], summary
