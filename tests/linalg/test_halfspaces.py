from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pytest
import scipy.optimize
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from fedaccord.errors import SolverError
from fedaccord.linalg import INFEASIBLE_MARGIN, Projection, project_onto_halfspaces
from fedaccord.linalg._nonnegative import solve_nonnegative

from ._inputs import gram_of, matrices, nearest_by_enumeration, rows, tensor

EXAMPLES = json.loads((Path(__file__).parents[1] / "data" / "examples.json").read_text())
FEDPCD = [e for e in EXAMPLES if e["algorithm"] == "fedpcd"]
SEEDS = st.integers(0, 2**31)
TAUS = st.sampled_from([0.0, 1e-6, 0.02, 0.25, 1.0])


def _project(matrix, start, margins, guess=None) -> tuple[np.ndarray, Projection]:
    answer = project_onto_halfspaces(
        gram_of(matrix), tensor(matrix @ start), tensor(margins), start=guess
    )
    return start + answer.multipliers.numpy() @ matrix, answer


def _mean(matrix: np.ndarray, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.ones(len(matrix))) @ matrix


def _margins(matrix: np.ndarray, tau: float | np.ndarray) -> np.ndarray:
    return tau * (matrix**2).sum(axis=1)


def _assert_nearest(matrix, start, margins, point, answer):
    """Check the optimality conditions on the vectors themselves."""
    lengths = np.linalg.norm(matrix, axis=1)
    # Rounding in a Gramian moves the point in proportion to what the multipliers add up to.
    terms = answer.multipliers.numpy() @ lengths
    size = max(np.linalg.norm(start), np.linalg.norm(point))
    slack = (matrix @ point - margins) / np.where(lengths > 0, lengths, 1.0)
    tolerance = 1e-9 * size + 1e-13 * terms
    assert (answer.multipliers >= 0).all()
    assert torch.equal(answer.active, answer.multipliers > 0)
    assert slack.min() >= -tolerance
    assert np.abs(slack[answer.active.numpy()]).max(initial=0.0) <= tolerance
    assert answer.kkt_residual <= 1e-10


@pytest.mark.parametrize("example", FEDPCD, ids=[e["name"] for e in FEDPCD])
def test_worked_example(example):
    given_, expected, eps = example["inputs"], example["expected"], example["inputs"]["eps"]
    matrix = np.array(given_["pseudo_gradients"] + given_["history"])
    start = np.array(given_["weights"]) @ np.array(given_["pseudo_gradients"])
    if given_.get("normalize", True):
        matrix = matrix / (np.linalg.norm(matrix, axis=1, keepdims=True) + eps)
        start = start / (np.linalg.norm(start) + eps) if start.any() else start
    if not given_.get("primary", True):
        start = np.zeros_like(start)
    point, answer = _project(matrix, start, _margins(matrix, given_["tau"]))
    assert answer.feasible == expected["feasible"]
    assert torch.nonzero(answer.active).flatten().tolist() == expected["active"]
    np.testing.assert_allclose(answer.multipliers, expected["mu"], atol=example["tolerance"])
    np.testing.assert_allclose(point, expected["d_tilde"], atol=example["tolerance"])


@given(matrices(), TAUS, SEEDS)
def test_the_optimality_conditions_hold(matrix, tau, seed):
    start = _mean(matrix, seed)
    margins = _margins(matrix, tau)
    point, answer = _project(matrix, start, margins)
    if answer.feasible:
        _assert_nearest(matrix, start, margins, point, answer)


@given(matrices(), SEEDS)
def test_one_tau_per_client_some_of_them_zero(matrix, seed):
    rng = np.random.default_rng(seed)
    tau = rng.uniform(0, 0.5, len(matrix)) * (rng.random(len(matrix)) < 0.5)
    start, margins = _mean(matrix, seed), _margins(matrix, tau)
    point, answer = _project(matrix, start, margins)
    if answer.feasible:
        _assert_nearest(matrix, start, margins, point, answer)


