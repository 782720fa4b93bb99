"""Facts about how evenly a quantity is distributed."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedaccord.metrics import (
    angle,
    fairness_summary,
    hypervolume,
    jain_index,
    spread,
    worst_fraction,
)

EXAMPLES = json.loads((Path(__file__).parents[1] / "data" / "examples.json").read_text("utf-8"))
FAIRNESS = [e for e in EXAMPLES if e["algorithm"] == "fairness_metrics"]
METRICS = [worst_fraction, spread, jain_index, angle]

accuracies = st.lists(st.floats(0, 1), min_size=1, max_size=60)


@pytest.mark.parametrize("example", FAIRNESS, ids=[e["name"] for e in FAIRNESS])
def test_the_worked_example(example):
    values, expected = example["inputs"]["accuracies"], example["expected"]
    near = {"abs": example["tolerance"]}
    assert worst_fraction(values) == pytest.approx(expected["worst10pct"], **near)
    assert spread(values) == pytest.approx(expected["std_population"], **near)
    assert jain_index(values) == pytest.approx(expected["jain"], **near)
    assert angle(values) == pytest.approx(expected["angle_rad"], **near)


@given(st.integers(1, 100), st.integers(1, 500))
def test_the_number_of_worst_clients_is_the_exact_ceiling(percent, count):
    # the values 0..n-1 make the mean of the lowest k equal to (k-1)/2
    lowest = -(-percent * count // 100)  # integer ceiling
    assert worst_fraction(range(count), percent / 100) == pytest.approx((lowest - 1) / 2)


def test_seven_hundredths_of_a_hundred_clients_are_seven():
    # .07 * 100 is 7.000000000000001 in binary, whose ceiling is 8
    assert worst_fraction(range(100), 0.07) == 3.0


def test_the_worst_of_all_is_the_mean():
    assert worst_fraction([0.2, 0.4, 0.9], 1.0) == pytest.approx(0.5)


def test_equal_values_have_no_spread_and_perfect_fairness():
    assert (spread([0.3] * 7), angle([0.3] * 7)) == (0.0, 0.0)
    assert jain_index([0.3] * 7) == pytest.approx(1.0, abs=1e-15)


def test_all_zero_is_perfectly_fair():
    assert jain_index([0.0, 0.0, 0.0]) == 1.0
    assert angle([0.0, 0.0, 0.0]) == 0.0


def test_one_client_with_everything_is_as_unfair_as_can_be():
    assert jain_index([1.0, 0.0, 0.0, 0.0]) == pytest.approx(1 / 4)  # 1/n


def test_values_too_small_to_square_are_no_division_by_zero():
    assert jain_index([1e-200, 1e-200]) == 1.0


@given(accuracies)
def test_jain_is_the_squared_cosine_of_the_angle(values):
    assert jain_index(values) == pytest.approx(math.cos(angle(values)) ** 2, abs=1e-9)


@given(accuracies, st.randoms(use_true_random=False))
def test_the_order_of_clients_does_not_matter(values, random):
    shuffled = random.sample(values, len(values))
    for metric in METRICS:
        assert metric(shuffled) == pytest.approx(metric(values), abs=1e-12)


@given(accuracies)
def test_the_worst_are_no_better_than_the_mean(values):
    assert worst_fraction(values) <= np.mean(values) + 1e-12


@pytest.mark.parametrize("metric", METRICS)
def test_tensors_arrays_and_lists_are_the_same(metric):
    values = [0.25, 0.5, 1.0]
    assert metric(torch.tensor(values)) == metric(np.array(values)) == metric(values)


@pytest.mark.parametrize("metric", [*METRICS, hypervolume])
@pytest.mark.parametrize("values", [[], [0.5, math.nan], [[0.5]]])
def test_nothing_and_nan_have_no_value(metric, values):
    with pytest.raises(ValueError, match=r"must be \[n\]|must not hold NaN"):
        metric(values)


@pytest.mark.parametrize("values", [[0.5, -0.1], [0.5, math.inf]])
def test_jain_is_for_finite_values_that_are_not_negative(values):
    with pytest.raises(ValueError, match="finite values that are not negative"):
        jain_index(values)


@pytest.mark.parametrize("fraction", [0, -0.1, 1.1, math.nan])
def test_a_fraction_lies_between_0_and_1(fraction):
    with pytest.raises(ValueError, match=r"`fraction` must be in \(0, 1\]"):
        worst_fraction([0.5], fraction)


# --- the summary


def test_the_summary_holds_the_worked_example():
    example = FAIRNESS[0]
    expected = example["expected"]
    summary = fairness_summary(example["inputs"]["accuracies"], moment="after round 150")
    found = (summary.mean, summary.worst, summary.spread, summary.jain, summary.angle)
    assert found == pytest.approx(
        (
            expected["mean"],
            expected["worst10pct"],
            expected["std_population"],
            expected["jain"],
            expected["angle_rad"],
        ),
        abs=example["tolerance"],
    )


def test_the_summary_prints_its_label():
    text = str(fairness_summary([0.5, 0.7], moment="after round 150"))
    for part in ("global model", "after round 150", "all clients", "each client counted once"):
        assert part in text


def test_clients_without_a_value_are_left_out_and_counted():
    summary = fairness_summary([0.5, math.nan, 0.7], moment="after round 1")
    assert (summary.num_clients, summary.num_missing) == (2, 1)
    assert summary.mean == pytest.approx(0.6)
    assert "1 without a value left out" in str(summary)


def test_a_summary_of_nobody_is_refused():
    with pytest.raises(ValueError, match="Got none of 2"):
        fairness_summary([math.nan, math.nan], moment="after round 1")
