"""Who takes part in a round (case C12)."""

from __future__ import annotations

import pytest
import torch

from fedaccord import SizeProportionalSampler, UniformSampler
from fedaccord.random import generator


@pytest.mark.parametrize(
    ("fraction", "num_clients", "count"),
    [(0.29, 100, 29), (0.57, 100, 57), (0.1, 5, 1), (0.1, 3, 1), (1.0, 7, 7)],  # from C12
)
def test_a_fraction_is_rounded_and_never_zero(fraction: float, num_clients: int, count: int):
    assert UniformSampler(fraction=fraction).size(num_clients) == count


@pytest.mark.parametrize("fraction", [0, 1.5, -0.1, float("nan")])
def test_a_fraction_outside_its_range_is_refused(fraction: float):
    with pytest.raises(ValueError, match=r"`fraction` must be in \(0, 1\]"):
        UniformSampler(fraction=fraction)


def test_more_clients_than_there_are_is_refused_with_the_range():
    with pytest.raises(ValueError, match=r"\[1, 5\], the number of clients. Got 6"):
        UniformSampler(6).size(5)


def test_a_fraction_given_as_count_is_told_apart():
    with pytest.raises(ValueError, match="Write `fraction=0.1`"):
        UniformSampler(0.1)


@pytest.mark.parametrize("arguments", [{}, {"count": 2, "fraction": 0.5}])
def test_exactly_one_of_both_is_given(arguments: dict[str, float]):
    with pytest.raises(ValueError, match="either `count` or `fraction`"):
        UniformSampler(**arguments)


def test_clients_are_distinct_and_sorted():
    chosen = UniformSampler(20)(50, generator(0, "sample", 0))
    assert len(set(chosen)) == 20
    assert list(chosen) == sorted(chosen)


def test_every_client_is_equally_likely():
    counts = torch.zeros(10)
    for round in range(4000):
        counts[UniformSampler(3)(10, generator(0, "sample", round))] += 1
    # 1,200 expected each; the binomial standard deviation is sqrt(4000 * .3 * .7) = 29
    assert (counts - 1200).abs().max() < 5 * 29


def test_larger_clients_are_drawn_in_proportion():
    counts = torch.zeros(3)
    sampler = SizeProportionalSampler([1, 3, 0], count=1)
    for round in range(4000):
        counts[sampler(3, generator(0, "sample", round))] += 1
    # 1,000 expected for the first; standard deviation sqrt(4000 * .25 * .75) = 27
    assert abs(counts[0] - 1000) < 5 * 27
    assert counts[2] == 0


def test_proportional_sampling_needs_enough_clients_with_examples():
    with pytest.raises(ValueError, match="2 clients a round need as many with examples"):
        SizeProportionalSampler([5, 0, 0], count=2).size(3)
