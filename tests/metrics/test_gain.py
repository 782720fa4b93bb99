"""Facts about reaching a target and about gaining by joining."""

from __future__ import annotations

import math

import pytest
import torch

from fedaccord.metrics import gain_over_local, rounds_to_reach

CURVE = {0: 0.1, 5: 0.6, 10: 0.5, 15: 0.6, 20: 0.7}


def test_the_first_evaluation_that_reaches_the_target_counts():
    assert rounds_to_reach(CURVE, 0.6) == 5
    assert rounds_to_reach(CURVE.items(), 0.65) == 20


def test_a_target_never_reached_has_no_round():
    assert rounds_to_reach(CURVE, 0.71) is None
    assert rounds_to_reach({}, 0.5) is None


def test_losses_reach_a_target_from_above():
    assert rounds_to_reach({1: 2.0, 2: 1.0, 3: 0.4}, 1.0, higher_is_better=False) == 2


def test_with_a_window_the_mean_of_several_evaluations_counts():
    # means of three: 0.4, 0.5667, 0.6
    assert rounds_to_reach(CURVE, 0.55, window=3) == 15
    assert rounds_to_reach(CURVE, 0.65, window=3) is None
    assert rounds_to_reach(CURVE, 0.0, window=6) is None  # fewer evaluations than that


@pytest.mark.parametrize("higher_is_better", [True, False])
def test_a_mean_of_equal_values_reaches_them(higher_is_better):
    # 0.7 + 0.7 + 0.7 is 2.0999999999999996, a third of which is below 0.7
    curve = dict.fromkeys(range(3), 0.7)
    assert rounds_to_reach(curve, 0.7, window=3, higher_is_better=higher_is_better) == 2


def test_nan_reaches_nothing():
    curve = {1: math.nan, 2: 0.9, 3: 0.9}
    assert rounds_to_reach(curve, 0.5) == 2
    assert rounds_to_reach(curve, 0.5, window=2) == 3


@pytest.mark.parametrize(
    ("curve", "target", "window", "message"),
    [
        ([(2, 0.1), (1, 0.9)], 0.5, None, "order of rounds"),
        ([(1, 0.1), (1, 0.9)], 0.5, None, "order of rounds"),
        ({}, math.nan, None, "`target` must be a number"),
        ({}, 0.5, 0, "`window` must be at least 1"),
    ],
)
def test_wrong_arguments_are_named(curve, target, window, message):
    with pytest.raises(ValueError, match=message):
        rounds_to_reach(curve, target, window=window)


# --- gain


def test_a_client_that_is_worse_off_than_alone_is_named():
    found = gain_over_local([0.8, 0.5, 0.6], torch.tensor([0.5, 0.75, 0.6], dtype=torch.float64))
    assert found.gains.tolist() == pytest.approx([0.3, -0.25, 0.0])
    assert (found.losers, found.num_losers, found.worst) == ((1,), 1, -0.25)
    assert found.mean == pytest.approx(0.05 / 3)


def test_of_losses_a_lower_one_is_a_gain():
    found = gain_over_local([1.0, 0.5], [0.5, 1.0], higher_is_better=False, client_ids=[7, 9])
    assert found.gains.tolist() == [-0.5, 0.5]
    assert found.losers == (7,)


def test_a_client_that_lacks_a_value_is_left_out_and_counted():
    found = gain_over_local([0.8, math.nan, 0.6], [0.5, 0.1, math.nan])
    assert (found.num_clients, found.num_missing, found.losers) == (1, 2, ())
    assert found.gains[1:].isnan().all()
    assert found.mean == found.worst == pytest.approx(0.3)


def test_two_models_that_diverged_are_equally_bad():
    found = gain_over_local([math.inf, 1.0], [math.inf, math.inf], higher_is_better=False)
    assert found.gains.tolist() == [0.0, math.inf]


def test_the_gain_of_nobody_is_refused():
    with pytest.raises(ValueError, match="both values. Got none of 2"):
        gain_over_local([math.nan, 0.5], [0.5, math.nan])


def test_clients_must_match():
    with pytest.raises(ValueError, match="equal lengths. Got 2, 1 and 2"):
        gain_over_local([0.5, 0.5], [0.5])
