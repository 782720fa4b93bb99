"""Facts about the noise of few test rows."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from torch.testing import assert_close

from fedaccord.data import ArrayData
from fedaccord.metrics import evaluate_clients, spread, variance_parts, wilson_interval


@pytest.mark.parametrize("level", [0.5, 0.95, 0.99])
@pytest.mark.parametrize(("correct", "rows"), [(0, 1), (1, 1), (0, 20), (7, 12), (499, 500)])
def test_the_interval_is_scipys(correct, rows, level):
    expected = stats.binomtest(correct, rows).proportion_ci(level, method="wilson")
    accuracy = torch.tensor([correct / rows], dtype=torch.float64)
    found = wilson_interval(accuracy, torch.tensor([rows]), level=level)
    assert found[0].tolist() == pytest.approx([expected.low, expected.high], abs=1e-12)


@pytest.mark.parametrize("accuracy", [0.0, 1.0])
def test_rounding_does_not_take_an_interval_out_of_its_range(accuracy):
    counts = torch.arange(1, 2000)
    found = wilson_interval(torch.full((1999,), accuracy), counts)
    assert ((found >= 0) & (found <= 1)).all()


def test_the_interval_of_nothing_is_nan():
    found = wilson_interval(torch.tensor([math.nan, 0.5]), torch.tensor([0, 4]))
    assert found[0].isnan().all()
    assert found[1].isfinite().all()


def test_intervals_of_several_tasks_come_by_client_and_task():
    accuracies = torch.tensor([[0.5, 1.0], [0.25, 0.0]], dtype=torch.float64)
    counts = torch.tensor([10, 4])
    found = wilson_interval(accuracies, counts)
    assert found.shape == (2, 2, 2)
    assert_close(found[1, 0], wilson_interval(accuracies[1:, 0], counts[1:])[0])


def test_scores_have_intervals():
    logits = torch.eye(2)[torch.tensor([0, 0, 0, 1])]
    found = evaluate_clients(torch.nn.Identity(), [ArrayData.of(logits, [0, 0, 0, 0])])
    expected = stats.binomtest(3, 4).proportion_ci(0.95, method="wilson")
    assert found.accuracy_intervals()[0, 0].tolist() == pytest.approx(list(expected), abs=1e-12)


@pytest.mark.parametrize("level", [0, 1, math.nan])
def test_a_level_is_a_probability(level):
    with pytest.raises(ValueError, match=r"`level` must be in \(0, 1\)"):
        wilson_interval(torch.tensor([0.5]), torch.tensor([4]), level=level)


def test_intervals_need_a_count_per_client():
    with pytest.raises(ValueError, match="one entry per client"):
        wilson_interval(torch.tensor([0.5]), torch.tensor([4, 4]))


@pytest.mark.parametrize(
    ("true", "counts"), [((0.3, 0.8), (2, 3)), ((0.5, 0.5, 0.5), (2, 2, 4)), ((0.0, 1.0), (2, 5))]
)
def test_the_variance_between_clients_is_unbiased(true, counts):
    # the exact expectation: over every outcome of the binomial draws, with its probability
    expected_between = expected_total = 0.0
    for outcome in itertools.product(*(range(n + 1) for n in counts)):
        chances = [stats.binom.pmf(k, n, p) for k, n, p in zip(outcome, counts, true, strict=True)]
        found = variance_parts([k / n for k, n in zip(outcome, counts, strict=True)], counts)
        expected_between += math.prod(chances) * found.between
        expected_total += math.prod(chances) * found.total
    assert expected_between == pytest.approx(np.var(true), abs=1e-12)
    assert expected_total >= np.var(true) - 1e-12


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(9, 30)), min_size=1, max_size=20))
def test_the_parts_add_up_to_the_spread_squared(outcomes):
    accuracies, counts = [k / n for k, n in outcomes], [n for _, n in outcomes]
    found = variance_parts(accuracies, counts)
    assert found.total == pytest.approx(spread(accuracies) ** 2, abs=1e-15)
    assert found.sampling + found.between == pytest.approx(found.total, abs=1e-15)


def test_a_single_client_has_no_variance_at_all():
    found = variance_parts([0.5], [10])
    assert (found.total, found.sampling, found.between) == (0.0, 0.0, 0.0)


def test_clients_that_tell_nothing_of_their_noise_are_left_out_and_counted():
    found = variance_parts([0.5, math.nan, 1.0, 0.25], [4, 0, 1, 8])
    assert (found.num_clients, found.num_missing) == (2, 2)
    assert found.total == pytest.approx(0.125**2)


def test_the_noise_of_nobody_is_refused():
    with pytest.raises(ValueError, match="two test rows. Got none"):
        variance_parts([math.nan, 1.0], [0, 1])


def test_accuracies_must_be_fractions_with_a_count_each():
    with pytest.raises(ValueError, match=r"must be in \[0, 1\]. Got 0.5 to 50.0"):
        variance_parts([0.5, 50.0], [4, 4])
    with pytest.raises(ValueError, match="Got 1 for 2 accuracies"):
        variance_parts([0.5, 0.5], [4])