@given(
    matrices(most_rows=7, kinds=("gaussian", "clustered", "duplicates", "integers", "low rank")),
    st.sampled_from([0.0, 0.02, 0.25]),
    SEEDS,
)
def test_trying_every_active_set_finds_the_same_point(matrix, tau, seed):
    start, margins = _mean(matrix, seed), _margins(matrix, tau)
    point, answer = _project(matrix, start, margins)
    assume(not answer.feasible or math.isnan(answer.margin) or answer.margin > 1e-3)
    expected = nearest_by_enumeration(matrix, start, margins)
    assert answer.feasible == (expected is not None)
    if expected is not None:
        np.testing.assert_allclose(point, expected, atol=1e-6 * max(1.0, np.abs(point).max()))


@given(matrices(most_rows=8, kinds=("clustered", "gaussian")), SEEDS)
def test_sequential_quadratic_programming_on_the_vectors_finds_the_same_point(matrix, seed):
    start, margins = _mean(matrix, seed), _margins(matrix, 0.1)
    point, answer = _project(matrix, start, margins)
    assume(answer.feasible and (math.isnan(answer.margin) or answer.margin > 0.05))
    other = scipy.optimize.minimize(
        lambda d: 0.5 * (d - start) @ (d - start),
        point + 0.01,
        jac=lambda d: d - start,
        method="SLSQP",
        constraints={
            "type": "ineq",
            "fun": lambda d: matrix @ d - margins,
            "jac": lambda _: matrix,
        },
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assume(other.success)
    np.testing.assert_allclose(point, other.x, atol=1e-5)


@given(matrices(), TAUS, SEEDS)
def test_the_order_of_clients_does_not_matter(matrix, tau, seed):
    start, margins = _mean(matrix, seed), _margins(matrix, tau)
    order = np.random.default_rng(seed).permutation(len(matrix))
    point, answer = _project(matrix, start, margins)
    other, permuted = _project(matrix[order], start, margins[order])
    assume(math.isnan(answer.margin) or answer.margin > 1e-5 or not answer.feasible)
    assert answer.feasible == permuted.feasible
    np.testing.assert_allclose(point, other, atol=1e-7 * max(1.0, np.abs(point).max()))


@given(matrices(kinds=("gaussian", "clustered", "zeros")), SEEDS)
def test_a_copy_of_a_client_does_not_matter(matrix, seed):
    start, margins = _mean(matrix, seed), _margins(matrix, 0.1)
    point, answer = _project(matrix, start, margins)
    copied, _ = _project(
        np.vstack([matrix, matrix[:2]]), start, np.concatenate([margins, margins[:2]])
    )
    assume(math.isnan(answer.margin) or answer.margin > 1e-4 or not answer.feasible)
    np.testing.assert_allclose(copied, point, atol=1e-7 * max(1.0, np.abs(point).max()))


@given(matrices(kinds=("gaussian", "clustered")), SEEDS)
def test_the_length_of_a_row_does_not_matter_if_its_margin_follows(matrix, seed):
    factors = 10.0 ** np.random.default_rng(seed).uniform(-4, 4, len(matrix))
    start = _mean(matrix, seed)
    lengths = np.linalg.norm(matrix, axis=1)
    point, answer = _project(matrix, start, 0.1 * lengths)
    scaled, other = _project(matrix * factors[:, None], start, 0.1 * lengths * factors)
    assume(math.isnan(answer.margin) or answer.margin > 1e-4)
    np.testing.assert_allclose(scaled, point, atol=1e-7 * max(1.0, np.abs(point).max()))
    np.testing.assert_allclose(
        other.multipliers.numpy() * factors,
        answer.multipliers,
        atol=1e-6 * max(1.0, np.abs(point).max()),
    )


@given(matrices(most_rows=4, kinds=("clustered",)), SEEDS)
def test_a_small_tau_comes_near_to_tau_zero(matrix, seed):
    # the projection onto {A d >= m} is Lipschitz in m (Hoffman); d(tau) - d(0) = O(tau)
    start = _mean(matrix, seed)
    limit, _ = _project(matrix, start, _margins(matrix, 0.0))
    near, answer = _project(matrix, start, _margins(matrix, 1e-9))
    assume(answer.feasible and (math.isnan(answer.margin) or answer.margin > 1e-2))
    np.testing.assert_allclose(near, limit, atol=1e-5)


def test_a_start_that_satisfies_everything_is_left_alone():
    matrix = np.array([[1.0, 0.2], [1.0, -0.1]])
    point, answer = _project(matrix, np.array([1.0, 0.05]), _margins(matrix, 0.1))
    assert point.tolist() == [1.0, 0.05]
    assert (answer.method, answer.fallbacks, answer.kkt_residual) == ("none", 0, 0.0)
    assert answer.feasible
    assert math.isnan(answer.margin)
    assert torch.equal(answer.multipliers, torch.zeros(2).double())


def test_one_client_gets_the_closed_form():
    # d = a_0 + (m - a'a_0) / |a|^2 a, moved by (0.5 - (-2)) / 4
    _, answer = _project(np.array([[2.0, 0.0]]), np.array([-1.0, 3.0]), np.array([0.5]))
    assert answer.multipliers.tolist() == [0.625]
    assert answer.margin == 1.0


def test_opposite_clients_with_a_margin_are_infeasible():
    matrix = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]])
    point, answer = _project(matrix, np.array([0.1, 0.2]), _margins(matrix, 0.02))
    assert not answer.feasible
    assert answer.margin <= INFEASIBLE_MARGIN
    assert point.tolist() == [0.1, 0.2]
    assert not answer.active.any()


