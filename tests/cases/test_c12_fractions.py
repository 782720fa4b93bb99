"""C12: how many clients a fraction is."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
import torch

from fedaccord import (
    FedAvg,
    Rule,
    SizeProportionalSampler,
    UniformSampler,
    calibrate,
    simulate,
)
from fedaccord.random import generator

from ._shared import LOCAL, every_rule, federation_of

VALUES = [  # of the case
    (0.29, 100, 29),
    (0.57, 100, 57),
    (0.1, 5, 1),
    (0.1, 3, 1),
    (1.0, 7, 7),
]
every_value = pytest.mark.parametrize(("fraction", "num_clients", "count"), VALUES)


def samplers(num_clients: int, **options: Any) -> list[Any]:
    return [UniformSampler(**options), SizeProportionalSampler([3] * num_clients, **options)]


@every_value
def test_the_number_is_rounded_and_never_zero(fraction: float, num_clients: int, count: int):
    for sampler in samplers(num_clients, fraction=fraction):
        assert sampler.size(num_clients) == count


@every_value
def test_as_many_distinct_clients_are_drawn(fraction: float, num_clients: int, count: int):
    for sampler in samplers(num_clients, fraction=fraction):
        for round in range(5):
            drawn = sampler(num_clients, generator(0, "sample", round))
            assert len(set(drawn)) == len(drawn) == count
            assert set(drawn) <= set(range(num_clients))


@pytest.mark.parametrize("num_clients", [3, 10, 100, 1000])
def test_every_fraction_of_three_digits_is_rounded_as_written(num_clients: int):
    # exact arithmetic on the decimal number: the nearest integer, half up, at least 1
    for thousandths in range(1, 1001):
        wanted = max(1, math.floor(Fraction(thousandths, 1000) * num_clients + Fraction(1, 2)))
        assert UniformSampler(fraction=thousandths / 1000).size(num_clients) == wanted


@every_rule
@pytest.mark.parametrize(("fraction", "count"), [(0.1, 1), (0.5, 3)])
def test_a_simulation_asks_that_many(rule: Rule[Any], fraction: float, count: int):
    federation = federation_of([[1.0, 0.1 * i] for i in range(5)])
    sampler = UniformSampler(fraction=fraction)
    results = list(simulate(rule, federation, rounds=2, local=LOCAL, sampler=sampler))
    assert [len(result.client_ids) for result in results] == [count, count]
    assert all(torch.isfinite(result.training.params).all() for result in results)


@pytest.mark.parametrize("fraction", [0, 0.0, -0.1, 1.5, 100, math.nan, math.inf])
def test_a_fraction_out_of_range_is_refused_with_the_range(fraction: float):
    for kind in (UniformSampler, lambda **o: SizeProportionalSampler([1, 1], **o)):
        with pytest.raises(ValueError, match=r"`fraction` must be in \(0, 1\]\. Got"):
            kind(fraction=fraction)


@pytest.mark.parametrize("count", [0, -1])
def test_a_count_below_one_is_refused(count: int):
    with pytest.raises(ValueError, match="`count` must be an integer of at least 1"):
        UniformSampler(count)


@pytest.mark.parametrize("count", [4, 1000])
def test_more_than_there_are_is_refused_at_the_call_with_the_range(count: int):
    federation = federation_of([[1.0, 0.0]] * 3)
    wanted = rf"`count` must be in \[1, 3\], the number of clients\. Got {count}"
    for sampler in samplers(3, count=count):
        with pytest.raises(ValueError, match=wanted):
            simulate(FedAvg(), federation, rounds=1, sampler=sampler)  # not iterated
    with pytest.raises(ValueError, match=wanted):
        calibrate(federation, sampler=UniformSampler(count), rounds=1)


def test_all_of_them_is_not_too_many():
    federation = federation_of([[1.0, 0.0]] * 3)
    (result,) = simulate(FedAvg(), federation, rounds=1, local=LOCAL, sampler=UniformSampler(3))
    assert result.client_ids == (0, 1, 2)
