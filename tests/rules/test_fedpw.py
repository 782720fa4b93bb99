"""FedPW: accumulated weights, drop rates, pruning, amplification."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch.testing import assert_close

from common import make_cohort, spec
from fedaccord import (
    Aggregation,
    Cohort,
    FedPW,
    Layout,
    MalformedReplyError,
    NonFiniteError,
    Reply,
    Spec,
)
from fedaccord.rules._fedpw_entries import amplified, pruned
from fedaccord.rules._fedpw_weights import drop_rates, mixed
from fedaccord.rules.fedpw import FedPWState

EYE = [[1.0, 0.0], [0.0, 1.0]]


def vector(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def rounds_of(
    rule: FedPW, *rounds: tuple[Any, list[float]], num_clients: int = 2, **options: Any
) -> list[Aggregation[FedPWState]]:
    """One round for each pair of updates and losses."""
    state, results = None, []
    for t, (rows, losses) in enumerate(rounds):
        cohort = make_cohort(rows, train_loss=losses, round=t, **options)
        state = rule.init(spec(len(rows[0]), num_clients)) if state is None else state
        results.append(rule.aggregate(state, cohort))
        state = results[-1].state
    return results


def test_the_first_round_weighs_by_loss_where_directions_are_alike():
    (first,) = rounds_of(FedPW(), (EYE, [1.0, 3.0]))
    # products with the sum (1, 1) are equal, so that only losses spread: shares 1/4, 3/4
    assert_close(first.step, vector(0.25, 0.75))
    assert first.diagnostics["mixing"] == 1.0


def test_the_first_round_weighs_by_direction_where_losses_are_alike():
    (first,) = rounds_of(FedPW(), ([[1.0, 0.0], [3.0, 0.0]], [2.0, 2.0]))
    # products with the sum (4, 0) are 4 and 12: shares 1/4, 3/4
    assert_close(first.step, vector(0.25 * 1 + 0.75 * 3, 0.0))
    assert first.diagnostics["mixing"] == 0.0


def test_nothing_that_spreads_is_mixed_half_and_half():
    (first,) = rounds_of(FedPW(), (EYE, [2.0, 2.0]))
    assert first.diagnostics["mixing"] == 0.5
    assert_close(first.step, vector(0.5, 0.5))


def test_weights_accumulate():
    first, second = rounds_of(FedPW(beta=0.5, drop=0.0), *[(EYE, [1.0, 3.0])] * 2)
    # a = (1/8, 3/8), then a = a/2 + (1/8, 3/8) = 3/2 of it: always the shares 1/4, 3/4
    for result in (first, second):
        assert_close(vector(*result.diagnostics["loss_weights"].values()), vector(0.25, 0.75))
    assert_close(second.state.losses.running, vector(3 / 16, 9 / 16))


def test_newer_losses_count_by_their_size():
    _, second = rounds_of(FedPW(beta=0.5, drop=0.0), (EYE, [1.0, 3.0]), (EYE, [3.0, 1.0]))
    # a = (1/8, 3/8) / 2 + (3/4, 1/4) / 2 = (7/16, 5/16); P = (1/4 + 7/16, 3/4 + 5/16) / 1.75
    assert_close(second.state.losses.weights, vector(11 / 28, 17 / 28))


def test_a_lower_loss_is_pruned_more():
    # inverse losses 1, 1/3: 2 * .3 shared as 3/4, 1/4
    assert_close(drop_rates(vector(1.0, 3.0), 0.3), vector(0.45, 0.15))


def test_a_drop_rate_ends_at_one():
    assert_close(drop_rates(vector(0.1, 100.0), 0.6)[0], vector(1.0)[0])


def test_clients_without_loss_take_all_the_pruning():
    assert_close(drop_rates(vector(0.0, 2.0, 0.0), 0.3), vector(0.45, 0.0, 0.45))


def test_the_smallest_entries_are_pruned():
    rows = torch.tensor([[3.0, -1.0, 2.0, 0.5]]).double()
    left, dropped = pruned(rows, vector(0.5))
    assert left.tolist() == [[3.0, 0.0, 2.0, 0.0]]
    assert dropped == 0.5  # of every tenth entry: the smallest alone
    assert rows[0, 1] == -1.0  # the caller's rows stay


def test_a_client_that_drops_nothing_leaves_no_mean_size():
    assert math.isnan(pruned(torch.ones(2, 3).double(), vector(0.5, 0.1))[1])


def test_the_most_agreed_entry_is_enlarged():
    # unit rows (3, 4)/5 and (4, 3)/5 would agree alike; here both agree on the first entry
    rows = torch.tensor([[1.0, 1.0], [1.0, 0.0]]).double()
    enlarged, factor = amplified(rows, vector(1.0, 0.5), share=0.5, dropped=0.25)
    assert_close(enlarged, vector(1.25, 0.5))  # times 1 + .25 / 1
    assert factor == 1.25


@pytest.mark.parametrize("dropped", [math.nan, 1.0, 5.0])
def test_nothing_is_enlarged_by_more_than_two(dropped: float):
    rows = torch.tensor([[1.0, 1.0], [1.0, 0.0]]).double()
    unchanged, factor = amplified(rows, vector(1.0, 0.5), share=0.5, dropped=dropped)
    assert_close(unchanged, vector(1.0, 0.5))
    assert factor == 1.0


@pytest.mark.parametrize("rows", [torch.zeros(2, 2), torch.tensor([[1.0, 2.0], [0.0, 0.0]])])
def test_fewer_than_two_clients_cannot_agree(rows: torch.Tensor):
    _, factor = amplified(rows.double(), vector(1.0, 0.5), share=0.5, dropped=0.1)
    assert factor == 1.0


def test_the_first_round_prunes_nothing():
    first, second = rounds_of(FedPW(), *[(torch.ones(2, 10), [1.0, 1.0])] * 2)
    assert (first.diagnostics["pruned"], second.diagnostics["pruned"]) == (0, 1)
    assert first.step.all()
    assert not second.step.all()


def test_updates_that_cancel_count_equally_in_direction():
    (first,) = rounds_of(FedPW(), ([[1.0, 0.0], [-1.0, 0.0]], [1.0, 1.0]))
    assert_close(vector(*first.diagnostics["product_weights"].values()), vector(0.5, 0.5))
    assert first.diagnostics["outcome"] == "stationary"


def test_a_cohort_keeps_the_total_weight_it_had():
    rule, n = FedPW(), 4
    state = rule.init(spec(2, n))
    for t, ids in enumerate([(0, 1), (1, 2, 3), (0, 3), (2,)]):
        rows = torch.eye(3)[: len(ids), :2] + 0.1
        losses = [1.0 + c for c in ids]
        cohort = make_cohort(rows, client_ids=ids, train_loss=losses, round=t)
        state = rule.aggregate(state, cohort).state
        unseen = (~state.seen).sum() / n
        assert_close(state.losses.weights.sum() + unseen, vector(1.0)[0], check_dtype=False)
        assert_close(state.products.weights.sum() + unseen, vector(1.0)[0], check_dtype=False)


@pytest.mark.parametrize(
    ("by_loss", "by_product", "weights"),
    [
        ((0.1, 0.3), (0.2, -0.8), (0.25, 0.75)),  # spreads .1 and .5 (times sqrt(2)): sum < 0
        ((-0.1, -0.3), (-0.2, -0.2), (0.5, 0.5)),
    ],
)
def test_weights_without_a_positive_sum_are_replaced(by_loss: Any, by_product: Any, weights: Any):
    found, share = mixed(vector(*by_loss), vector(*by_product))
    assert_close(found, vector(*weights))
    assert share == 1.0 or math.isnan(share)


def test_losses_that_explode_leave_the_accumulated_weights_as_they_were():
    # beta_L = .5 * 20 = 10: a = -9 a + 10 nu, twice
    losses = [[1.0, 3.0], [20.0, 60.0], [20.0, 60.0]]
    rule = FedPW(beta=0.5, drop=0.0, bounded=False)
    *_, second, third = rounds_of(rule, *[(EYE, f) for f in losses])
    assert second.diagnostics["weights_kept"] == 0
    assert third.diagnostics["weights_kept"] == 1
    assert torch.equal(third.state.losses.weights, second.state.losses.weights)


@pytest.mark.parametrize("growth", [10.0, 100.0])
def test_evidence_that_grows_leaves_the_state_finite(growth: float):
    rule, grown = FedPW(drop=0.0), [[growth, 0.0], [0.0, growth]]
    *_, last = rounds_of(rule, (EYE, [1.0, 3.0]), *[(grown, [growth, 3 * growth])] * 400)
    for trace in (last.state.losses, last.state.products):
        assert torch.isfinite(trace.running).all()
        assert torch.isfinite(trace.weights).all()
    # beta grows to 1: the running evidence is the newest, shares 1/4 and 3/4
    assert_close(last.state.losses.running[:2], torch.tensor([0.25, 0.75]).double())


def test_evidence_that_diverges_without_bounds_is_an_error():
    rounds = [(EYE, [1.0, 3.0]), *[([[100.0, 0.0], [0.0, 100.0]], [100.0, 300.0])] * 400]
    with pytest.raises(NonFiniteError, match="running evidence has diverged"):
        rounds_of(FedPW(drop=0.0, bounded=False), *rounds)


@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_updates_that_cancel_up_to_rounding_have_no_direction_of_their_own(
    scale: float, dtype: torch.dtype
):
    # .7 - .4 - .3 is -5.6e-17: products with that sum say nothing, and directions count equally
    rows = scale * torch.tensor([[0.7], [-0.4], [-0.3]], dtype=dtype)
    replies = [
        Reply(i, 1, {"update": row, "train_loss": torch.tensor(1.0)}) for i, row in enumerate(rows)
    ]
    rule, layout = FedPW(), Layout(("w",), ((1,),))
    cohort = Cohort.stack(replies, layout=layout)
    step, _, seen = rule.aggregate(rule.init(Spec(layout, 3)), cohort)
    assert list(seen["weights"].values()) == pytest.approx([1 / 3] * 3)
    assert abs(float(step)) < 1e-7 * scale
    assert seen["largest_weight"] == pytest.approx(1 / 3)


def test_a_negative_loss_is_refused_by_name():
    with pytest.raises(MalformedReplyError, match="`train_loss` of client 0 is -1.0"):
        rounds_of(FedPW(), (EYE, [-1.0, 1.0]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beta": 0.0}, r"`beta` must be in \(0, 1\]"),
        ({"drop": 1.0}, r"`drop` must be in \[0, 1\)"),
        ({"server_lr": 0.0}, "`server_lr` must be"),
    ],
)
def test_impossible_settings_are_refused(options: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=message):
        FedPW(**options)
