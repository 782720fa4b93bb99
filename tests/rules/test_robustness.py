"""What one hostile or broken client can do to FedPCD, and what its diagnostics say about it."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from common import make_cohort, spec
from fedaccord import FedAvg, FedPCD, NonFiniteError, Rule
from fedaccord.rules._robust import cosines_to_rest, length_outliers, shorten


def angles(*degrees: float) -> Tensor:
    radians = torch.tensor(degrees, dtype=torch.float64).deg2rad()
    return torch.stack([radians.cos(), radians.sin()], dim=1)


HONEST = angles(*range(-20, 25, 5))  # nine clients of 100 examples, which agree
EXAMPLES = [100] * 9 + [1]  # the tenth holds one


def first_round(rule: Rule[Any], updates: Tensor, **options: Any) -> tuple[Tensor, Any]:
    cohort = make_cohort(updates, **options)
    step, _, seen = rule.aggregate(rule.init(spec(updates.shape[1])), cohort)
    return step, seen


def against_nine(rule: Rule[Any], tenth: Tensor) -> tuple[Tensor, Any]:
    return first_round(rule, torch.cat([HONEST, tenth]), num_examples=EXAMPLES)


def degrees(step: Tensor) -> float:
    return math.degrees(math.atan2(step[1], step[0]))


# a veto


def test_one_example_in_901_turns_the_step_by_62_degrees():
    # the tenth goes to 150 degrees and asks for tau = .02 of progress: no step may be further from
    # it than 88.9 degrees or so. FedAvg goes where 900 examples go.
    average, _ = against_nine(FedAvg(), angles(150))
    step, seen = against_nine(FedPCD(), angles(150))
    assert degrees(average) == pytest.approx(0.03, abs=0.005)
    assert degrees(step) == pytest.approx(62.3, abs=0.05)
    assert step.norm() == pytest.approx(average.norm().item())
    assert seen["against_rest"] == (9,)


@pytest.mark.parametrize("length", [1e-12, 1e-3, 1.0, 1e3])
def test_the_length_of_a_hostile_update_does_not_matter_to_its_veto(length: float):
    # an angle below 60 degrees would be more than 90 from the tenth's 150
    step, _ = against_nine(FedPCD(eps=0.0), length * angles(150))
    assert degrees(step) >= 60


@pytest.mark.filterwarnings("ignore::fedaccord.StalledWarning")
def test_one_client_stalls_every_round_under_protect():
    rule = FedPCD(infeasible="protect", history=0)
    state = rule.init(spec())
    for round in range(5):
        turned = HONEST @ angles(10 * round, 10 * round + 90)  # other updates every round
        rows = torch.cat([turned, -turned.mean(0, keepdim=True)])
        cohort = make_cohort(rows, num_examples=EXAMPLES, round=round)
        step, state, seen = rule.aggregate(state, cohort)
        assert not step.any()
        assert seen["stalled_rounds"] == round + 1


def test_by_default_the_same_client_turns_fedpcd_into_fedavg_for_the_round():
    opposite = -HONEST.mean(0, keepdim=True)
    step, seen = against_nine(FedPCD(), opposite)
    assert seen["outcome"] == "infeasible"
    assert torch.equal(step, against_nine(FedAvg(), opposite)[0])


def distance_after_60_rounds(rule: Rule[Any], hostile: float | None) -> float:
    """Nine clients pull a point at distance 10 towards goals around the origin; the tenth, with one
    example, sends their mean turned by 170 degrees, times ``hostile``."""
    goals, turn = angles(*range(0, 360, 40)), angles(170, 260)
    params = torch.tensor([10.0, 0.0], dtype=torch.float64)
    state = rule.init(spec())
    for round in range(60):
        rows = 0.1 * (goals - params)
        if hostile is not None:
            rows = torch.cat([rows, hostile * rows.mean(0, keepdim=True) @ turn])
        cohort = make_cohort(rows, num_examples=EXAMPLES[: len(rows)], round=round)
        step, state, _ = rule.aggregate(state, cohort)
        params = params + step
    return params.norm().item()


def test_one_client_keeps_the_model_away_from_where_everybody_else_wants_it():
    # without interference every round shortens the distance by a tenth: 10 * .9^60 = .018
    assert distance_after_60_rounds(FedAvg(), hostile=1.0) == pytest.approx(0.018, abs=5e-4)
    assert distance_after_60_rounds(FedPCD(), hostile=None) == pytest.approx(0.018, abs=5e-4)
    # measured, and printed on the page
    assert distance_after_60_rounds(FedPCD(), hostile=1.0) == pytest.approx(3.4, abs=0.05)
    assert distance_after_60_rounds(FedPCD(), hostile=1e-9) == pytest.approx(1.4, abs=0.05)


# a broken length


def test_a_huge_update_is_kept_out_of_the_projection_but_not_of_the_average():
    usual = HONEST.mean(0).norm().item()
    step, seen = against_nine(FedPCD(), 1e6 * angles(150))
    # the average is its share, 1/901 of 1e6, and the step is as long
    assert step.norm().item() / usual == pytest.approx(1e6 / 901 / usual, rel=0.01)
    assert seen["length_outliers"] == (9,)
    assert seen["relative_lengths"][9] == pytest.approx(1e6)


def test_the_bound_takes_a_huge_length_out_of_the_average():
    bounded, seen = against_nine(FedPCD(max_norm=3.0), 1e6 * angles(150))
    expected, _ = against_nine(FedPCD(), 3.0 * angles(150))
    torch.testing.assert_close(bounded, expected)
    assert seen["shortened"] == (9,)
    assert seen["relative_lengths"][9] == pytest.approx(1e6)  # what it was


def test_the_bound_does_not_take_the_veto_away():
    step, _ = against_nine(FedPCD(max_norm=3.0), 1e6 * angles(150))
    assert degrees(step) > 60


def test_a_tiny_update_is_flagged_and_has_its_veto():
    step, seen = against_nine(FedPCD(), 1e-12 * angles(150))
    assert degrees(step) == pytest.approx(60, abs=0.1)
    assert seen["length_outliers"] == (9,)


# the bound


def test_updates_within_the_bound_are_left_alone_to_the_bit():
    rows = torch.randn(5, 40, generator=torch.Generator().manual_seed(0))
    cohort = make_cohort(rows, dtype=torch.float32)
    assert shorten(cohort, 100.0)[0] is cohort
    mixed = rows * torch.tensor([[1.0], [1.0], [50.0], [1.0], [1.0]])
    shortened, factors = shorten(make_cohort(mixed, dtype=torch.float32), 2.0)
    others = [0, 1, 3, 4]
    assert torch.equal(shortened.updates[others], rows[others])
    assert (factors[others] == 1).all()


def test_a_shortened_update_keeps_its_direction_and_gets_the_bounds_length():
    # lengths 1, 2, 100: the median is 2, so that the bound is 3
    cohort = make_cohort([[1.0, 0.0], [0.0, 2.0], [60.0, -80.0]])
    shortened, factors = shorten(cohort, 1.5)
    torch.testing.assert_close(shortened.updates[2], torch.tensor([1.8, -2.4]).double())
    assert factors.tolist() == [1, 1, pytest.approx(0.03)]


def test_zero_updates_do_not_count_towards_the_median():
    cohort = make_cohort([[0.0], [0.0], [0.0], [1.0], [1.0]])
    assert shorten(cohort, 1.0)[0] is cohort


def test_the_cohort_that_was_given_is_left_alone():
    cohort = make_cohort([[1.0], [1.0], [9.0]])
    FedPCD(max_norm=2.0).aggregate(FedPCD().init(spec(1)), cohort)
    assert cohort.updates.tolist() == [[1], [1], [9]]


def test_the_history_keeps_the_shortened_update():
    rule = FedPCD(max_norm=2.0)
    cohort = make_cohort([[1.0], [1.0], [9.0]])
    state = rule.aggregate(rule.init(spec(1)), cohort).state
    assert state.history.updates[2].item() == pytest.approx(2)


def test_an_update_too_large_to_square_is_refused_with_a_bound_too():
    with pytest.raises(NonFiniteError, match="small enough to square"):
        first_round(FedPCD(max_norm=2.0), torch.tensor([[1.0], [1e200]], dtype=torch.float64))


@pytest.mark.parametrize("value", [0.0, 0.5, -1.0, math.inf, math.nan])
def test_a_bound_below_the_median_is_refused(value: float):
    with pytest.raises(ValueError, match="`max_norm` must be at least 1"):
        FedPCD(max_norm=value)


# the flags


@pytest.mark.parametrize(
    ("lengths", "flagged"),
    [
        ([1.0, 1.0, 1.0, 1.0, 2.9], []),  # alike, and within three times the median
        ([1.0, 1.0, 1.0, 1.0, 3.1], [4]),
        ([1.0, 1.0, 1.0, 1.0, 0.3], [4]),
        # logarithms 0, 1, 2, 3, 4 about a median of 2: deviations 2, 1, 0, 1, 2 with median 1, so
        # that 3.5 * 1.4826 = 5.19 is far
        ([1.0, math.e, math.e**2, math.e**3, math.e**4], []),
        ([1.0, math.e, math.e**2, math.e**3, math.e**7.1], []),
        ([1.0, math.e, math.e**2, math.e**3, math.e**7.3], [4]),
        ([0.0, 1.0, 1.0, 1.0, 9.0], [4]),  # a zero is another matter
        ([1.0, 1e6], []),  # of two nobody is the usual one
        ([5.0], []),
        ([0.0, 0.0], []),
    ],
)
def test_lengths_are_flagged_by_their_distance_from_the_median(
    lengths: list[float], flagged: list[int]
):
    mask = length_outliers(torch.tensor(lengths, dtype=torch.float64))
    assert mask.nonzero().flatten().tolist() == flagged


def test_the_cosine_to_the_rest_is_that_of_the_sum_of_the_others_directions():
    rows = torch.tensor([[2.0, 0.0], [0.0, 5.0], [-0.1, 0.0]], dtype=torch.float64)
    # rests: (-1, 1), (0, 0), (1, 1)
    found = cosines_to_rest(rows @ rows.T)
    assert found[[0, 2]].tolist() == pytest.approx([-(0.5**0.5)] * 2)
    assert math.isnan(found[1])


def test_somebody_at_120_degrees_is_not_flagged_yet_and_at_121_is():
    for angle, flagged in ((119.0, ()), (121.0, (2,))):
        _, seen = first_round(FedPCD(), angles(-5, 5, angle))
        assert seen["against_rest"] == flagged


@pytest.mark.parametrize("rows", [[[1.0, 2.0]], [[0.0, 0.0]] * 2, [[1.0, 0.0], [0.0, 0.0]]])
def test_without_a_rest_nobody_is_against_it(rows: list[list[float]]):
    _, seen = first_round(FedPCD(), torch.tensor(rows, dtype=torch.float64))
    assert seen["against_rest"] == ()
    assert all(math.isnan(cosine) for cosine in seen["cosines_to_rest"].values())


def test_an_honest_minority_is_flagged_like_a_hostile_client():
    # the paper's own example: the client at 155 degrees is the one that FedPCD is there for
    _, seen = first_round(FedPCD(tau=0.25, eps=0.0), angles(10, 45, 155))
    assert seen["against_rest"] == (2,)


def test_flags_are_about_this_rounds_clients_only():
    rule = FedPCD()
    state = rule.aggregate(rule.init(spec()), make_cohort([[1.0, 0.0]], client_ids=[7])).state
    seen = rule.aggregate(state, make_cohort(HONEST[:3], round=1)).diagnostics
    assert list(seen["relative_lengths"]) == list(seen["cosines_to_rest"]) == [0, 1, 2]
