"""FedLF: layers, the fairness row, merging, absent clients."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.testing import assert_close

from common import make_cohort
from fedaccord import Aggregation, FedLF, Layout, Spec
from fedaccord.rules._fedlf_layers import fairness_vector, safe_length
from fedaccord.rules.fedlf import FedLFState

LAYERS = Layout(("weight", "bias"), ((2,), (1,)))


def vector(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def aggregate(
    rule: FedLF,
    rows: Any,
    losses: Any,
    *,
    layout: Layout | None = None,
    state: FedLFState | None = None,
    **options: Any,
) -> Aggregation[FedLFState]:
    cohort = make_cohort(rows, loss=losses, **options)
    layout = layout or cohort.layout
    state = rule.init(Spec(layout, 10)) if state is None else state
    return rule.aggregate(state, replace(cohort, layout=layout))


def test_equal_losses_leave_the_shortest_combination_of_rows_of_equal_length():
    step, _, seen = aggregate(FedLF(), [[2.0, 0.0], [0.0, 1.0]], [0.7, 0.7])
    # (1, 1) / sqrt(2) at the length of the mean (1, 1/2)
    assert_close(step, vector(1.0, 1.0) * math.sqrt(1.25 / 2))
    assert seen["fairness"] == {0: 0.0, 1: 0.0}


def test_unequal_losses_add_the_fairness_row():
    step = aggregate(FedLF(), [[1.0, 0.0], [0.0, 1.0]], [1.0, 2.0]).step
    # h is along (-2, 1), the row (-2, 1) / sqrt(5); the shortest point of the hull lies half-way
    # between it and (1, 0), and gets the length of (1/2, 1/2)
    point = (vector(1.0, 0.0) + vector(-2.0, 1.0) / math.sqrt(5)) / 2
    assert_close(step, point / point.norm() * math.sqrt(0.5))


def test_the_fairness_vector_by_hand():
    # F = (1, 2): unit losses (1, 2) / sqrt(5), cosine with equal ones 3 / sqrt(10)
    wanted = vector(1.0, 2.0) / math.sqrt(5) * 3 / math.sqrt(10) - math.sqrt(0.5)
    assert_close(fairness_vector(vector(1.0, 2.0)), wanted)


@pytest.mark.parametrize("losses", [(0.3, 0.3, 0.3), (0.0, 0.0, 0.0), (1e300, 1e300, 1e300)])
def test_equal_losses_have_no_fairness_vector(losses: tuple[float, ...]):
    assert not fairness_vector(vector(*losses)).any()


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_the_fairness_vector_does_not_depend_on_the_losses_scale(scale: float):
    losses = vector(1.0, 2.0, 5.0)
    assert_close(fairness_vector(scale * losses), fairness_vector(losses))


def test_clients_that_agree_but_for_their_losses_are_stationary():
    # going down together is unfair to the worse: the fairness row is exactly opposite
    step, _, seen = aggregate(FedLF(), [[1.0, 2.0]] * 2, [1.0, 2.0])
    assert not step.any()
    assert seen["outcome"] == "stationary"


def test_one_client_alone_gets_its_update():
    assert_close(aggregate(FedLF(), [[3.0, -1.0]], [0.7]).step, vector(3.0, -1.0))


STUCK = [[1.0, 0.0, 1.0], [0.0, 1.0, -1.0]]  # opposite in the bias


def test_a_stuck_layer_is_merged_with_its_neighbour():
    step, _, seen = aggregate(FedLF(), STUCK, [1.0, 1.0], layout=LAYERS)
    # together they are (1, 0, 1) and (0, 1, -1), half-way between which is their mean
    assert_close(step, vector(0.5, 0.5, 0.0))
    assert (seen["layers"], seen["layers_after_merging"], seen["layers_without_step"]) == (2, 1, 0)


def test_without_merging_it_stays_at_zero():
    rows = [[2.0, 0.0, 1.0], [0.0, 1.0, -1.0]]
    step, _, seen = aggregate(FedLF(merge=False), rows, [1.0, 1.0], layout=LAYERS)
    assert (seen["layers_after_merging"], seen["layers_without_step"]) == (2, 1)
    # (1, 1) in the weight, nothing in the bias, at the length of (1, 1/2, 0)
    assert_close(step, vector(1.0, 1.0, 0.0) * math.sqrt(1.25 / 2))


def test_the_first_layer_is_merged_forwards():
    layout = Layout(("bias", "weight"), ((1,), (2,)))
    rows = [[1.0, 1.0, 0.0], [-1.0, 0.0, 1.0]]
    assert_close(aggregate(FedLF(), rows, [1.0, 1.0], layout=layout).step, vector(0.0, 0.5, 0.5))


def test_a_layer_nobody_moves_is_not_stuck():
    rows = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    seen = aggregate(FedLF(), rows, [1.0, 1.0], layout=LAYERS).diagnostics
    assert (seen["layers_after_merging"], seen["layers_without_step"]) == (2, 0)


def test_opposite_everywhere_is_stationary_even_when_merged():
    step, _, seen = aggregate(
        FedLF(), [[1.0, 0.0, 1.0], [-2.0, 0.0, -2.0]], [1.0, 1.0], layout=LAYERS
    )
    assert not step.any()
    assert (seen["outcome"], seen["layers_without_step"]) == ("stationary", 1)


def test_a_client_that_leaves_a_layer_alone_has_no_say_in_it():
    rows = [[1.0, 0.0, 0.0], [0.0, 1.0, 3.0]]
    step = aggregate(FedLF(), rows, [1.0, 1.0], layout=LAYERS).step
    # rows of the weight (1, 0), (0, 1); the bias goes with the second alone, at the mean length of
    # both clients' rows, 3/2; as long as the mean update (1/2, 1/2, 3/2) already
    assert_close(step, vector(0.5, 0.5, 1.5))


def history(num_current: int, gap: int, *, others: int) -> tuple[int, ...]:
    """Which absent clients count `gap` rounds after 2 of them answered, if `others` came since."""
    rule = FedLF()
    state = aggregate(rule, torch.eye(3)[:2], [1.0, 1.0], client_ids=[8, 9]).state
    if others:
        rows = torch.ones(others, 3)
        state = aggregate(
            rule, rows, [1.0] * others, client_ids=range(others), state=state, round=1
        ).state
    rows = torch.ones(num_current, 3)
    seen = aggregate(
        rule, rows, [1.0] * num_current, client_ids=range(num_current), state=state, round=gap
    ).diagnostics
    return seen["absent_clients"]


def test_absent_clients_count_for_as_many_rounds_as_everybody_takes():
    # 4 ever seen, 2 a round: a window of 2
    assert history(2, 2, others=2) == (8, 9)
    assert history(2, 3, others=2) == ()


def test_absent_clients_keep_their_rows_in_the_problem():
    rule = FedLF()
    _, state, _ = aggregate(rule, [[0.0, 1.0]], [1.0], client_ids=[5])
    step, _, seen = aggregate(rule, [[1.0, -1.0]], [1.0], state=state, round=1)
    assert seen["absent_clients"] == (5,)
    assert step @ vector(0.0, 1.0) > 0


def test_the_step_is_as_long_as_the_plain_mean():
    rows = [[2.0, 1.0], [0.5, 1.0], [1.0, 3.0]]
    step = aggregate(FedLF(), rows, [1.0, 1.0, 1.0], num_examples=[9, 1, 1]).step
    assert_close(step.norm(), torch.tensor(rows).double().mean(0).norm())


@pytest.mark.parametrize(
    ("against", "length"),
    [(-1.0, 8.0), (1e-8, 8.0), (2e-7, 4.0), (1.0, 1.5)],
    ids=["nobody", "hardly", "halved once", "until the raw length"],
)
def test_the_safeguard_shortens_a_step_that_hurts(against: float, length: float):
    # the longest update has length 1, so that 1e-6 is tolerated: 8 * 2e-7 is too much, 4 * 2e-7 not
    assert safe_length(8.0, 1.5, against, 1.0) == length


@pytest.mark.parametrize(
    ("options", "message"),
    [({"blocks": "layers"}, "`blocks` must be"), ({"server_lr": 0.0}, "`server_lr` must be")],
)
def test_impossible_settings_are_refused(options: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=message):
        FedLF(**options)
