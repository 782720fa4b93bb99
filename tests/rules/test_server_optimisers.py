"""Server momentum, Adam, Yogi and Adagrad, on the step of any rule."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from common import make_cohort, spec
from fedaccord import (
    Aggregation,
    FedAvg,
    FedHV,
    FedPCD,
    Rule,
    ServerAdagrad,
    ServerAdam,
    ServerMomentum,
    ServerYogi,
    simulate,
)
from rules.test_fedhv import FEDERATION, LOCAL

ADAPTIVE = {"adam": ServerAdam, "yogi": ServerYogi, "adagrad": ServerAdagrad}
every_adaptive_rule = pytest.mark.parametrize("kind", ADAPTIVE.values(), ids=ADAPTIVE)
OPTIMISERS = {**ADAPTIVE, "momentum": ServerMomentum}
every_optimiser = pytest.mark.parametrize("kind", OPTIMISERS.values(), ids=OPTIMISERS)


def vector(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def steps_of(rule: Rule[Any], *updates: list[float]) -> list[Aggregation]:
    """One client's updates, round by round."""
    state, made = rule.init(spec(len(updates[0]))), []
    for t, update in enumerate(updates):
        made.append(rule.aggregate(state, make_cohort([update], round=t)))
        state = made[-1].state
    return made


def test_momentum_in_two_dimensions():
    # two clients' mean (1, 2), then nothing: v = (1, 2), then half of it
    rule = ServerMomentum(FedAvg(), beta=0.5, server_lr=3.0)
    cohort = make_cohort([[2.0, 0.0], [0.0, 4.0]])
    step, state, _ = rule.aggregate(rule.init(spec()), cohort)
    assert_close(step, vector(3.0, 6.0))
    step, _, seen = rule.aggregate(state, make_cohort([[0.0, 0.0]], round=1))
    assert_close(step, vector(1.5, 3.0))
    assert seen["rule_step_norm"] == 0  # the rule made no step; the momentum did


def test_no_momentum_is_the_rule_alone():
    rule = ServerMomentum(FedAvg(), beta=0.0)
    for made, update in zip(
        steps_of(rule, [1.0, 3.0], [-2.0, 0.0]), ([1, 3], [-2, 0]), strict=True
    ):
        assert made.step.tolist() == update


def test_equal_steps_add_up_to_the_geometric_sum():
    *_, last = steps_of(ServerMomentum(FedAvg(), beta=0.9), *[[1.0, -1.0]] * 400)
    assert_close(last.step, vector(10.0, -10.0))


@pytest.mark.parametrize(
    ("rule", "second"),
    [
        (ServerAdam(FedAvg(), beta1=0.5, beta2=0.75, tau=0.5, v0=1.0), 0.75 + 0.25 * 4),
        # v - (1 - beta2) 4 sign(1 - 4)
        (ServerYogi(FedAvg(), beta1=0.5, beta2=0.75, tau=0.5, v0=1.0), 1.0 + 0.25 * 4),
        (ServerAdagrad(FedAvg(), beta1=0.5, tau=0.5, v0=1.0), 1.0 + 4),
    ],
    ids=ADAPTIVE,
)
def test_adaptive_steps_in_one_dimension(rule: Rule[Any], second: float):
    (made,) = steps_of(rule, [2.0])
    assert_close(made.step, vector(0.1 * 1.0 / (math.sqrt(second) + 0.5)))  # m = 1
    assert_close(made.state.second, vector(second))


def test_a_smaller_square_shrinks_yogis_second_moment_by_itself():
    # v = 4, square 1: 4 - (1 - .75) 1, where Adam would have .75 * 4 + .25 * 1
    yogi, adam = (
        steps_of(kind(FedAvg(), beta2=0.75, v0=4.0), [1.0])[0].state.second
        for kind in (ServerYogi, ServerAdam)
    )
    assert_close(yogi, vector(3.75))
    assert_close(adam, vector(3.25))


@every_adaptive_rule
def test_the_second_moment_starts_at_tau_squared(kind: Any):
    assert kind(FedAvg(), tau=0.25).init(spec()).second.tolist() == [0.0625] * 2
    assert kind(FedAvg(), tau=0.25, v0=0.0).init(spec()).second.tolist() == [0] * 2


@every_adaptive_rule
@pytest.mark.parametrize("scale", [1e-2, 1.0, 1e30, 1e100])
def test_a_first_step_keeps_every_elements_sign(kind: Any, scale: float):
    (made,) = steps_of(kind(FedAvg()), [3.0 * scale, -scale, 0.0])
    assert made.step.sign().tolist() == [1, -1, 0]