def test_three_clients_at_120_degrees_are_infeasible():
    angles = np.radians([0, 120, 240])
    matrix = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    assert not _project(matrix, np.array([0.1, 0.2]), _margins(matrix, 0.02))[1].feasible


def test_nearly_opposite_clients_are_feasible():
    # closed form: both act, d = tau (0, 1) / sin(angle / 2) rotated into their bisector
    angle = 1e-5
    matrix = np.array([[1.0, 0.0], [-math.cos(angle), math.sin(angle)]])
    point, answer = _project(matrix, np.zeros(2), np.full(2, 0.02))
    assert answer.feasible
    assert answer.margin == pytest.approx(angle / 2, rel=1e-4)
    assert np.linalg.norm(point) == pytest.approx(0.02 / math.sin(angle / 2), rel=1e-4)


def test_margins_of_zero_are_always_feasible():
    matrix = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]])
    point, answer = _project(matrix, np.array([0.3, -0.4]), np.zeros(3))
    assert answer.feasible
    assert answer.margin == math.inf
    np.testing.assert_allclose(point, [0, 0], atol=1e-15)


def test_opposite_clients_are_feasible_if_nothing_is_required_of_them():
    matrix = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]])
    point, answer = _project(matrix, np.array([0.3, -0.4]), np.array([0.0, 0.0, 0.5]))
    assert answer.feasible
    assert answer.margin == pytest.approx(1.0)
    np.testing.assert_allclose(point, [0, 0.5], atol=1e-14)


def test_a_zero_row_changes_nothing():
    matrix = np.array([[1.0, 0.0], [-1.0, 2.0]])
    start = np.array([0.0, 0.6])
    point, answer = _project(matrix, start, _margins(matrix, 0.5))
    padded, other = _project(
        np.insert(matrix, 1, 0.0, axis=0), start, np.insert(_margins(matrix, 0.5), 1, 0.0)
    )
    assert np.array_equal(point, padded)
    assert float(other.multipliers[1]) == 0.0
    assert other.margin == answer.margin


def test_a_positive_margin_on_a_zero_row_is_rejected():
    with pytest.raises(ValueError, match="row of length zero.*at position 1"):
        project_onto_halfspaces(tensor(np.diag([1.0, 0.0])), tensor([0, 0]), tensor([0.1, 0.1]))


def test_a_negative_margin_is_rejected():
    with pytest.raises(ValueError, match="at least 0"):
        project_onto_halfspaces(tensor([[1.0]]), tensor([0]), tensor([-0.1]))


@pytest.mark.parametrize("name", ["products", "margins", "start"])
def test_vectors_of_the_wrong_length_are_rejected(name):
    arguments = {"products": tensor([-1.0, 0]), "margins": tensor([0, 0.0]), "start": None}
    arguments[name] = tensor([0.0, 0.0, 0.0])
    with pytest.raises(ValueError, match=f"`{name}` must have one entry per row"):
        project_onto_halfspaces(tensor(np.eye(2)), **arguments)


