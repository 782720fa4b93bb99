"""FedMGDA+: unit updates, the box around the prior, zero updates."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.testing import assert_close

from common import make_cohort
from fedaccord import Aggregation, FedMGDAPlus


def vector(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def aggregate(rule: FedMGDAPlus, rows: Any, **options: Any) -> Aggregation[None]:
    return rule.aggregate(None, make_cohort(rows, **options))


def test_two_clients_meet_half_way_whatever_their_lengths():
    # unit rows (1, 0) and (.6, .8): equal weights by symmetry
    step, _, seen = aggregate(FedMGDAPlus(1.0), [[5.0, 0.0], [0.06, 0.08]])
    assert_close(step, vector(0.8, 0.4))
    assert_close(vector(*seen["weights"].values()), vector(0.5, 0.5))


def test_the_box_stops_a_weight():
    # prior (.8, .2), free weights (.5, .5): the first goes down to .8 - .1 only
    rule = FedMGDAPlus(0.1, prior="shares")
    step, _, seen = aggregate(rule, [[1.0, 0.0], [0.0, 1.0]], num_examples=[4, 1])
    assert_close(vector(*seen["weights"].values()), vector(0.7, 0.3))
    assert_close(step, vector(0.7, 0.3))


@pytest.mark.parametrize("prior", ["uniform", "shares"])
def test_epsilon_zero_averages_unit_updates(prior: Any):
    step = aggregate(
        FedMGDAPlus(0.0, prior=prior), [[3.0, 0.0], [0.0, 0.1]], num_examples=[3, 1]
    ).step
    assert_close(step, vector(0.5, 0.5) if prior == "uniform" else vector(0.75, 0.25))


def test_epsilon_one_gives_a_dominated_client_no_weight():
    # unit rows at 0, 10 and 90 degrees: the outer two alone are shortest
    rows = [[1.0, 0.0], [0.984807753012208, 0.17364817766693033], [0.0, 1.0]]
    seen = aggregate(FedMGDAPlus(1.0), rows).diagnostics
    assert_close(vector(*seen["weights"].values()), vector(0.5, 0.0, 0.5))


def test_duplicated_clients_share_their_weight():
    seen = aggregate(FedMGDAPlus(1.0), [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]).diagnostics
    assert_close(vector(*seen["weights"].values()), vector(0.25, 0.25, 0.5))


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0])
def test_a_zero_update_is_left_out_and_the_prior_renormalised(epsilon: float):
    rows = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    rule = FedMGDAPlus(epsilon, prior="shares")
    step, _, seen = aggregate(rule, rows, num_examples=[2, 1, 1])
    assert seen["zero_updates"] == (0,)
    assert seen["prior"] == {0: 0.0, 1: 0.5, 2: 0.5}
    assert_close(step, vector(0.5, 0.5))


@pytest.mark.parametrize(
    ("epsilon", "weights"), [(0.0, (0.5, 0.5)), (0.1, (0.6, 0.4)), (1.0, (1.0, 0.0))]
)
def test_a_zero_update_that_stays_draws_the_weight_it_may(epsilon: float, weights: Any):
    rule = FedMGDAPlus(epsilon, keep_zero=True)
    step, _, seen = aggregate(rule, [[0.0, 0.0], [2.0, 0.0]])
    assert_close(vector(*seen["weights"].values()), vector(*weights))
    assert_close(step, vector(weights[1], 0.0))
    assert seen["outcome"] == ("moved" if weights[1] else "held-by-zero-updates")


def test_opposite_updates_are_stationary():
    step, _, seen = aggregate(FedMGDAPlus(0.1), [[1.0, 0.0], [-3.0, 0.0]])
    assert not step.any()
    assert seen["outcome"] == "stationary"


def test_movers_without_examples_make_no_step_under_the_prior_of_shares():
    rule = FedMGDAPlus(0.1, prior="shares")
    step, _, seen = aggregate(rule, [[0.0, 0.0], [1.0, 0.0]], num_examples=[1, 0])
    assert not step.any()
    assert seen["outcome"] == "no-examples"


def test_nobody_moving_is_said():
    assert aggregate(FedMGDAPlus(), torch.zeros(2, 2)).diagnostics["outcome"] == "all-zero"


def test_server_lr_is_the_length_where_all_agree():
    step = aggregate(FedMGDAPlus(server_lr=0.3), [[1e-9, 0.0], [5.0, 0.0]]).step
    assert_close(step, vector(0.3, 0.0))


@pytest.mark.parametrize("factor", [1e-3, 7.0])
def test_lengths_of_updates_do_not_matter(factor: float):
    rows = torch.tensor([[1.0, 0.0, 0.0], [0.0, 2.0, 1.0], [-1.0, 1.0, 3.0]]).double()
    other = rows * torch.tensor([[factor], [1.0], [1 / factor]]).double()
    assert_close(*(aggregate(FedMGDAPlus(), r).step for r in (rows, other)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": 1.5}, r"`epsilon` must be in \[0, 1\]"),
        ({"prior": "equal"}, "`prior` must be"),
        ({"server_lr": 0.0}, "`server_lr` must be positive"),
    ],
)
def test_impossible_settings_are_refused(options: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=message):
        FedMGDAPlus(**options)
