"""FedDyn: duals, the server's correction, and where both end."""

from __future__ import annotations

import math

import pytest
import torch
from torch.testing import assert_close

from common import make_cohort, spec
from fedaccord import FedDyn, LocalSGD
from rules.quadratics import quadratics, rounds_of

CLIENTS = [
    {"a": 1.0, "c": [1.0, 0.0]},
    {"a": 2.0, "c": [-1.0, 2.0]},
    {"a": 0.5, "c": [0.0, -4.0]},
]
FEDERATION = quadratics(CLIENTS)


def vector(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def test_two_clients_in_two_dimensions():
    # alpha 1/2, N = 4: h = -(1/2)/4 (4, 8) = (-.5, -1); step (2, 4) + (1, 2)
    rule = FedDyn(0.5)
    cohort = make_cohort([[4.0, 0.0], [0.0, 8.0]], num_examples=[1, 9])
    step, state, seen = rule.aggregate(rule.init(spec(2, 4)), cohort)
    assert_close(step, vector(3.0, 6.0))
    assert_close(state.h, vector(-0.5, -1.0))
    assert seen["weights"] == {0: 0.5, 1: 0.5}
    assert seen["correction_norm"] == pytest.approx(math.sqrt(5))
    # the next round without any movement goes on by -h / alpha: opposite to nothing, but as said
    step, state, _ = rule.aggregate(state, make_cohort([[0.0, 0.0]], client_ids=[3], round=1))
    assert_close(step, vector(1.0, 2.0))


def test_the_correction_is_the_same_for_every_alpha():
    # h / alpha is the sum of movements over N
    cohort = make_cohort([[4.0, 0.0], [0.0, 8.0]])
    for alpha in (1e-8, 1.0, 1e8):
        rule = FedDyn(alpha)
        assert_close(rule.aggregate(rule.init(spec(2, 4)), cohort).step, vector(3.0, 6.0))


def test_duals_are_minus_alpha_times_the_sum_of_movements():
    results = rounds_of(FedDyn(0.1), FEDERATION, [[0]], LocalSGD(lr=0.1, steps=2))
    # client 0 from 0: to (.1, 0), then + .1 (.9 - .1 * .1) = .189
    assert_close(results[0].training.client_states[0]["dual"], vector(-0.0189, 0.0))


def test_h_is_the_mean_of_the_duals():
    # true from the start and kept by every round, whoever takes part
    results = rounds_of(
        FedDyn(0.3), FEDERATION, [[0, 1], [2], [1, 2], [0]], LocalSGD(lr=0.1, steps=3)
    )
    training = results[-1].training
    duals = torch.stack([training.client_states[i]["dual"] for i in range(3)])
    assert_close(training.rule_state.h, duals.mean(0))


def test_an_absent_clients_dual_stays():
    results = rounds_of(FedDyn(0.3), FEDERATION, [[0, 1, 2], [0, 1], [0]], LocalSGD(lr=0.1))
    first, *later = (r.training.client_states[2]["dual"] for r in results)
    assert all(torch.equal(first, dual) for dual in later)


def test_it_ends_at_the_federations_optimum_with_gradients_as_duals():
    local = LocalSGD(lr=0.4, steps=12)
    end = rounds_of(FedDyn(1.0), FEDERATION, [[0, 1, 2]] * 50, local)[-1].training
    optimum = vector(-1.0, 2.0) / 3.5  # sum a c / sum a
    assert_close(end.params, optimum, rtol=1e-6, atol=1e-6)
    for client, values in enumerate(CLIENTS):
        gradient = values["a"] * (optimum - vector(*values["c"]))
        assert_close(end.client_states[client]["dual"], gradient, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("alpha", [0.0, -1.0, math.inf, math.nan])
def test_impossible_settings_are_refused(alpha: float):
    with pytest.raises(ValueError, match="`alpha` must be positive"):
        FedDyn(alpha)
