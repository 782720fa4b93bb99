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
from scipy import stats

from fedaccord.metrics import (
    angle,
    best_fraction,
    coefficient_of_variation,
    entropy,
    fairness_summary,
    hypervolume,
    jain_index,
    spread,
    worst_fraction,
)

EXAMPLES = json.loads((Path(__file__).parents[1] / "data" / "examples.json").read_text("utf-8"))
FAIRNESS = [e for e in EXAMPLES if e["algorithm"] == "fairness_metrics"]
METRICS = [
    worst_fraction,
    best_fraction,
    spread,
    jain_index,
    angle,
    entropy,
    coefficient_of_variation,
]

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


@pytest.mark.parametrize("metric", [jain_index, entropy, coefficient_of_variation])
@pytest.mark.parametrize("values", [[0.5, -0.1], [0.5, math.inf]])
def test_shares_are_of_finite_values_that_are_not_negative(metric, values):
    with pytest.raises(ValueError, match="finite values that are not negative"):
        metric(values)


@pytest.mark.parametrize("metric", [spread, angle])
def test_an_infinite_value_has_no_spread(metric):
    with pytest.raises(ValueError, match="`values` must be finite. Entry 1 is inf"):
        metric([0.5, math.inf])


def test_a_single_precision_tenth_of_thirty_clients_is_three():
    # float(np.float32(0.1)) is 0.10000000149011612, whose ceiling would be 4
    assert worst_fraction(range(30), np.float32(0.1)) == 1.0


def test_the_worst_losses_are_the_highest():
    losses = [0.1, 0.5, 3.0, 2.0]
    assert worst_fraction(losses, 0.5, higher_is_better=False) == 2.5
    assert best_fraction(losses, 0.5, higher_is_better=False) == pytest.approx(0.3)


def test_the_best_accuracies_are_the_highest():
    assert best_fraction([0.1, 0.5, 0.9, 0.7], 0.5) == pytest.approx(0.8)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30).filter(any))
def test_entropy_is_scipys_of_the_shares(values):
    assert entropy(values) == pytest.approx(stats.entropy(values), abs=1e-9)


def test_equal_values_have_the_largest_entropy_zero_ones_too():
    assert entropy([0.2] * 8) == pytest.approx(math.log(8))
    assert entropy([0.0] * 8) == math.log(8)
    assert entropy([0.0, 0.0, 0.7]) == 0.0


@given(st.lists(st.floats(0.01, 1), min_size=1, max_size=30))
def test_the_coefficient_of_variation_is_scipys(values):
    assert coefficient_of_variation(values) == pytest.approx(stats.variation(values), abs=1e-9)


def test_zero_values_do_not_vary():
    assert coefficient_of_variation([0.0, 0.0]) == 0.0


def test_very_small_values_vary_like_large_ones():
    assert coefficient_of_variation([1e-200, 3e-200]) == pytest.approx(0.5)


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


VALUES = [0.1, 0.2, 0.4, 0.9]


def test_means_by_client_and_by_example_stand_side_by_side():
    summary = fairness_summary(VALUES, moment="after 3 rounds", num_examples=[1, 1, 0, 2])
    assert summary.mean == pytest.approx(0.4)
    assert summary.weighted_mean == pytest.approx((0.1 + 0.2 + 2 * 0.9) / 4)
    assert summary.label.weighting == "each client counted once"
    assert summary.weighted_label.weighting == "each example counted once"


def test_a_client_without_a_value_weighs_nothing():
    summary = fairness_summary(
        [0.5, math.nan, 1.0], moment="after 3 rounds", num_examples=[1, 100, 3]
    )
    assert summary.weighted_mean == pytest.approx(0.875)


def test_a_client_of_weight_zero_does_not_spoil_the_mean():
    summary = fairness_summary([0.5, math.inf], moment="m", num_examples=[2, 0])
    assert summary.weighted_mean == 0.5  # zero times infinity would be NaN


def test_no_examples_have_no_weighted_mean():
    assert fairness_summary(VALUES, moment="m", num_examples=[0] * 4).weighted_mean is None
    assert fairness_summary(VALUES, moment="m").weighted_mean is None


@pytest.mark.parametrize("counts", [[1, 1, 1], [1, 1, 1, -1]])
def test_every_client_needs_a_number_of_examples(counts):
    with pytest.raises(ValueError, match="one number of at least 0 per client, 4 of them"):
        fairness_summary(VALUES, moment="m", num_examples=counts)


def test_worst_clients_are_given_for_several_fractions():
    summary = fairness_summary(range(100), moment="m")
    # the mean of the lowest k of 0..99 is (k - 1) / 2
    assert summary.worst_fractions == {0.05: 2.0, 0.1: 4.5, 0.2: 9.5, 0.3: 14.5}
    assert (summary.worst, summary.best) == (4.5, 94.5)
    assert (summary.minimum, summary.median, summary.maximum) == (0.0, 49.5, 99.0)


def test_quantiles_are_linear_between_clients():
    found = fairness_summary([0.0, 1.0, 2.0], moment="m", quantiles=(0, 0.25, 1)).quantiles
    assert found == {0.0: 0.0, 0.25: 0.5, 1.0: 2.0}
    with pytest.raises(ValueError, match=r"ranks in \[0, 1\]"):
        fairness_summary([0.5], moment="m", quantiles=[10])


def test_the_variance_of_percentages_is_in_the_papers_unit():
    # accuracies of 40 % and 60 %: each 10 points off the mean
    summary = fairness_summary([0.4, 0.6], moment="m")
    assert summary.variance == pytest.approx(0.01)
    assert summary.variance_of_percentages == pytest.approx(100.0)


def test_of_losses_the_highest_are_the_worst():
    summary = fairness_summary(VALUES, moment="m", fraction=0.25, higher_is_better=False)
    assert (summary.worst, summary.best) == (0.9, 0.1)
    assert summary.worst_fractions[0.3] == pytest.approx(0.65)
    assert summary.variance_of_percentages is None


def test_negative_values_have_no_shares_and_say_so():
    summary = fairness_summary([-1.0, 2.0], moment="m", higher_is_better=False)
    assert summary.undefined == ("jain", "coefficient_of_variation", "entropy")
    assert (summary.jain, summary.entropy) == (None, None)
    assert (summary.mean, summary.spread) == (0.5, 1.5)
    assert "Jain" not in str(summary)


def test_a_diverged_client_leaves_mean_and_worst_infinite_and_the_rest_undefined():
    summary = fairness_summary([1.0, math.inf], moment="m", higher_is_better=False)
    assert (summary.mean, summary.worst, summary.best) == (math.inf, math.inf, 1.0)
    assert (summary.spread, summary.variance, summary.quantiles) == (None, None, None)
    assert len(summary.undefined) == 7
    assert "worst 10 % inf (" in str(summary)


def test_a_single_precision_fraction_is_recorded_as_written():
    summary = fairness_summary(VALUES, moment="m", fraction=np.float32(0.1))
    assert summary.fraction == 0.1
    assert isinstance(summary.fraction, float)
