"""FedFV: internal and external conflicts, windows, lengths."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch.testing import assert_close

from common import make_cohort, spec
from fedaccord import Aggregation, FedFV, History

ROWS = [[1.0, 0.0], [-1.0, 1.0]]  # their mean is (0, 1/2)


def vector(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def aggregate(
    rule: FedFV, rows: Any, losses: Any, state: History | None = None, **options: Any
) -> Aggregation[History]:
    state = rule.init(spec()) if state is None else state
    return rule.aggregate(state, make_cohort(rows, loss=losses, **options))


def test_the_client_of_higher_loss_keeps_its_update():
    step, _, seen = aggregate(FedFV(alpha=0.1), ROWS, [1.0, 2.0])
    # the first loses its part against the second: (1, 0) + (-1, 1) / 2 = (1/2, 1/2);
    # the mean (-1/4, 3/4), of length sqrt(10) / 4, gets the old mean's length 1/2
    assert_close(step, vector(-1.0, 3.0) / (2 * math.sqrt(10)))
    assert seen["kept"] == (1,)
    assert seen["internal_conflicts"] == {0: 1.0, 1: 0.0}


def test_with_the_losses_swapped_the_other_keeps_its_update():
    step = aggregate(FedFV(alpha=0.1), ROWS, [2.0, 1.0]).step
    # (-1, 1) + (1, 0) = (0, 1), the mean (1/2, 1/2)
    assert_close(step, vector(0.5, 0.5) / math.sqrt(2))


def test_alpha_zero_keeps_nobody():
    step, _, seen = aggregate(FedFV(alpha=0.0), ROWS, [1.0, 2.0])
    # (1/2, 1/2) and (0, 1), the mean (1/4, 3/4)
    assert_close(step, vector(1.0, 3.0) / (2 * math.sqrt(10)))
    assert seen["kept"] == ()
    assert (torch.tensor(ROWS).double() @ step > 0).all()  # promised for two clients


def test_alpha_one_is_the_plain_mean_bit_for_bit():
    rows = torch.randn(4, 3, generator=torch.Generator().manual_seed(0)).double()
    step = aggregate(FedFV(alpha=1.0, tau=0), rows, [3.0, 1.0, 2.0, 4.0]).step
    assert_close(step, rows.mean(0), rtol=1e-15, atol=0)


@pytest.mark.parametrize(
    ("alpha", "kept"),
    [(0.1, (3,)), (1 / 3, (2, 3)), (0.5, (2, 3)), (2 / 3, (1, 2, 3)), (1.0, (0, 1, 2, 3))],
)
def test_how_many_are_kept(alpha: float, kept: tuple[int, ...]):
    # of 4 clients those from place ceil(3 (1 - alpha)) on in the order of losses
    seen = aggregate(FedFV(alpha=alpha), torch.eye(4), [1.0, 2.0, 3.0, 4.0]).diagnostics
    assert seen["kept"] == kept


def test_ties_go_by_client_id():
    seen = aggregate(FedFV(alpha=0.1), torch.eye(3), [1.0, 1.0, 1.0]).diagnostics
    assert seen["kept"] == (2,)


def absent(tau: int, gap: int, **options: Any) -> Aggregation[History]:
    """Client 2 pulls along -x in round 0; `gap` rounds later client 0 alone goes (1, 1)."""
    rule = FedFV(tau=tau, **options)
    _, state, _ = aggregate(rule, [[-1.0, 0.0]], [1.0], client_ids=[2])
    return aggregate(rule, [[1.0, 1.0]], [1.0], state, round=gap)


def test_a_recent_client_is_not_worked_against():
    step, _, seen = absent(tau=1, gap=1)
    # (1, 1) without its part along -x is (0, 1), at the length of (1, 1)
    assert_close(step, vector(0.0, math.sqrt(2)))
    assert seen["external_conflicts"] == (2,)


@pytest.mark.parametrize(
    ("tau", "gap", "counts"), [(0, 1, False), (1, 2, False), (2, 2, True), (3, 2, True)]
)
def test_the_window_is_tau_rounds(tau: int, gap: int, counts: bool):
    assert (absent(tau, gap).diagnostics["external_conflicts"] == (2,)) == counts


def test_the_shifted_window_of_one_round_holds_this_rounds_clients_only():
    step, _, seen = absent(tau=1, gap=1, window="shifted")
    assert_close(step, vector(1.0, 1.0))
    assert seen["external_conflicts"] == ()


def test_before_round_tau_history_does_not_count():
    rule = FedFV(tau=3)
    _, state, _ = aggregate(rule, [[-1.0, 0.0]], [1.0], client_ids=[2])
    step = aggregate(rule, [[1.0, 1.0]], [1.0], state, round=1).step  # the second of three
    assert_close(step, vector(1.0, 1.0))


def test_updates_that_all_vanish_leave_no_direction():
    # each is exactly against the other, so that both are projected to zero
    step, _, seen = aggregate(FedFV(alpha=0.0), [[1.0, 0.0], [-2.0, 0.0]], [1.0, 2.0])
    assert not step.any()
    assert seen["outcome"] == "collapsed"


def test_a_zero_average_is_no_step():
    step, _, seen = aggregate(FedFV(), [[1.0, 0.0], [-1.0, 0.0]], [1.0, 2.0])
    assert not step.any()
    assert seen["outcome"] == "no-average"


def test_a_zero_update_only_shortens_the_mean():
    with_it = aggregate(FedFV(alpha=0.0), [*ROWS, [0.0, 0.0]], [1.0, 2.0, 3.0])
    without = aggregate(FedFV(alpha=0.0), ROWS, [1.0, 2.0])
    assert_close(with_it.step, without.step * 2 / 3)
    assert with_it.diagnostics["zero_updates"] == (2,)


def test_the_length_is_that_of_the_plain_mean():
    rows = torch.randn(5, 4, generator=torch.Generator().manual_seed(1)).double()
    options = {"num_examples": [9, 1, 1, 1, 1]}
    step = aggregate(FedFV(), rows, [5.0, 4.0, 3.0, 2.0, 1.0], **options).step
    assert_close(step.norm(), rows.mean(0).norm())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 1.1}, r"`alpha` must be in \[0, 1\]"),
        ({"tau": -1}, "`tau` must be an integer"),
        ({"tau": 1.5}, "`tau` must be an integer"),
        ({"window": "past"}, "`window` must be"),
        ({"server_lr": 0.0}, "`server_lr` must be positive"),
    ],
)
def test_impossible_settings_are_refused(options: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=message):
        FedFV(**options)
