"""Figures of runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ._panels import draw_accuracy_over_rounds, draw_client_accuracies, draw_task_accuracies
from ._spread import draw_accuracy_against_spread
from ._style import Measured, new_figure


def client_accuracies(runs: Sequence[Measured]) -> Figure:
    """Draw every client's accuracy at the end, each run's from the worst off to the best.

    :param runs: At least one, each with an evaluation of clients.
    :raises ValueError: If there is no run, or one lacks what is drawn.
    """
    return _single(runs, "clients", draw_client_accuracies)


def accuracy_over_rounds(runs: Sequence[Measured]) -> Figure:
    """Draw the mean over clients, and over the worst tenth of them, against rounds.

    :param runs: At least one, each with evaluations of clients.
    :raises ValueError: If there is no run, or one lacks what is drawn.
    """
    return _single(runs, "clients", draw_accuracy_over_rounds)


def accuracy_against_spread(runs: Sequence[Measured]) -> Figure:
    """Draw the clients' mean accuracy against its spread: up and to the left is better for all.

    Models of the clients' own are drawn beside the global one, as open points.

    :param runs: At least one, each with an evaluation of clients; those of one name, with different
        seeds, make one point.
    :raises ValueError: If there is no run, or one lacks what is drawn.
    """
    _require(runs, "clients")
    figure = new_figure(8, 5.5)
    draw_accuracy_against_spread(figure.subplots(), runs)
    return figure


def task_accuracies(runs: Sequence[Measured]) -> Figure:
    """Draw the accuracy of every task against rounds.

    :param runs: At least one, with the same tasks.
    :raises ValueError: If there is no run, or one has no evaluation.
    """
    return _single(runs, "tasks", draw_task_accuracies)


def demo_figure(
    clients: Sequence[Measured], tasks: Sequence[Measured], *, captions: Sequence[str] = ()
) -> Figure:
    """Draw clients' fairness and tasks' balance side by side.

    :param clients: Runs with evaluations of clients.
    :param tasks: Runs with several tasks.
    :param captions: Lines below the figure: what was run.
    :raises ValueError: If there is no run of a kind, or one lacks what is drawn.
    """
    _require(clients, "clients")
    _require(tasks, "tasks")
    figure = new_figure(13, 4.1 + 0.2 * len(captions))
    panels = figure.subplots(1, 3)
    draw_client_accuracies(panels[0], clients)
    draw_accuracy_over_rounds(panels[1], clients)
    draw_task_accuracies(panels[2], tasks)
    if captions:
        figure.supxlabel("\n".join(captions), x=0.01, ha="left", fontsize=8, color="#444444")
    return figure


def _single(
    runs: Sequence[Measured], needed: str, draw: Callable[[Axes, Sequence[Measured]], None]
) -> Figure:
    _require(runs, needed)
    figure = new_figure(6, 4)
    draw(figure.subplots(), runs)
    return figure


def _require(runs: Sequence[Measured], needed: str) -> None:
    if not runs:
        raise ValueError("A figure needs at least one run. Got none.")
    for run in runs:
        if not run.evaluations or needed not in run.evaluations[-1][1]:
            raise ValueError(
                f"The figure shows {needed}, which {run.name} has no evaluation of. Choose runs "
                f"with {'one task' if needed == 'clients' else 'at least one evaluation'}."
            )
