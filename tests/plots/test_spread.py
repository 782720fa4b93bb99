"""Mean accuracy against spread."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import pytest

from fedaccord.plots import accuracy_against_spread
from fedaccord.plots._spread import Point, points_of


@dataclass(frozen=True)
class Measured:
    name: str
    evaluations: tuple[tuple[int, dict[str, Any]], ...]


def block(
    mean: float,
    spread: float,
    *,
    model: str = "global",
    moment: str = "after 5 rounds",
    population: str = "all clients",
    quantity: str = "accuracy",
) -> dict[str, Any]:
    label = {"model": model, "moment": moment, "population": population}
    return {"quantity": quantity, "summary": {"mean": mean, "spread": spread, "label": label}}


def run(name: str, main: dict[str, Any], *also: dict[str, Any]) -> Measured:
    return Measured(name, ((5, {"clients": main, "also": list(also)}),))


def test_a_rule_is_a_point_in_per_cent():
    assert points_of([run("FedAvg", block(0.5, 0.25))]) == [Point("FedAvg", 25.0, 50.0, own=False)]


def test_seeds_of_one_rule_are_averaged():
    runs = [run("FedAvg", block(0.5, 0.2)), run("FedAvg", block(0.7, 0.4))]
    (point,) = points_of(runs)
    assert (point.spread, point.mean) == pytest.approx((30.0, 60.0))


def test_personal_models_are_points_of_their_own():
    runs = [run("Ditto", block(0.5, 0.2), block(0.9, 0.1, model="personal"))]
    assert points_of(runs) == [
        Point("Ditto", 20.0, 50.0, own=False),
        Point("Ditto, personal models", 10.0, 90.0, own=True),
    ]


def test_losses_other_clients_and_other_moments_are_left_out():
    also = (
        block(2.0, 0.1, quantity="loss"),
        block(0.4, 0.1, population="clients held out of training"),
        block(0.6, 0.1, moment="after 5 rounds, after local steps"),
    )
    assert len(points_of([run("FedAvg", block(0.5, 0.2), *also)])) == 1


def test_names_of_near_points_keep_apart():
    runs = [run(f"rule {i}", block(0.5 + 0.001 * i, 0.2)) for i in range(6)]
    axes = accuracy_against_spread(runs).axes[0]
    heights = sorted(text.get_position()[1] for text in axes.texts)
    low, high = axes.get_ylim()
    gaps = [b - a for a, b in itertools.pairwise(heights)]
    assert min(gaps) > (high - low) / 40


def test_runs_without_clients_are_refused():
    with pytest.raises(ValueError, match="has no evaluation of"):
        accuracy_against_spread([Measured("x", ((5, {"tasks": {}}),))])
