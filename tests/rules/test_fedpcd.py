"""FedPCD: guarantees, options, and what it tells."""

from __future__ import annotations

import math
import warnings

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from common import make_cohort, spec
from fedaccord import FedAvg, FedPCD, InfeasibleError, StalledWarning


def angles(*degrees: float) -> Tensor:
    radians = torch.tensor(degrees, dtype=torch.float64).deg2rad()
    return torch.stack([radians.cos(), radians.sin()], dim=1)


def first_round(rule: FedPCD, updates: object, **options: object) -> tuple[Tensor, dict]:
    cohort = make_cohort(updates, **options)
    state = rule.init(spec(cohort.updates.shape[1], max(cohort.client_ids) + 1))
    step, _, seen = rule.aggregate(state, cohort)
    return step, seen


@pytest.mark.parametrize(
    ("tau", "angle", "progress", "active"),
    [
        (0.25, 79.1, (0.37, 0.85, 0.25), (2,)),
        (0.0, 65.0, (0.57, 0.93, 0.0), (2,)),
        (1.0, 82.5, (1, 2.64, 1), (0, 2)),
    ],
)
def test_the_papers_page(
    tau: float, angle: float, progress: tuple[float, ...], active: tuple[int, ...]
):
    # printed on the FedPCD project page: clients at 10, 45 and 155 degrees, average at 58.9
    step, seen = first_round(FedPCD(tau=tau, eps=0.0), angles(10, 45, 155))
    assert math.degrees(math.atan2(step[1], step[0])) == pytest.approx(angle, abs=0.05)
    assert list(seen["progress_step"].values()) == pytest.approx(progress, abs=0.006)
    assert seen["angle_degrees"] == pytest.approx(angle - 58.9, abs=0.06)
    assert seen["active"] == active


def test_the_papers_multiplier():
    _, seen = first_round(FedPCD(tau=0.25, eps=0.0), angles(10, 45, 155))
    assert seen["multipliers"] == {0: 0, 1: 0, 2: pytest.approx(0.36, abs=0.005)}
    assert seen["active"] == (2,)


UPDATES = st.integers(1, 5).flatmap(
    lambda n: st.lists(
        st.lists(st.floats(-3, 3).map(lambda x: round(x, 2)), min_size=4, max_size=4),
        min_size=n,
        max_size=n,
    )
)


@given(UPDATES, st.sampled_from([0.0, 0.02, 0.5, 1.0]))
def test_every_client_gets_its_share(updates: list[list[float]], tau: float):
    step, seen = first_round(FedPCD(tau=tau, eps=0.0), updates)
    rows = torch.tensor(updates, dtype=torch.float64)
    lengths = rows.norm(dim=1)
    if seen["outcome"] == "projected":
        progress = torch.tensor([seen["progress_step"][i] for i in range(len(rows))])
        assert (progress[lengths > 0] >= tau - 1e-9).all()
        # the step has the same signs of progress, and the average's length
        assert (rows @ step >= -1e-9 * lengths * step.norm()).all()
    if seen["outcome"] in ("projected", "average"):
        torch.testing.assert_close(step.norm(), rows.mean(0).norm())


@given(UPDATES, st.sampled_from([0.0, 0.02, 0.5]))
def test_multipliers_are_complementary(updates: list[list[float]], tau: float):
    _, seen = first_round(FedPCD(tau=tau, eps=0.0), updates)
    if seen["outcome"] == "projected":
        for client, multiplier in seen["multipliers"].items():
            assert multiplier >= 0
            slack = seen["progress_step"][client] - tau
            assert multiplier * slack == pytest.approx(0, abs=1e-8 * max(1, multiplier))


@given(UPDATES, st.permutations(range(5)))
def test_ids_do_not_matter(updates: list[list[float]], order: list[int]):
    rule = FedPCD(tau=0.1)
    step, _ = first_round(rule, updates)
    names = order[: len(updates)]
    rows = [updates[names.index(i)] for i in sorted(names)]
    again, _ = first_round(rule, rows, client_ids=sorted(names))
    torch.testing.assert_close(step, again, rtol=1e-6, atol=1e-9)


