"""FedHEAL: habits, masks, weights by distance."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.testing import assert_close

from common import make_cohort
from fedaccord import Aggregation, FedHEAL, Layout, MissingFieldError, Spec
from fedaccord.rules.fedheal import FedHEALState


def vector(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def rounds_of(rule: FedHEAL, *rounds: dict[int, list[float]]) -> list[Aggregation[FedHEALState]]:
    """One round for each mapping from client id to update."""
    state, results = FedHEALState(), []
    for t, updates in enumerate(rounds):
        cohort = make_cohort(list(updates.values()), client_ids=list(updates), round=t)
        results.append(rule.aggregate(state, cohort))
        state = results[-1].state
    return results


def test_the_first_round_weighs_by_distance():
    (first,) = rounds_of(FedHEAL(beta=0.4), {0: [3.0, 0.0], 1: [0.0, 1.0]})
    # shares of distance 3/4, 1/4; trends .3, .1; weights 1/2 + them = .8, .6, normalised 4/7, 3/7
    assert_close(vector(*first.diagnostics["weights"].values()), vector(4 / 7, 3 / 7))
    assert_close(first.step, vector(3 * 4 / 7, 3 / 7))


def test_beta_zero_keeps_equal_weights():
    *_, last = rounds_of(FedHEAL(beta=0.0), *[{0: [3.0, 0.0], 1: [0.0, 1.0]}] * 3)
    assert_close(last.step, vector(1.5, 0.5))


def test_distance_is_the_sum_over_tensors():
    layout = Layout(("a", "b"), ((1,), (1,)))
    cohort = replace(make_cohort([[3.0, 4.0], [5.0, 0.0]]), layout=layout)
    rule = FedHEAL()
    seen = rule.aggregate(rule.init(Spec(layout, 2)), cohort).diagnostics
    assert seen["distances"] == {0: 7.0, 1: 5.0}  # 3 + 4, not 5


def test_an_entry_against_the_habit_is_left_out():
    results = rounds_of(
        FedHEAL(beta=0.0), {0: [1.0, 1.0], 1: [1.0, 1.0]}, {0: [-1.0, 1.0], 1: [1.0, 1.0]}
    )
    # the other client's entry alone is averaged, with weight one
    assert_close(results[1].step, vector(1.0, 1.0))
    assert results[1].diagnostics["masked"] == {0: 0.5, 1: 0.0}


def test_an_entry_that_nobody_keeps_stays():
    results = rounds_of(FedHEAL(), {0: [1.0, 1.0]}, {0: [-1.0, 1.0]})
    assert_close(results[1].step, vector(0.0, 1.0))
    assert results[1].diagnostics["entries_nobody_kept"] == 1


@pytest.mark.parametrize(("threshold", "kept"), [(0.3, True), (1 / 3, False), (0.5, False)])
def test_the_habit_must_be_above_the_threshold(threshold: float, kept: bool):
    # positive in one of three rounds before: a fraction of one third agrees
    rounds = [{0: [1.0]}, {0: [-1.0]}, {0: [-1.0]}, {0: [1.0]}]
    *_, last = rounds_of(FedHEAL(threshold=threshold), *rounds)
    assert bool(last.step.any()) == kept


def test_a_zero_entry_has_the_sign_of_a_nonnegative_delta():
    # deltas are minus updates: -1 and 0 are both nonnegative deltas
    results = rounds_of(FedHEAL(), {0: [-1.0]}, {0: [0.0]}, {0: [-2.0]})
    assert_close(results[2].step, vector(-2.0))
    assert results[1].diagnostics["masked"] == {0: 0.0}


def test_a_client_seen_for_the_first_time_is_not_masked():
    results = rounds_of(FedHEAL(), {0: [1.0]}, {0: [1.0]}, {0: [1.0], 1: [-5.0]})
    assert results[2].diagnostics["masked"] == {0: 0.0, 1: 0.0}


def test_absent_clients_keep_what_they_had():
    first, second = rounds_of(FedHEAL(), {0: [1.0], 1: [2.0]}, {1: [2.0]})
    assert second.state.clients[0] is first.state.clients[0]
    assert second.state.clients[1].rounds == 2


def test_no_distance_at_all_is_shared_equally():
    (first,) = rounds_of(FedHEAL(), {0: [0.0, 0.0], 1: [0.0, 0.0]})
    assert first.diagnostics["weights"] == {0: 0.5, 1: 0.5}
    assert first.diagnostics["outcome"] == "stationary"


def test_without_a_layout_it_says_what_is_missing():
    cohort = replace(make_cohort([[1.0]]), layout=None)
    with pytest.raises(MissingFieldError, match="need the layout"):
        FedHEAL().aggregate(FedHEALState(), cohort)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": 1.0}, r"`threshold` must be in \[0, 1\)"),
        ({"beta": -0.1}, r"`beta` must be in \[0, 1\]"),
        ({"server_lr": 0.0}, "`server_lr` must be"),
    ],
)
def test_impossible_settings_are_refused(options: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=message):
        FedHEAL(**options)
