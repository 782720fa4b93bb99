"""PCD as an aggregator of TorchJD: its equations, its zero cases, and TorchJD's own PCD."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from torch import Tensor

from fedaccord import NonFiniteError

aggregation = pytest.importorskip("torchjd.aggregation")
autojac = pytest.importorskip("torchjd.autojac")
torchjd = pytest.importorskip("fedaccord.torchjd")
PCD, PCDWeighting = torchjd.PCD, torchjd.PCDWeighting


def angles(*degrees: float) -> Tensor:
    radians = torch.tensor(degrees, dtype=torch.float64).deg2rad()
    return torch.stack([radians.cos(), radians.sin()], dim=1)


def random_rows(seed: int) -> tuple[Tensor, float]:
    """Between 1 and 8 losses of very different scales in 1 to 11 dimensions, some conflicting."""
    rng = torch.Generator().manual_seed(seed)
    m, dim = (int(torch.randint(1, high, (), generator=rng)) for high in (9, 12))
    rows = torch.randn(m, dim, generator=rng, dtype=torch.float64)
    rows *= torch.logspace(-2, 2, m, dtype=torch.float64)[:, None]
    if seed % 5 == 0:
        rows[1:] -= 2 * rows[:1]
    return rows, (0.0, 0.02, 0.3, 1.0)[seed % 4]


def kkt_residual(rows: Tensor, weights: Tensor, tau: float) -> float:
    """How far weights are from the optimality conditions of a first call, relative to unit rows.

    On a first call every scale is one over the row's length (``eps=0``), so the weights are those
    of unit rows times one over the length, all times one factor.
    """
    lengths = rows.norm(dim=1)
    unit, multipliers = rows / lengths[:, None], weights * lengths
    multipliers = multipliers / multipliers[0]  # the target keeps coefficient one
    direction = multipliers @ unit
    slack = unit[1:] @ direction - tau
    size = float(multipliers.abs().max())  # rounding of a sum is in units of its terms
    negative = float(-multipliers.min())
    violated = float(-slack.min())
    complementary = float((multipliers[1:] * slack).abs().max()) / size
    return max(negative, violated, complementary) / size


# the equations


def test_the_projection_in_two_dimensions():
    # primary at 0, secondary at 135 degrees, both of length one: tau = .1 asks for progress .1, the
    # primary has cos(135) = -.707, so d = g_0 + .807 g_1 = (1 - .571, .571), at length one
    step = PCD(0.1, eps=0.0)(angles(0, 135))
    mu = 0.1 + math.sqrt(0.5)
    wanted = torch.tensor([1 - mu * math.sqrt(0.5), mu * math.sqrt(0.5)], dtype=torch.float64)
    torch.testing.assert_close(step, wanted / wanted.norm())


def test_the_length_is_the_raw_primarys():
    rows = angles(0, 135) * torch.tensor([[7.0], [0.01]])
    for _ in range(3):
        assert PCD()(rows).norm() == pytest.approx(7)


def test_a_general_solver_finds_the_same_directions():
    compared = 0
    for seed in range(40):
        rows, tau = random_rows(seed)
        pcd = PCD(tau, eps=0.0)
        step = pcd(rows)
        unit = (rows / rows.norm(dim=1, keepdim=True)).numpy()
        found = minimize(
            lambda d, unit=unit: 0.5 * np.sum((d - unit[0]) ** 2),
            unit[0],
            jac=lambda d, unit=unit: d - unit[0],
            method="SLSQP",
            constraints={
                "type": "ineq",
                "fun": lambda d, unit=unit, tau=tau: unit[1:] @ d - tau,
                "jac": lambda _, unit=unit: unit[1:],
            },
            options={"ftol": 1e-14, "maxiter": 500},
        )
        size = np.linalg.norm(found.x)
        if pcd.outcome == "projected" and found.success and size > 1e-3:
            compared += 1
            direction = torch.from_numpy(found.x / size)
            torch.testing.assert_close(step / step.norm(), direction, rtol=0, atol=1e-5)
    assert compared >= 15


def test_the_scales_are_bias_corrected_running_means():
    # lengths 1, then 3 for the secondary with beta = .5: v = .5, then .25 + 4.5; corrected by
    # 1 - .25: 4.75 / .75. The scaled row has length 3 / sqrt(4.75 / .75) and asks for tau times its
    # square.
    pcd = PCD(0.2, beta=0.5, eps=0.0)
    pcd(angles(0, 135))
    step = pcd(angles(0, 135) * torch.tensor([[1.0], [3.0]]))
    length = 3 / math.sqrt(4.75 / 0.75)
    row = length * angles(135)[0]
    primary = angles(0)[0]  # its scale is one
    mu = (0.2 * length**2 - float(row @ primary)) / length**2
    wanted = primary + mu * row
    torch.testing.assert_close(step, wanted / wanted.norm())


def test_each_secondary_loss_may_have_its_own_share():
    rows = torch.tensor([[1.0, 0.0, 0.0], [-0.3, 1.0, 0.0], [-0.3, 0.0, 1.0]]).double()
    unit = rows / rows.norm(dim=1, keepdim=True)
    # both fall short of 0 and .5, and both multipliers of the equations below are positive
    gaps = torch.tensor([0.0, 0.5]).double() - unit[1:] @ unit[0]
    mu = torch.linalg.solve(unit[1:] @ unit[1:].T, gaps)
    assert (mu > 0).all()
    wanted = unit[0] + mu @ unit[1:]
    torch.testing.assert_close(PCD((0.0, 0.5), eps=0.0)(rows), wanted / wanted.norm())


def test_a_secondary_loss_counts_by_direction_alone():
    rows = angles(0, 135, 100)
    scaled = rows * torch.tensor([[1.0], [1e6], [1e-6]])
    torch.testing.assert_close(PCD(0.1, eps=0.0)(rows), PCD(0.1, eps=0.0)(scaled))


# the cases without a projection


def test_the_primary_gradient_comes_back_bit_for_bit_when_nobody_falls_short():
    rows = torch.randn(3, 50, generator=torch.Generator().manual_seed(0)) + 1
    pcd = PCD()
    assert torch.equal(pcd(rows), rows[0])
    assert pcd.outcome == "primary"


def test_one_loss_is_gradient_descent():
    assert torch.equal(PCD(1.0)(torch.tensor([[3.0, -4.0]])), torch.tensor([3.0, -4.0]))


def test_no_primary_gradient_is_no_step():
    pcd = PCD()
    assert not pcd(torch.tensor([[0.0, 0.0], [1.0, 0.0]])).any()
    assert pcd.outcome == "no-primary"


def test_no_primary_gradient_moves_the_running_means_all_the_same():
    # beta = .5: the secondary's v is .5 * 4 = 2, then 1 + .5 * 1 = 1.5; corrected 1.5 / .75 = 2
    pcd = PCD(0.5, beta=0.5, eps=0.0)
    pcd(torch.tensor([[0.0, 0.0], [-2.0, 0.0]]).double())
    rows = torch.tensor([[0.6, 0.8], [-1.0, 0.0]]).double()
    step = pcd(rows)
    primary = rows[0] / math.sqrt(0.5 / 0.75)
    row = rows[1] / math.sqrt(2)
    mu = (0.5 * 0.5 - float(row @ primary)) / 0.5
    wanted = primary + mu * row
    torch.testing.assert_close(step, wanted / wanted.norm())


def test_opposite_secondary_losses_give_the_primary_gradient():
    rows = torch.tensor([[1.0, 0.5], [1.0, -1.0], [-2.0, 2.0]])
    pcd = PCD()
    assert torch.equal(pcd(rows), rows[0])
    assert pcd.outcome == "infeasible"


def test_tau_zero_between_opposite_losses_collapses_to_no_step():
    pcd = PCD(0.0)
    assert not pcd(torch.tensor([[1.0, 0.0], [-3.0, 0.0]])).any()
    assert pcd.outcome == "collapsed"


def test_a_zero_secondary_gradient_asks_for_nothing():
    rows = torch.tensor([[1.0, 0.0], [0.0, 0.0], [-1.0, 1.0]], dtype=torch.float64)
    torch.testing.assert_close(PCD(0.3)(rows), PCD(0.3)(rows[[0, 2]]))


# TorchJD's own


@pytest.mark.parametrize("start", range(0, 300, 50))
def test_it_agrees_with_torchjd_over_three_calls_on_random_rows(start: int):
    for seed in range(start, start + 50):
        rows, tau = random_rows(seed)
        ours, theirs = PCD(tau), aggregation.PCD(tau)
        for call in range(3):
            now = rows.roll(call, dims=1) * (1 + call)
            a, b = ours(now), theirs(now)
            # theirs stops at a violation of 1e-9
            torch.testing.assert_close(a, b, rtol=0, atol=2e-9 * float(now[0].norm()))


@pytest.mark.parametrize("width", [1e-5, 1e-6, 3e-7])
def test_between_nearly_opposite_losses_ours_is_optimal_and_torchjds_gives_up(width: float):
    # two secondary rows that share only the small first coordinate; feasible, margin about `width`
    rows = torch.tensor(
        [[-1.0, 0.2, 1.0], [width, 1.0, 0.0], [width, -1.0, 0.0]], dtype=torch.float64
    )
    gram = rows @ rows.T
    ours = PCDWeighting(0.02, eps=0.0)(gram)
    theirs = aggregation.PCDWeighting(0.02, eps=0.0)(gram)
    assert kkt_residual(rows, ours, 0.02) < 1e-9
    assert theirs.tolist() == [1, 0, 0]  # dropped all constraints, although they can be kept
    assert kkt_residual(rows, theirs, 0.02) > 0.1


def test_the_length_is_exact_between_nearly_opposite_losses_too():
    # where inner products alone know it to four digits only
    rows = torch.tensor([[-1.0, 0.2, 1.0], [1e-6, 1.0, 0.0], [1e-6, -1.0, 0.0]]).double()
    assert PCD()(rows).norm() == pytest.approx(rows[0].norm().item(), rel=1e-12)


def test_float32_gradients_lose_fewer_digits_than_in_torchjd():
    rng = torch.Generator().manual_seed(0)
    base = torch.randn(1, 20_000, generator=rng)
    signs = torch.tensor([[-1.0], [1.0], [1.0]])
    rows = signs * base + 1e-3 * torch.randn(3, 20_000, generator=rng)
    exact = aggregation.PCD(0.1)(rows.double())
    ours, theirs = (
        float((pcd(rows) - exact).norm() / exact.norm()) for pcd in (PCD(0.1), aggregation.PCD(0.1))
    )
    assert ours < 1e-7  # one rounding of the answer
    assert theirs > 1e-4


def test_the_optimality_conditions_hold():
    projected = 0
    for seed in range(200):
        rows, tau = random_rows(seed)
        weighting = PCDWeighting(tau, eps=0.0)
        weights = weighting(rows @ rows.T)
        if weighting.outcome == "projected":
            projected += 1
            assert kkt_residual(rows, weights, tau) < 1e-9
    assert projected >= 80


# in a training loop


@pytest.mark.parametrize("from_gramians", [False, True])
def test_it_trains_with_autojac(from_gramians: bool):
    w = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    losses = [((w - torch.tensor(goal)) ** 2).sum() for goal in ((0.0, 0.0), (1.0, 5.0))]
    autojac.backward(losses)
    pcd = PCD(0.1, eps=0.0)
    weights = autojac.jac_to_grad([w], pcd, optimize_gramian_computation=from_gramians)
    # gradients (2, 4) and (0, -6): the second, of unit row (0, -1), asks for progress .1
    primary, secondary = torch.tensor([[2.0, 4.0], [0.0, -1.0]]).double()
    primary /= primary.norm()
    wanted = primary + (0.1 + float(primary[1])) * secondary
    torch.testing.assert_close(w.grad, wanted / wanted.norm() * math.sqrt(20))
    torch.testing.assert_close(weights @ torch.tensor([[2.0, 4.0], [0.0, -6.0]]).double(), w.grad)


def test_a_float32_gramian_gives_weights_of_its_precision():
    rows = torch.randn(4, 100, generator=torch.Generator().manual_seed(1))
    rows[1:] -= 0.5 * rows[:1]
    one, other = PCDWeighting(0.1), PCDWeighting(0.1)
    coarse = one(rows @ rows.T)
    exact = other(rows.double() @ rows.double().T)
    assert coarse.dtype == torch.float32
    torch.testing.assert_close(coarse.double(), exact, rtol=0, atol=1e-5)


@pytest.mark.parametrize("start", range(0, 300, 100))
def test_a_rounded_gramian_is_never_too_hard(start: int):
    for seed in range(start, start + 100):
        rows, tau = random_rows(seed)
        rows = rows.float()
        weighting = PCDWeighting(tau)
        assert torch.isfinite(weighting(rows @ rows.T)).all()
        assert weighting.outcome != "unproven"


# its state


def test_the_state_dict_goes_on_where_it_was():
    one, two, rows = PCD(0.3), PCD(0.3), angles(0, 135)
    one(rows)
    two.load_state_dict(one.state_dict())
    grown = rows * torch.tensor([[1.0], [3.0]])
    step = one(grown)
    assert torch.equal(step, two(grown))
    assert not torch.equal(step, PCD(0.3)(grown))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_copy_goes_on_apart(copied):
    one, rows = PCD(0.3), angles(0, 135)
    one(rows)
    two = copied(one)
    two(100 * rows)
    fresh = PCD(0.3)
    fresh(rows)
    grown = rows * torch.tensor([[1.0], [3.0]])
    assert torch.equal(one(grown), fresh(grown))
    assert not torch.equal(two(grown), fresh(grown))


def test_reset_forgets():
    pcd, rows = PCD(0.3), angles(0, 135)
    pcd(rows * torch.tensor([[1.0], [50.0]]))
    pcd.reset()
    assert torch.equal(pcd(rows), PCD(0.3)(rows))


def test_another_number_of_losses_is_refused():
    pcd = PCD()
    pcd(angles(0, 10))
    with pytest.raises(ValueError, match=r"Got 3 rows after 2. Call `reset\(\)`"):
        pcd(angles(0, 10, 20))


@pytest.mark.parametrize("value", [math.nan, math.inf, 1e200])
def test_gradients_that_cannot_be_squared_are_refused_and_leave_the_means_alone(value: float):
    pcd, rows = PCD(0.3), angles(0, 135)
    pcd(rows)
    before = pcd.state_dict()
    with pytest.raises(NonFiniteError, match="Gradients must be finite"):
        pcd(rows * value)
    assert pcd.state_dict() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tau": 1.5}, r"`tau` must be in \[0, 1\]"),
        ({"tau": (0.1, -0.1)}, r"`tau` must be in \[0, 1\]"),
        ({"beta": 1.0}, r"`beta` must be in \[0, 1\)"),
        ({"eps": -1.0}, "`eps` must be at least 0"),
    ],
)
def test_impossible_settings_are_refused(arguments: dict[str, object], message: str):
    with pytest.raises(ValueError, match=message):
        PCD(**arguments)


def test_one_tau_a_loss_needs_one_for_each():
    with pytest.raises(ValueError, match="one for each of 1 secondary losses. Got 2"):
        PCD((0.1, 0.2))(angles(0, 10))


def test_it_prints_its_arguments():
    assert repr(PCD((0.1, 0.2), beta=0.9)) == "PCD(tau=(0.1, 0.2), beta=0.9, eps=1e-08)"
