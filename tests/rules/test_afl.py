"""AFL: the mixture, its order and its averages."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.testing import assert_close

from common import make_cohort, quadratic_federation, spec
from fedaccord import AFL, FedHV, LocalSGD, NonFiniteError, ServerMomentum, simulate

ROWS = [[1.0, 0.0], [0.0, 1.0]]
LOCAL = LocalSGD(lr=0.1, batch_size=10)
CENTRES = [[[0.0, 0.0]], [[0.0, 0.0]], [[1.0, 0.0]]]


def vector(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def test_the_mixture_ascends_and_is_projected():
    rule = AFL(0.1)
    _, state, _ = rule.aggregate(rule.init(spec(2, 2)), make_cohort(ROWS, loss=[1.0, 3.0]))
    # (.5, .5) + .1 (1, 3) = (.6, .8), sum 1.4: both give up .2
    assert_close(state.weights, vector(0.4, 0.6))


@pytest.mark.parametrize(
    ("order", "wanted"), [("aggregate-first", (0.5, 0.5)), ("ascend-first", (0.4, 0.6))]
)
def test_the_order_decides_which_mixture_the_step_uses(order: Any, wanted: tuple[float, float]):
    rule = AFL(0.1, order=order)
    step = rule.aggregate(rule.init(spec(2, 2)), make_cohort(ROWS, loss=[1.0, 3.0])).step
    assert_close(step, vector(*wanted))


def test_without_ascent_it_is_the_plain_mean():
    rule = AFL(0.0)
    state = rule.init(spec(2, 2))
    for t in range(3):
        cohort = make_cohort(ROWS, loss=[1.0, 100.0], num_examples=[1, 9], round=t)
        step, state, _ = rule.aggregate(state, cohort)
        assert_close(step, vector(0.5, 0.5))


def test_it_serves_the_worst_client_where_the_mean_serves_the_majority():
    # losses w^2 / 2 (twice) and (w - 1)^2 / 2: their mean is least at 1/3, the largest at 1/2
    rule, w, centres = AFL(0.05), torch.zeros(1).double(), vector(0.0, 0.0, 1.0)[:, None]
    state = rule.init(spec(1, 3))
    for t in range(1500):
        losses = (w - centres).square().sum(1) / 2
        cohort = make_cohort(0.1 * (centres - w), loss=losses.tolist(), round=t)
        step, state, _ = rule.aggregate(state, cohort)
        w = w + step
    assert rule.evaluated(state, w).item() == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("evaluates", ["average", "average-with-start", "last"])
def test_the_evaluated_model_is_the_mean_of_the_iterates(evaluates: Any):
    federation, rule = quadratic_federation(CENTRES), AFL(0.1, evaluates=evaluates)
    iterates = [torch.zeros(2).double()]
    for result in simulate(rule, federation, rounds=4, local=LOCAL):
        iterates.append(result.training.params)
        counted = {
            "average": iterates[1:],
            "average-with-start": iterates,
            "last": iterates[-1:],
        }[evaluates]
        wanted = torch.stack(counted).mean(0)
        assert_close(rule.evaluated(result.training.rule_state, iterates[-1]), wanted)
        assert_close(federation.module(result.training, rule=rule).w.detach(), wanted)


@pytest.mark.parametrize("evaluates", ["average", "average-with-start"])
@pytest.mark.parametrize("wrap", [lambda r: FedHV([9.0], server=r, server_lr=0.5), ServerMomentum])
def test_inside_a_rule_that_changes_the_step_the_iterates_are_still_averaged(
    wrap: Any, evaluates: Any
):
    federation, rule = quadratic_federation(CENTRES), wrap(AFL(0.1, evaluates=evaluates))
    iterates = [torch.zeros(2).double()]
    for result in simulate(rule, federation, rounds=4, local=LOCAL):
        iterates.append(result.training.params)
        counted = iterates if evaluates == "average-with-start" else iterates[1:]
        found = federation.module(result.training, rule=rule).w.detach()
        assert_close(found, torch.stack(counted).mean(0))


def test_a_module_without_the_rule_is_the_last_iterate():
    federation = quadratic_federation(CENTRES)
    *_, last = simulate(AFL(0.1), federation, rounds=3, local=LOCAL)
    assert torch.equal(federation.module(last.training).w.detach(), last.training.params)


def test_absent_clients_take_part_in_the_projection_only():
    rule = AFL(0.3)
    step, state, _ = rule.aggregate(rule.init(spec(2, 3)), make_cohort(ROWS, loss=[1.0, 2.0]))
    assert_close(step, vector(0.5, 0.5))  # 1/3 and 1/3 of what is there
    # (1/3 + .3, 1/3 + .6, 1/3), sum 1.9: all give up .3
    assert_close(state.weights, vector(1 / 3, 1 / 3 + 0.3, 1 / 3 - 0.3))


def test_a_cohort_without_weight_is_averaged_and_it_is_said():
    rule = AFL(10.0)
    _, state, _ = rule.aggregate(
        rule.init(spec(2, 3)), make_cohort([[1.0, 0.0]], client_ids=[2], loss=[5.0])
    )
    assert state.weights.tolist() == [0, 0, 1]
    step, _, seen = rule.aggregate(state, make_cohort(ROWS, loss=[1.0, 2.0], round=1))
    assert seen["outcome"] == "uniform"
    assert_close(step, vector(0.5, 0.5))


def test_a_client_without_weight_can_come_back():
    rule = AFL(1.0)
    _, state, _ = rule.aggregate(rule.init(spec(2, 2)), make_cohort(ROWS, loss=[9.0, 0.0]))
    assert state.weights.tolist() == [1, 0]
    _, state, _ = rule.aggregate(state, make_cohort(ROWS, loss=[0.0, 1.5], round=1))
    assert_close(state.weights, vector(0.25, 0.75))  # the projection of (1, 1.5)


def test_a_client_beyond_the_federation_is_refused():
    rule = AFL(0.1)
    with pytest.raises(ValueError, match="below the 2 clients"):
        rule.aggregate(rule.init(spec(2, 2)), make_cohort(ROWS, client_ids=[0, 2], loss=[1.0, 1.0]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lr_lambda": -1.0}, "`lr_lambda` must be at least 0"),
        ({"lr_lambda": 0.1, "order": "both"}, "`order` must be"),
        ({"lr_lambda": 0.1, "evaluates": "best"}, "`evaluates` must be"),
        ({"lr_lambda": 0.1, "server_lr": 0.0}, "`server_lr` must be positive"),
    ],
)
def test_impossible_settings_are_refused(options: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=message):
        AFL(**options)


@pytest.mark.parametrize("loss", [1e15, 1e200])
def test_equal_losses_leave_the_mixture_however_large_they_are(loss: float):
    rule = AFL(lr_lambda=0.1)
    state = replace(rule.init(spec(1, 2)), weights=torch.tensor([0.4, 0.6], dtype=torch.float64))
    cohort = make_cohort([[1.0], [2.0]], loss=[loss, loss])
    # the projection takes back what all entries have in common
    assert_close(rule.aggregate(state, cohort).state.weights, state.weights, rtol=0, atol=1e-15)


def test_an_ascent_that_overflows_names_the_client():
    rule = AFL(lr_lambda=1e200)
    cohort = make_cohort([[1.0], [2.0]], loss=[1.0, 1e200])
    with pytest.raises(NonFiniteError, match="Client 1 has loss 1e"):
        rule.aggregate(rule.init(spec(1, 2)), cohort)