def test_the_average_comes_back_bit_for_bit_when_nobody_falls_short():
    cohort = make_cohort(
        torch.randn(6, 50, generator=torch.Generator().manual_seed(0)) + 1,
        num_examples=[3, 1, 4, 1, 5, 9],
        dtype=torch.float32,
    )
    rule = FedPCD(tau=0.02)
    step, _, seen = rule.aggregate(rule.init(spec(50)), cohort)
    assert seen["outcome"] == "average"
    assert torch.equal(step, FedAvg().aggregate(None, cohort).step)


def test_one_client_with_tau_one_is_the_average():
    step, seen = first_round(FedPCD(tau=1.0), [[0.3, -0.1]])
    assert seen["outcome"] == "average"
    assert step.tolist() == [0.3, -0.1]


def test_an_absent_client_counts_by_direction_alone():
    rule, steps = FedPCD(tau=0.1, eps=0.0), []
    for scale in (1.0, 1e-6, 1e6):
        past = make_cohort([[scale, -0.2 * scale]], client_ids=[5])
        state = rule.aggregate(rule.init(spec()), past).state
        now = make_cohort([[-1.0, 1.0], [-0.5, 1.0]], round=1)
        steps.append(rule.aggregate(state, now).step)
    torch.testing.assert_close(steps[0], steps[1])
    torch.testing.assert_close(steps[0], steps[2])


