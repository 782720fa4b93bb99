"""Sentences follow the numbers, whichever way those go."""

from __future__ import annotations

from typing import Any

import pytest

from fedaccord.cli._findings import about_clients, about_tasks, beside_published
from fedaccord.experiments import Run, from_table, override, preset, summarise


def client_run(
    name: str, means: list[float], *, worst: float = 0.5, outcome: str | None = None
) -> Run:
    def evaluation(mean: float) -> dict[str, Any]:
        clients = {"mean": mean, "worst": worst, "spread": 0.1, "jain": 0.9, "fraction": 0.1}
        tasks = {"tasks": ["item"], "accuracies": [mean], "mean_loss": 0.5}
        tasks |= {"worst_accuracy": mean, "concordance": None}
        block = {"quantity": "accuracy", "summary": clients}
        return {"examples": 1000, "tasks": tasks, "clients": block}

    diagnostics: dict[str, Any] = {}
    if outcome:
        diagnostics = {
            "outcome": outcome,
            "constrained_now": 10,
            "constrained_cached": 20,
            "violated": [1, 2, 3],
            "solver_fallbacks": 0,
        }
    return make(name, "fashion-mini", [evaluation(mean) for mean in means], diagnostics)


def task_run(name: str, mean: float, worst: float, **diagnostics: Any) -> Run:
    tasks = {
        "tasks": ["digit", "item"],
        "accuracies": [2 * mean - worst, worst],
        "mean_accuracy": mean,
        "worst_accuracy": worst,
        "mean_loss": 0.5,
        "hypervolume": 6.0,
        "reference": 3.0,
        "concordance": None,
    }
    rule = {"name": name.lower()}
    return make(
        name, "digits-fashion-mini", [{"examples": 1000, "tasks": tasks}], diagnostics, rule=rule
    )


def make(
    name: str,
    dataset: str,
    evaluations: list[dict[str, Any]],
    diagnostics: dict[str, Any],
    rule: dict[str, Any] | None = None,
) -> Run:
    table = override(preset(dataset), {"rounds": len(evaluations), "evaluate_every": 1})
    experiment = from_table({**table, "rule": rule or {"name": "fedavg"}})
    if experiment.calibration:
        experiment = experiment.calibrated((2.4, 2.5))
    records = tuple(
        {
            "round": round,
            "asked": [0, 1],
            "answered": [0, 1],
            "failures": {},
            "without_examples": [],
            "empty": False,
            "diagnostics": diagnostics,
            "evaluation": evaluation,
        }
        for round, evaluation in enumerate(evaluations)
    )
    return Run(name, experiment, records, summarise(records), {"sizes": [5, 5, 5]})


def test_a_gain_is_called_more():
    said = about_clients(
        client_run("A", [0.4, 0.5]), client_run("B", [0.6, 0.7], outcome="average")
    )
    assert "70.0 % against 50.0 % (20.0 points more) with B against A" in said[0]


def test_a_loss_is_called_less():
    said = about_clients(
        client_run("A", [0.4, 0.5]), client_run("B", [0.3, 0.4], outcome="average")
    )
    assert "40.0 % against 50.0 % (10.0 points less)" in said[0]
    assert "B did not reach A's final client mean." in said


def test_no_difference_is_called_that():
    runs = client_run("A", [0.5, 0.5]), client_run("B", [0.5, 0.5], outcome="average")
    assert "50.0 % against 50.0 % (no difference)" in about_clients(*runs)[0]


def test_the_round_in_which_the_baseline_was_reached_is_the_first():
    runs = client_run("A", [0.1, 0.2, 0.5]), client_run("B", [0.3, 0.6, 0.4], outcome="average")
    assert "B had reached A's final client mean after 2 of 3 rounds." in about_clients(*runs)


def test_infeasible_rounds_are_counted():
    runs = client_run("A", [0.5, 0.5]), client_run("B", [0.5, 0.5], outcome="infeasible")
    told = about_clients(*runs)[3]
    assert "Of 2 rounds of B, in 2 it found no direction for everybody and took the average" in told
    assert "No round was infeasible" not in told
    assert "30 clients were represented, of whom the plain average would have left 3 short" in told


def test_the_setting_is_part_of_the_sentence():
    said = about_clients(client_run("A", [0.5]), client_run("B", [0.5], outcome="average"))
    assert said[0].startswith("On fashion-mini (3 clients, 2 a round, 1 round, seed 0)")


def test_chance_is_named_in_points():
    # two standard errors of the difference of two shares of 1,000: 200 sqrt(2 * .5 * .5 / 1000)
    said = about_clients(client_run("A", [0.5]), client_run("B", [0.5], outcome="average"))
    assert "less than about 4.5 points" in said[-1]


def test_the_cost_of_calibration_is_stated():
    said = about_tasks(task_run("Uniform", 0.8, 0.7), task_run("FedHV", 0.8, 0.7))
    assert any("reference (2.400, 2.500) took 20 rounds of Uniform" in each for each in said)


def test_weights_and_floored_rounds_are_told():
    fair = task_run("FedHV", 0.8, 0.7, task_weights=[0.5, 0.5], floored_tasks=[1])
    said = about_tasks(task_run("Uniform", 0.8, 0.7), fair)
    assert any("digit 0.50 to 0.50, item 0.50 to 0.50; a loss reached its" in each for each in said)
    assert any("reference in 1 round." in each for each in said)


def test_published_numbers_stand_beside_ours():
    # FedHV paper, Table 1, MNIST-FMNIST
    said = beside_published(task_run("Uniform", 0.8, 0.7), task_run("FedHV", 0.81, 0.72))[0]
    assert "Uniform 86.41 / 76.98 % (here 80.0 / 70.0 %)" in said
    assert "FedHV 86.35 / 77.03 % (here 81.0 / 72.0 %)" in said
    assert "Settings differ" in said


@pytest.mark.parametrize("worst", [0.2, 0.5, 0.9])
def test_the_worst_off_are_told_by_their_own_number(worst: float):
    runs = client_run("A", [0.5]), client_run("B", [0.5], worst=worst, outcome="average")
    assert (
        f"the worst 10 % of the clients {100 * worst:.1f} % against 50.0 %"
        in about_clients(*runs)[1]
    )