@every_adaptive_rule
def test_an_element_never_moves_much_more_than_the_server_lr(kind: Any):
    # |m| / sqrt(v) is largest in the first round, (1 - beta1) / sqrt(1 - beta2) = 1 by default
    for update in ([1e-6], [1.0], [1e100]):
        (made,) = steps_of(kind(FedAvg(), server_lr=0.1), update)
        assert made.step.abs().max() <= 0.1 * (1 + 1e-9)


@every_optimiser
@pytest.mark.parametrize("inner", [FedAvg(), FedPCD(), FedPCD(infeasible="protect")], ids=str)
def test_a_round_without_movement_at_the_start_is_no_step(kind: Any, inner: Rule[Any]):
    made = steps_of(kind(inner), [0.0, 0.0])[0]
    assert not made.step.any()
    assert all(math.isnan(cosine) for cosine in made.diagnostics["cosines"].values())


@every_optimiser
def test_the_cosines_are_those_of_the_step_that_is_made(kind: Any):
    first, second = steps_of(kind(FedAvg()), [1.0, 0.0], [0.0, 0.25])
    assert first.diagnostics["cosines"][0] == pytest.approx(1)
    step = second.step
    assert second.diagnostics["cosines"][0] == pytest.approx((step[1] / step.norm()).item())
    # one client: the rule's step is its update
    both = second.diagnostics["cosine_with_rule_step"], second.diagnostics["cosines"][0]
    assert both[0] == pytest.approx(both[1])


@every_optimiser
def test_the_rules_diagnostics_and_state_are_inside(kind: Any):
    rule = kind(FedPCD(tau=0.1))
    state = rule.init(spec())
    cohort = make_cohort([[1.0, 0.3], [-0.8, 0.3]])
    _, state, seen = rule.aggregate(state, cohort)
    alone = FedPCD(tau=0.1).aggregate(FedPCD(tau=0.1).init(spec()), cohort)
    assert seen["outcome"] == alone.diagnostics["outcome"] == "projected"
    assert seen["rule_step_norm"] == pytest.approx(alone.step.norm().item())
    assert state.rule.history.rounds == {0: 0, 1: 0}


@every_optimiser
def test_nothing_is_claimed_that_the_optimiser_does_not_keep(kind: Any):
    claims = kind(FedPCD(eps=0.0)).claims
    assert not claims.non_conflicting
    assert not claims.keeps_mean_norm
    assert claims.scale_equivariant == (kind is ServerMomentum)


def test_momentum_can_be_against_every_client_which_is_why_nothing_is_claimed():
    made = steps_of(ServerMomentum(FedPCD()), [1.0, 0.0], [-0.5, 0.0])[1]
    assert made.step[0] > 0
    assert made.diagnostics["cosines"] == {0: pytest.approx(-1)}


def test_task_weights_reach_clients_through_an_optimiser():
    # FedHV's payload and report pass through; with beta = 0 nothing else changes
    ends = [
        list(simulate(rule, FEDERATION, rounds=3, local=LOCAL))[-1].training.params
        for rule in (
            ServerMomentum(FedHV((20.0, 10.0), server=FedPCD()), beta=0.0),
            FedHV((20.0, 10.0), server=FedPCD()),
        )
    ]
    assert torch.equal(*ends)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ServerAdam(FedAvg(), beta1=1.0), r"`beta1` must be in \[0, 1\)"),
        (lambda: ServerAdam(FedAvg(), beta2=-0.1), r"`beta2` must be in \[0, 1\)"),
        (lambda: ServerYogi(FedAvg(), beta2=1.0), r"`beta2` must be in \[0, 1\)"),
        (lambda: ServerAdagrad(FedAvg(), tau=0.0), "`tau` must be positive"),
        (lambda: ServerAdam(FedAvg(), v0=-1.0), "`v0` must be at least 0"),
        (lambda: ServerAdam(FedAvg(), server_lr=0.0), "`server_lr` must be positive"),
        (lambda: ServerMomentum(FedAvg(), beta=1.0), r"`beta` must be in \[0, 1\)"),
        (lambda: ServerMomentum(FedAvg), "`rule` must be a rule"),
    ],
)
def test_impossible_settings_are_refused(make: Any, message: str):
    with pytest.raises(ValueError, match=message):
        make()
