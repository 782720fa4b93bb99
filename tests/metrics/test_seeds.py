"""Facts about what several seeds say."""

from __future__ import annotations

import math

import pytest
from scipy import stats

from fedaccord.metrics import interval, paired_comparison

VALUES = [0.71, 0.68, 0.75, 0.70, 0.66]


@pytest.mark.parametrize("level", [0.5, 0.95, 0.99])
@pytest.mark.parametrize("values", [VALUES, VALUES[:2]])
def test_the_interval_is_scipys(values, level):
    found = interval(values, level=level)
    low, high = stats.t.interval(
        level, len(values) - 1, loc=sum(values) / len(values), scale=stats.sem(values)
    )
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-12)
    assert found.std == pytest.approx(stats.tstd(values))
    assert (found.n, found.num_missing) == (len(values), 0)


def test_one_seed_has_a_mean_and_no_interval():
    found = interval([0.7])
    assert (found.mean, found.std, found.low, found.high, found.n) == (0.7, None, None, None, 1)
    assert "no interval" in str(found)


def test_equal_values_have_an_interval_of_no_length():
    found = interval([0.5, 0.5, 0.5])
    assert (found.low, found.high) == (0.5, 0.5)


def test_a_seed_without_a_value_is_left_out_and_counted():
    found = interval([0.5, math.nan, 0.7])
    assert (found.mean, found.n, found.num_missing) == (pytest.approx(0.6), 2, 1)
    assert "1 without a value left out" in str(found)


def test_the_interval_of_nothing_is_refused():
    with pytest.raises(ValueError, match="Got none of 1"):
        interval([math.nan])


def test_an_infinite_value_has_no_interval():
    with pytest.raises(ValueError, match="`values` must be finite"):
        interval([0.5, math.inf])


@pytest.mark.parametrize("level", [0, 1, 95])
def test_a_level_is_a_probability(level):
    with pytest.raises(ValueError, match=r"`level` must be in \(0, 1\)"):
        interval(VALUES, level=level)


# --- two methods


FIRST, SECOND = {0: 0.7, 1: 0.6, 2: 0.9, 5: 0.5}, {5: 0.5, 2: 0.8, 1: 0.7, 0: 0.4}


def test_pairs_are_formed_by_seed():
    found = paired_comparison(FIRST, SECOND)
    assert (found.wins, found.losses, found.ties) == (2, 1, 1)
    assert found.difference.mean == pytest.approx((0.3 - 0.1 + 0.1 + 0.0) / 4)


def test_the_interval_of_the_difference_is_that_of_the_paired_t_test():
    found = paired_comparison(FIRST, SECOND, level=0.9)
    seeds = sorted(FIRST)
    test = stats.ttest_rel([FIRST[s] for s in seeds], [SECOND[s] for s in seeds])
    expected = test.confidence_interval(0.9)
    assert found.difference.low == pytest.approx(expected.low)
    assert found.difference.high == pytest.approx(expected.high)


def test_of_losses_the_lower_wins():
    found = paired_comparison(FIRST, SECOND, higher_is_better=False)
    assert (found.wins, found.losses, found.ties) == (1, 2, 1)


def test_a_seed_that_lacks_a_value_is_neither_won_nor_lost():
    found = paired_comparison({0: math.nan, 1: 0.5}, {0: 0.1, 1: 0.4})
    assert (found.wins, found.losses, found.ties) == (1, 0, 0)
    assert (found.difference.n, found.difference.num_missing) == (1, 1)


def test_other_seeds_do_not_compare():
    with pytest.raises(ValueError, match=r"Only one has \[1, 2\]"):
        paired_comparison({0: 0.5, 1: 0.5}, {0: 0.5, 2: 0.5})
