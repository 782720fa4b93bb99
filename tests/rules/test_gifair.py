"""GIFAIR-FL: weights by rank."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from common import make_cohort
from fedaccord import GIFAIR, FedAvg


def weights(c: float, losses: list[float], num_examples: list[int] | None = None) -> Tensor:
    n = len(losses)
    cohort = make_cohort(torch.eye(n).double(), loss=losses, num_examples=num_examples)
    return GIFAIR(c).aggregate(None, cohort).step  # unit updates: the step is the weights


def test_two_clients_in_two_dimensions():
    # shares 1/4, 3/4; ranks 1, -1; lambda_max = 1/4; c = 1/2: 1/4 + 1/8, 3/4 - 1/8
    cohort = make_cohort([[8.0, 0.0], [0.0, 8.0]], loss=[2.0, 1.0], num_examples=[1, 3])
    step, _, seen = GIFAIR(0.5).aggregate(None, cohort)
    assert_close(step, torch.tensor([3.0, 5.0]).double())
    assert seen["weights"] == {0: 0.375, 1: 0.625}
    assert seen["ranks"] == {0: 1.0, 1: -1.0}


def test_nothing_of_what_is_possible_is_fedavg():
    cohort = make_cohort([[1.0, 0.0], [0.0, 2.0]], loss=[2.0, 1.0], num_examples=[1, 3])
    assert torch.equal(
        GIFAIR(0.0).aggregate(None, cohort).step, FedAvg().aggregate(None, cohort).step
    )


def test_all_of_what_is_possible_takes_the_smallest_weight_to_zero():
    # four equal clients: 1/4 + 1/12 (-3, -1, 1, 3)
    found = weights(1.0, [0.1, 0.2, 0.3, 0.4])
    assert_close(
        found, torch.tensor([0.0, 1 / 6, 1 / 3, 1 / 2], dtype=torch.float64), atol=1e-15, rtol=0
    )


@pytest.mark.parametrize("losses", [[2.0, 2.0, 2.0], [0.0, 0.0, 0.0]], ids=["equal", "zero"])
def test_equal_losses_leave_the_shares(losses: list[float]):
    assert_close(weights(1.0, losses, [1, 2, 5]), torch.tensor([0.125, 0.25, 0.625]).double())


def test_equal_losses_share_their_ranks():
    # the ranks are -2, 1 and 1, and lambda_max is 1/6
    found = weights(1.0, [1.0, 2.0, 2.0])
    assert_close(found, torch.tensor([0.0, 0.5, 0.5]).double(), atol=1e-15, rtol=0)


def test_only_the_order_of_losses_matters():
    assert torch.equal(weights(0.7, [1e-300, 1.0, 1e300]), weights(0.7, [1.0, 2.0, 3.0]))


def test_weights_follow_clients_whatever_their_ids():
    losses = [0.5, 2.0, 1.0]
    for order in itertools.permutations(range(3)):
        found = weights(0.5, [losses[i] for i in order])
        wanted = torch.tensor([1 / 6, 1 / 2, 1 / 3], dtype=torch.float64)[list(order)]
        assert_close(found, wanted)


def test_a_client_without_examples_keeps_weight_zero():
    # the other two: ranks -1, 1; lambda_max = 1/2
    found = weights(1.0, [1.0, 2.0, 9.0], [1, 1, 0])
    assert_close(found, torch.tensor([0.0, 1.0, 0.0]).double())


def test_one_client_has_all_the_weight():
    assert weights(1.0, [0.7]).tolist() == [1]


@pytest.mark.parametrize("c", [0.0, 0.3, 1.0])
def test_weights_are_never_negative_and_sum_to_one(c: float):
    found = weights(c, [0.3, 0.1, 0.9, 0.5, 0.4], [1, 7, 2, 30, 4])
    assert found.min() >= -1e-16
    assert found.sum().item() == pytest.approx(1)


@pytest.mark.parametrize("c", [-0.1, 1.1, float("nan")])
def test_impossible_settings_are_refused(c: float):
    with pytest.raises(ValueError, match=r"`c` must be in \[0, 1\]"):
        GIFAIR(c)
