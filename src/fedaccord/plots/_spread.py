"""Clients' mean accuracy against its spread, a point a rule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
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
    for point in points:
        colour = colours[point.own]
        face = "none" if point.own else colour
        look: dict[str, Any] = {"color": colour, "markerfacecolor": face, "zorder": 4}
        axes.plot(point.spread, point.mean, "o", markersize=6, **look)
    rounds = runs[0].evaluations[-1][0]
    tidy(
        axes,
        title=f"Mean and spread of the clients' accuracies after {rounds} rounds",
        xlabel="spread over clients (percentage points), less is more even",
    )
    axes.set_ylabel("mean over clients (%)")
    axes.grid(axis="x", color="#DDDDDD", linewidth=0.6)
    axes.margins(x=0.12, y=0.08)
    for point, height in zip(points, _heights(axes, points), strict=True):
        axes.annotate(
            point.name,
            (point.spread, point.mean),
            xytext=(point.spread, height),
            textcoords="data",
            fontsize=8,
            va="center",
            color="#222222",
            annotation_clip=False,
            bbox={"boxstyle": "square,pad=0.1", "fc": "white", "ec": "none", "alpha": 0.6},
            arrowprops={"arrowstyle": "-", "color": "#BBBBBB", "linewidth": 0.5},
        )


def _heights(axes: Axes, points: Sequence[Point]) -> list[float]:
    """Heights of the names: beside their points, moved up where names of near points would meet."""
    low, high = axes.get_ylim()
    left, right = axes.get_xlim()
    line, width = (high - low) / 28, (right - left) / 5
    placed: list[tuple[float, float]] = []
    for point in points:
        height = point.mean + line * 0.8
        near = sorted(h for spread, h in placed if abs(spread - point.spread) < width)
        for other in near:
            if abs(other - height) < line:
                height = other + line
        placed.append((point.spread, height))
    return [height for _, height in placed]


def _summaries(evaluation: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The model and summary of accuracies of all clients, global first."""
    for block in (evaluation["clients"], *evaluation.get("also", ())):
        summary = block["summary"]
        label = summary["label"]
        everyone = label["population"] == evaluation["clients"]["summary"]["label"]["population"]
        if block["quantity"] != "accuracy" or not everyone or "local steps" in label["moment"]:
            continue
        yield label["model"], summary
