"""TERM: tilted weights, their limits, and the authors' trainer."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from common import make_cohort, spec
from fedaccord import TERM, Aggregation, Cohort, FedAvg, check
from fedaccord.clients import LocalSGD

UPDATES = [[1.0, 0.0], [0.0, 2.0]]


def aggregate(rule: TERM, cohort: Cohort) -> Aggregation:
    return rule.aggregate(rule.init(spec()), cohort)


def weights(rule: TERM, losses: list[float], num_examples: list[int] | None = None) -> Tensor:
    n = len(losses)
    cohort = make_cohort(torch.eye(n).double(), loss=losses, num_examples=num_examples)
    seen = aggregate(rule, cohort).diagnostics
    return torch.tensor(list(seen["weights"].values()), dtype=torch.float64)


def test_two_clients_in_two_dimensions():
    # shares 1/4 and 3/4, losses ln 2 and 0, t = 1: weights 2/4 and 3/4, that is 2/5 and 3/5
    cohort = make_cohort(UPDATES, loss=[math.log(2.0), 0.0], num_examples=[1, 3])
    step, _, seen = aggregate(TERM(1.0), cohort)
    assert_close(step, torch.tensor([0.4, 1.2]).double())
    assert seen["weights"] == pytest.approx({0: 0.4, 1: 0.6})
    # the step is at angle arctan 3 to the first update
    assert seen["cosines"] == pytest.approx({0: 1 / math.sqrt(10), 1: 3 / math.sqrt(10)})


def test_no_tilt_is_fedavg():
    cohort = make_cohort(UPDATES, loss=[5.0, 1.0], num_examples=[1, 3])
    wanted = FedAvg().aggregate(None, cohort).step
    assert torch.equal(aggregate(TERM(0.0), cohort).step, wanted)
    assert_close(aggregate(TERM(1e-12), cohort).step, wanted)


def test_a_large_tilt_is_the_largest_loss_alone():
    assert weights(TERM(1e6), [1.0, 1.1, 0.9]).tolist() == [0, 1, 0]


def test_a_large_negative_tilt_is_the_smallest_loss_alone():
    assert weights(TERM(-1e6), [1.0, 1.1, 0.9]).tolist() == [0, 0, 1]


def test_equal_losses_leave_the_shares():
    assert_close(weights(TERM(7.0), [3.0, 3.0], [1, 3]), torch.tensor([0.25, 0.75]).double())


def test_zero_losses_leave_the_shares():
    assert_close(weights(TERM(7.0), [0.0, 0.0], [1, 3]), torch.tensor([0.25, 0.75]).double())


@pytest.mark.parametrize("t", [1.0, -1.0])
def test_huge_losses_do_not_overflow(t: float):
    # differences of losses are all that matters; exp(1e308) alone would be infinite
    assert_close(weights(TERM(t), [1e300, 1e300]), torch.tensor([0.5, 0.5]).double())
    assert sorted(weights(TERM(t), [-1.7e308, 1.7e308]).tolist()) == [0, 1]


def test_tiny_differences_of_losses_are_kept():
    # ratio exp(t (F_1 - F_0)) = e
    assert_close(
        weights(TERM(1e12), [0.0, 1e-12]), torch.tensor([1 / (1 + math.e), math.e / (1 + math.e)]),
        check_dtype=False,
    )  # fmt: skip


def test_a_constant_added_to_all_losses_changes_nothing():
    a, b = (weights(TERM(2.0), [1.0 + c, 2.0 + c, 4.0 + c]) for c in (0.0, 16.0))
    assert_close(a, b)


def test_two_copies_of_a_client_weigh_as_one_twice_as_large():
    twice = weights(TERM(1.5), [1.0, 2.0, 2.0])
    once = weights(TERM(1.5), [1.0, 2.0], [1, 2])
    assert_close(twice[1] + twice[2], once[1])


def test_a_client_without_examples_does_not_set_the_tilt():
    assert weights(TERM(1000.0), [1.0, 9.0], [1, 0]).tolist() == [1, 0]


def test_one_client_has_all_the_weight():
    assert weights(TERM(3.0), [0.7]).tolist() == [1]


def test_the_legacy_estimate_settles_at_the_canonical_scale():
    # equal clients in every round: the estimate tends to the mean tilt, and the weights to
    # softmax / n; round t has them over 1 - 2^-(t+1)
    rule = TERM(1.0, legacy=True)
    state = rule.init(spec())
    cohort = make_cohort(UPDATES, loss=[1.0, 2.0])
    softmax = torch.tensor([1.0, 2.0]).double().softmax(0)
    for t in range(40):
        _, state, seen = rule.aggregate(state, cohort)
        found = torch.tensor(list(seen["weights"].values()), dtype=torch.float64)
        assert_close(found, softmax / 2 / (1 - 0.5 ** (t + 1)))


def test_it_needs_the_loss_of_the_received_model():
    check(TERM(1.0), LocalSGD())
    assert TERM(1.0).client_algorithms(LocalSGD())["train"].report == "all"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"t": math.inf}, "`t` must be finite"),
        ({"t": math.nan}, "`t` must be finite"),
        ({"t": -1.0, "legacy": True}, "`t` must be positive with `legacy`"),
        ({"t": 1.0, "server_lr": 0.0}, "`server_lr` must be positive"),
    ],
)
def test_impossible_settings_are_refused(arguments: dict[str, float], message: str):
    with pytest.raises(ValueError, match=message):
        TERM(**arguments)