def test_a_small_dtype_for_the_history_bends_the_step_by_its_rounding_only():
    rows = torch.randn(4, 200, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    steps = {}
    for dtype in (None, "float32", "bfloat16", "float16"):
        rule = FedPCD(tau=0.1, history_dtype=dtype)
        state = rule.init(spec(200))
        state = rule.aggregate(state, make_cohort(rows[:2], client_ids=[7, 8])).state
        now = make_cohort(-rows[:2] + rows[2:], round=1)
        steps[dtype], state, seen = rule.aggregate(state, now)
        assert seen["constrained_cached"] == 2
    # one rounding of each entry: 2^-24, 2^-9, 2^-12 (relative), times a condition number of about 3
    for dtype, rounding in (("float32", 2**-24), ("bfloat16", 2**-9), ("float16", 2**-12)):
        error = (steps[dtype] - steps[None]).norm() / steps[None].norm()
        assert error < 3 * rounding


def test_without_history_nothing_is_kept():
    rule = FedPCD(history=0)
    state = rule.aggregate(rule.init(spec()), make_cohort([[1.0, 0.0]])).state
    assert len(state.history) == 0


def test_tau_may_differ_between_clients():
    taus = (0.0, 0.0, 0.5)
    _, seen = first_round(FedPCD(tau=taus, eps=0.0), angles(10, 45, 155))
    assert seen["progress_step"][2] == pytest.approx(0.5)


def test_opposite_clients_get_the_average_by_default_and_it_is_said():
    step, seen = first_round(FedPCD(tau=0.2), [[1.0, 0], [0, 1], [0, -2]], num_examples=[6, 2, 2])
    assert seen["outcome"] == "infeasible"
    assert seen["feasibility_margin"] <= 1e-7
    assert seen["unprotected"] == (1, 2)  # only the first can gain without a loss
    assert step.tolist() == pytest.approx([0.6, -0.2])


def test_protection_gives_progress_to_whom_it_can():
    # K = {d : d_1 >= 0, d_2 >= 0, -2 d_2 >= 0}: only the first client can gain; the projection of
    # (0.6, -0.2) on the axis, at the average's length sqrt(.36 + .04)
    rule = FedPCD(tau=0.2, infeasible="protect")
    step, seen = first_round(rule, [[1.0, 0], [0, 1], [0, -2]], num_examples=[6, 2, 2])
    torch.testing.assert_close(step, torch.tensor([0.632456, 0.0]).double(), rtol=0, atol=1e-6)
    assert seen["outcome"] == "protected"
    assert seen["unprotected"] == (1, 2)


def test_raising_names_the_clients():
    with pytest.raises(InfeasibleError, match=r"clients \[3, 8\] progress"):
        first_round(FedPCD(infeasible="raise"), [[1.0, 0.1], [-2.0, -0.2]], client_ids=[3, 8])


def test_three_stalled_rounds_warn_with_names():
    rule = FedPCD(tau=0.1, infeasible="protect", history=0)
    state = rule.init(spec())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for round in range(3):
            assert not caught
            cohort = make_cohort([[1.0, 0], [-2.0, 0]], client_ids=[4, 6], round=round)
            step, state, seen = rule.aggregate(state, cohort)
            assert seen["outcome"] == "stalled"
            assert not step.any()
    assert [w.category for w in caught] == [StalledWarning]
    assert "(4, 6)" in str(caught[0].message)


def test_progress_ends_the_count_of_stalled_rounds():
    rule = FedPCD(tau=0.1, infeasible="protect", history=0)
    state = rule.init(spec())
    for round, second in enumerate([-2.0, -2.0, 3.0]):
        cohort = make_cohort([[1.0, 0], [second, 0]], round=round)
        _, state, seen = rule.aggregate(state, cohort)
    assert seen["stalled_rounds"] == 0


def test_a_zero_average_of_rounding_errors_is_no_direction():
    # 0.1 + 0.2 is not 0.3 in floating point, so the mean is not exactly zero
    step, seen = first_round(FedPCD(), [[0.1 + 0.2, 0.0], [-0.3, 0.0]])
    assert seen["outcome"] == "no-average"
    assert not step.any()


def test_the_server_rate_scales_the_step():
    rows = angles(10, 45, 155)
    one, _ = first_round(FedPCD(tau=0.25), rows)
    two, _ = first_round(FedPCD(tau=0.25, server_lr=2.0), rows)
    torch.testing.assert_close(two, 2 * one)


def test_the_limit_of_tau_is_tau_zero():
    rows = angles(10, 45, 155)
    nearly, _ = first_round(FedPCD(tau=1e-9), rows)
    zero, _ = first_round(FedPCD(tau=0.0), rows)
    torch.testing.assert_close(nearly, zero, rtol=0, atol=1e-8)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tau": -0.1}, r"`tau` must be in \[0, 1\]"),
        ({"tau": 1.1}, r"`tau` must be in \[0, 1\]"),
        ({"tau": float("nan")}, r"`tau` must be in \[0, 1\]"),
        ({"tau": []}, r"`tau` must be in \[0, 1\]"),
        ({"history": -1}, "`history` must be an integer"),
        ({"history": 2.5}, "`history` must be an integer"),
        ({"infeasible": "ignore"}, "`infeasible` must be"),
        ({"primary": False, "tau": 0.0}, "`tau` must be positive with `primary=False`"),
        ({"eps": -1.0}, "`eps` must be at least 0"),
        ({"server_lr": 0.0}, "`server_lr` must be positive"),
        ({"history_dtype": "int8"}, "`history_dtype` must be"),
    ],
)
def test_impossible_settings_are_refused(arguments: dict[str, object], message: str):
    with pytest.raises(ValueError, match=message):
        FedPCD(**arguments)


def test_one_tau_a_client_needs_one_for_each():
    with pytest.raises(ValueError, match="one for each of 10 clients. Got 2"):
        FedPCD(tau=[0.1, 0.2]).init(spec(num_clients=10))


def test_rounds_must_advance():
    rule = FedPCD()
    state = rule.aggregate(rule.init(spec()), make_cohort([[1.0, 0.0]])).state
    with pytest.raises(ValueError, match="Got round 0 after round 0. Pass `round=`"):
        rule.aggregate(state, make_cohort([[0.0, 1.0]]))
