"""Figures show the numbers of the runs, and leave no state behind."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="figures need the extra `plots`")

from matplotlib.figure import Figure

from fedaccord.plots import (
    accuracy_over_rounds,
    client_accuracies,
    demo_figure,
    task_accuracies,
)
from fedaccord.plots._style import apart


@dataclass(frozen=True)
class Measured:
    name: str
    evaluations: tuple[tuple[int, dict[str, Any]], ...]


def clients(name: str, *values: list[float | None]) -> Measured:
    def evaluation(accuracies: list[float | None]) -> dict[str, Any]:
        known = sorted(value for value in accuracies if value is not None)
        summary = {"mean": float(np.mean(known)), "worst": known[0]}
        return {"clients": {"values": accuracies, "summary": summary}}

    return Measured(name, tuple((5 * i, evaluation(v)) for i, v in enumerate(values, start=1)))


def tasks(name: str, *values: tuple[float, float]) -> Measured:
    def evaluation(accuracies: tuple[float, float]) -> dict[str, Any]:
        return {"tasks": {"tasks": ["digit", "item"], "accuracies": accuracies}}

    return Measured(name, tuple((5 * i, evaluation(v)) for i, v in enumerate(values, start=1)))


ONE = clients("one", [0.9, 0.1, 0.5], [0.7, 0.2, 0.6])
OTHER = clients("other", [0.5, 0.5, 0.5], [0.6, 0.6, 0.6])
PAIR = tasks("pair", (0.5, 0.4), (0.8, 0.6))


def lines(figure: Figure) -> list[Any]:
    return [line for axes in figure.axes for line in axes.lines if len(line.get_xdata()) > 1]


def test_client_accuracies_are_sorted_and_in_per_cent():
    line = lines(client_accuracies([ONE]))[0]
    assert line.get_ydata().tolist() == pytest.approx([20, 60, 70])
    assert line.get_xdata().tolist() == [1, 2, 3]


def test_a_client_without_a_value_is_left_out():
    line = lines(client_accuracies([clients("x", [0.5, None, 0.1])]))[0]
    assert line.get_ydata().tolist() == pytest.approx([10, 50])


def test_mean_and_worst_are_drawn_over_rounds():
    mean, worst = lines(accuracy_over_rounds([ONE]))
    assert list(mean.get_xdata()) == [5, 10]
    assert list(mean.get_ydata()) == pytest.approx([50, 50])
    assert list(worst.get_ydata()) == pytest.approx([10, 20])


def test_every_task_has_a_line():
    digit, item = lines(task_accuracies([PAIR]))
    assert list(digit.get_ydata()) == pytest.approx([50, 80])
    assert list(item.get_ydata()) == pytest.approx([40, 60])


def test_every_axis_says_what_it_shows():
    for axes in demo_figure([ONE, OTHER], [PAIR]).axes:
        assert axes.get_xlabel()
        assert "%" in axes.get_ylabel()
        assert axes.get_title(loc="left")


def test_runs_differ_by_more_than_colour():
    first, second = (
        line for line in lines(accuracy_over_rounds([ONE, OTHER])) if line.get_linestyle() == "-"
    )
    assert first.get_marker() != second.get_marker()


def test_every_run_is_named_in_the_figure():
    figure = accuracy_over_rounds([ONE, OTHER])
    texts = {text.get_text() for text in figure.axes[0].texts}
    assert texts == {"one, mean", "one, worst 10 %", "other, mean", "other, worst 10 %"}


def test_figures_can_be_written(tmp_path: Path):
    figure = demo_figure([ONE, OTHER], [PAIR], captions=["what was run"])
    for name in ("a.png", "a.svg"):
        figure.savefig(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 1000


def test_pyplot_is_not_touched(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)  # another's import
    demo_figure([ONE], [PAIR])
    assert "matplotlib.pyplot" not in sys.modules


def test_a_figure_needs_a_run():
    with pytest.raises(ValueError, match="at least one run"):
        client_accuracies([])


def test_a_figure_of_clients_needs_runs_that_measured_them():
    with pytest.raises(ValueError, match="which pair has no evaluation of"):
        client_accuracies([PAIR])


@pytest.mark.parametrize(
    ("heights", "expected"),
    [
        ([0.0, 10.0, 20.0], [0.0, 10.0, 20.0]),  # far enough apart: left alone
        ([10.0, 10.0], [7.5, 12.5]),  # moved apart around their mean
        ([0.0, 4.0, 5.0], [-2.0, 3.0, 8.0]),  # three that touch, around 3
        ([0.0, 1.0, 50.0], [-2.0, 3.0, 50.0]),
    ],
)
def test_labels_are_moved_apart_around_where_they_belong(
    heights: list[float], expected: list[float]
):
    assert apart(heights, gap=5.0) == pytest.approx(expected)
