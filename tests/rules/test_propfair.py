"""PropFair: a loss that grows steeper towards the base."""

from __future__ import annotations

import math

import pytest
import torch
from torch.testing import assert_close

from fedaccord import TERM, FedAvg, LocalSGD, PropFair
from fedaccord.clients import proportional_loss
from rules.quadratics import quadratics, rounds_of

ONE_STEP = LocalSGD(lr=0.1, steps=1)


def test_two_clients_in_two_dimensions():
    # losses 1/2 and 2 at 0 with base 4: slopes 1/3.5 and 1/2 of gradients (1, 0) and (0, 2)
    federation = quadratics([{"a": 1.0, "c": [1.0, 0.0]}, {"a": 1.0, "c": [0.0, 2.0]}])
    (result,) = rounds_of(PropFair(4.0, 0.2), federation, [[0, 1]], ONE_STEP)
    assert_close(result.training.params, torch.tensor([0.05 / 3.5, 0.05], dtype=torch.float64))


def test_slopes_add_to_the_gradient_of_the_fairness_objective():
    # minus the gradient of sum p_i log(M - F_i) by finite differences of the formula
    clients = [{"a": 1.0, "c": [1.0, 0.3]}, {"a": 0.5, "c": [-0.4, 2.0]}]
    federation, base, h = quadratics(clients, num_examples=[1, 3]), 5.0, 1e-6

    def welfare(w: torch.Tensor) -> float:
        losses = [
            c["a"] / 2 * (w - torch.tensor(c["c"]).double()).square().sum().item() for c in clients
        ]
        return 0.25 * math.log(base - losses[0]) + 0.75 * math.log(base - losses[1])

    steps = h * torch.eye(2).double()
    gradient = torch.tensor(
        [(welfare(e) - welfare(-e)) / (2 * h) for e in steps], dtype=torch.float64
    )
    (result,) = rounds_of(PropFair(base, 0.2), federation, [[0, 1]], ONE_STEP)
    assert_close(result.training.params, 0.1 * gradient, rtol=1e-7, atol=1e-9)


def test_a_large_base_is_fedavg_with_a_smaller_rate():
    # -log(1 - l / M) = l / M + O(1/M^2)
    federation = quadratics([{"a": 1.0, "c": [1.0, 0.0]}, {"a": 1.0, "c": [0.0, 2.0]}])
    (fair,) = rounds_of(PropFair(1e6), federation, [[0, 1]], LocalSGD(lr=1e5, steps=1))
    (plain,) = rounds_of(FedAvg(), federation, [[0, 1]], ONE_STEP)
    assert_close(fair.training.params, plain.training.params, rtol=1e-5, atol=0)


@pytest.mark.parametrize("huber", [False, True])
@pytest.mark.parametrize("loss", [1.8, 2.0, 2.5, 1e30, -1e30, 0.0])
def test_values_and_slopes_are_finite_everywhere(loss: float, huber: bool):
    value = torch.tensor(loss, dtype=torch.float64, requires_grad=True)
    made = proportional_loss(value, base=2.0, epsilon=0.2, huber=huber)
    (slope,) = torch.autograd.grad(made, value)
    assert torch.isfinite(made)
    assert 0 < slope <= 5 + 1e-12  # the steepest is 1 / epsilon


@pytest.mark.parametrize("huber", [False, True])
def test_the_line_takes_over_where_less_than_epsilon_is_left(huber: bool):
    # at 2 - 1/4 exactly epsilon is left: minus the logarithm of 1/8; then l / 2, or 4 l with huber
    loss = torch.tensor([1.75, 1.75 + 2**-40], dtype=torch.float64)
    made = proportional_loss(loss, base=2.0, epsilon=0.25, huber=huber)
    line = (4.0 if huber else 0.5) * loss[1].item()
    assert_close(made, torch.tensor([math.log(8), line], dtype=torch.float64), rtol=1e-15, atol=0)


def test_the_logarithm_is_exact_for_tiny_losses():
    loss = torch.tensor(1e-20, dtype=torch.float64)
    assert proportional_loss(loss, base=2.0, epsilon=0.2, huber=False).item() == 0.5e-20


def test_reported_losses_are_the_plain_ones():
    federation = quadratics([{"a": 1.0, "c": [1.0, 0.0]}, {"a": 1.0, "c": [0.0, 2.0]}])
    (result,) = rounds_of(PropFair(4.0, server=TERM(1.0)), federation, [[0, 1]], ONE_STEP)
    # softmax of the losses 1/2 and 2 of the received model
    wanted = torch.tensor([0.5, 2.0]).double().softmax(0).tolist()
    assert list(result.diagnostics["weights"].values()) == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"base": 0.0}, "`base` must be positive"),
        ({"base": math.inf}, "`base` must be positive"),
        ({"epsilon": 0.0}, r"`epsilon` must be in \(0, base\]"),
        ({"base": 1.0, "epsilon": 1.5}, r"`epsilon` must be in \(0, base\]"),
    ],
)
def test_impossible_settings_are_refused(arguments: dict[str, float], message: str):
    with pytest.raises(ValueError, match=message):
        PropFair(**arguments)