def test_nothing_to_project_onto_is_an_answer():
    empty = torch.zeros(0, dtype=torch.float64)
    answer = project_onto_halfspaces(torch.zeros(0, 0), empty, empty)
    assert answer.feasible
    assert answer.multipliers.shape == (0,)


def test_the_projection_is_frozen():
    answer = project_onto_halfspaces(tensor([[1.0]]), tensor([1.0]), tensor([0.0]))
    with pytest.raises(dataclasses.FrozenInstanceError):
        answer.method = "other"


@given(matrices(kinds=("clustered", "gaussian", "duplicates")), SEEDS)
def test_a_warm_start_finds_the_same_point(matrix, seed):
    rng = np.random.default_rng(seed)
    start, margins = _mean(matrix, seed), _margins(matrix, 0.1)
    point, answer = _project(matrix, start, margins)
    assume(answer.feasible and (math.isnan(answer.margin) or answer.margin > 1e-4))
    for guess in (answer.multipliers, tensor(rng.uniform(0, 1, len(matrix)))):
        again, _ = _project(matrix, start, margins, guess)
        np.testing.assert_allclose(again, point, atol=1e-7 * max(1.0, np.abs(point).max()))


@pytest.mark.parametrize("kind", ["clustered", "low rank", "duplicates"])
@pytest.mark.parametrize("n", [70, 200, pytest.param(1000, marks=pytest.mark.slow)])
def test_large_programs_are_proven(n, kind):
    matrix = rows(kind, n=n, dim=3 * n, seed=n)
    # a common direction for certain: every row gains along the first axis
    matrix[:, 0] = np.abs(matrix[:, 0]) + 1.0
    start = -matrix[: n // 7].mean(axis=0)  # many rows fall short
    margins = _margins(matrix, 0.02)
    point, answer = _project(matrix, start, margins)
    assert answer.feasible
    assert answer.active.any()
    assert answer.fallbacks == 0
    _assert_nearest(matrix, start, margins, point, answer)


@pytest.mark.parametrize("n", [70, 200])
def test_repetition_gives_the_same_bytes(n):
    matrix = rows("clustered", n=n, dim=50, seed=0)
    first, second = (_project(matrix, -matrix[0], _margins(matrix, 0.0))[1] for _ in range(2))
    assert torch.equal(first.multipliers, second.multipliers)


def test_an_answer_that_cannot_be_proven_is_an_error_that_lists_the_methods():
    # a proof that never succeeds
    with pytest.raises(
        SolverError, match="daqp: residual 1; pivoting: residual 1; nnls: residual 1"
    ):
        solve_nonnegative(np.eye(2), np.ones(2), lambda _: 1.0)


@pytest.mark.parametrize("failures", [1, 2])
def test_a_method_given_up_is_counted(failures):
    # x = b exactly; the proof refuses the first answers (each is looked at before and after polish)
    refusals = iter([1.0] * (2 * failures))
    answer = solve_nonnegative(np.eye(2), np.ones(2), lambda _: next(refusals, 0.0))
    assert answer.fallbacks == failures
    assert answer.method == ("daqp", "pivoting", "nnls")[failures]
    np.testing.assert_allclose(answer.x, np.ones(2), rtol=1e-12)


@pytest.mark.parametrize("method", ["daqp", "pivoting", "nnls"])
@given(matrices(most_rows=8, kinds=("clustered", "gaussian")), SEEDS)
def test_each_method_alone_solves_ordinary_programs(method, matrix, seed):
    # non-negative least squares on the vectors, min |A'x - t|, is the same program
    from fedaccord.linalg import _methods

    matrix = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    target = np.random.default_rng(seed).standard_normal(matrix.shape[1])
    target /= np.abs(matrix @ target).max()
    solve = {
        "daqp": _methods.by_daqp,
        "pivoting": _methods.by_pivoting,
        "nnls": _methods.by_least_squares,
    }[method]
    gram = matrix @ matrix.T
    assume(np.linalg.eigvalsh(gram)[0] > 1e-6)
    x = solve(gram, matrix @ target, None)
    expected = scipy.optimize.nnls(matrix.T, target)[0]
    np.testing.assert_allclose(x @ matrix, expected @ matrix, atol=1e-7)
