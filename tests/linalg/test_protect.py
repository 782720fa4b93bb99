from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from fedaccord.linalg import (
    feasibility_margin,
    project_onto_halfspaces,
    project_with_protection,
    protectable,
)

from ._inputs import gram_of, matrices, rows, tensor

SEEDS = st.integers(0, 2**31)


def _protected_by_linear_programs(matrix: np.ndarray) -> list[bool]:
    """One linear program per row: the most progress along it, of bounded steps without loss."""
    result = []
    for row in matrix:
        best = scipy.optimize.linprog(
            -row, A_ub=-matrix, b_ub=np.zeros(len(matrix)), bounds=[(-1, 1)] * len(row)
        )
        result.append(bool(-best.fun > 1e-6))
    return result


def _cone(seed: int, *, inside: int, outside: int, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows with a known protectable set, in random order, and its mask.

    The rows outside live in a subspace and sum to zero with positive weights; those inside have a
    part of any size in that subspace and a part of positive progress along one more direction.
    """
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.standard_normal((dim, dim)))[0]
    half = dim // 2
    cancel = rng.standard_normal((outside - 1, half))
    cancel = np.vstack([cancel, -rng.uniform(0.5, 2, outside - 1) @ cancel])
    gain = rng.standard_normal((inside, dim - half))
    gain[:, 0] = np.abs(gain[:, 0]) + 0.5
    matrix = np.vstack(
        [
            np.hstack([cancel, np.zeros((outside, dim - half))]),
            np.hstack([rng.standard_normal((inside, half)), gain]),
        ]
    )
    mask = np.arange(len(matrix)) >= outside
    order = rng.permutation(len(matrix))
    lengths = 10.0 ** rng.uniform(-2, 2, (len(matrix), 1))
    return (matrix @ basis * lengths)[order], mask[order]


def _project(matrix, start, margins):
    answer = project_with_protection(gram_of(matrix), tensor(matrix @ start), tensor(margins))
    return start + answer.coefficients.numpy() @ matrix, answer


def test_the_infeasible_example_protects_the_client_without_opponent():
    # issue: rows (1, 0), (0, 1), (0, -2), average (0.6, -0.2); scaled to its length (.632456, 0)
    matrix = np.array([[1.0, 0], [0, 1], [0, -2]])
    average = np.array([0.6, -0.2])
    point, answer = _project(matrix, average, 0.2 * np.array([1.0, 1, 4]))
    assert answer.protected.tolist() == [True, False, False]
    assert not answer.stalled
    step = point * np.linalg.norm(average) / np.linalg.norm(point)
    np.testing.assert_allclose(step, [0.632456, 0.0], atol=1e-6)


@pytest.mark.parametrize(
    ("matrix", "expected"),
    [
        ([[1, 0], [0, 1]], [True, True]),
        ([[1, 0], [-1, 0]], [False, False]),
        ([[1, 0], [-1, 0], [0, 1]], [False, False, True]),
        # (1, 1) gains along (0, 1), which costs the opposite pair nothing
        ([[1, 0], [-1, 0], [1, 1]], [False, False, True]),
        ([[1, 0], [0, 1], [-1, -1]], [False, False, False]),
        ([[1, 0, 0], [0, 1, 0], [-1, -1, 0], [1, 1, 1]], [False, False, False, True]),
        ([[0, 0], [1, 0]], [False, True]),
        ([[0, 0]], [False]),
        # the pair cancels; the fourth and fifth cancel only together with it: (-1, 1) + (1, -1)
        ([[1, 0], [-1, 0], [-1, 1], [1, -1]], [False, False, False, False]),
    ],
)
def test_protectable_in_the_plane_and_in_space(matrix, expected):
    assert protectable(gram_of(np.array(matrix, dtype=float))).tolist() == expected


@given(SEEDS, st.integers(1, 6), st.integers(2, 6), st.sampled_from([4, 7, 20]))
def test_the_protectable_rows_of_a_constructed_cone_are_found(seed, inside, outside, dim):
    matrix, mask = _cone(seed, inside=inside, outside=outside, dim=dim)
    assert protectable(gram_of(matrix)).tolist() == mask.tolist()


@given(matrices(most_rows=8, kinds=("gaussian", "clustered", "duplicates", "integers")))
def test_one_linear_program_per_row_agrees(matrix):
    assert protectable(gram_of(matrix)).tolist() == _protected_by_linear_programs(matrix)


@given(matrices(kinds=("gaussian", "clustered", "low rank", "duplicates", "unequal lengths")))
def test_everyone_is_protectable_exactly_if_there_is_a_margin(matrix):
    everyone = bool(protectable(gram_of(matrix)).all())
    assert everyone == (feasibility_margin(gram_of(matrix)) > 1e-7)


@given(SEEDS, st.integers(1, 5), st.integers(2, 5), st.sampled_from([0.0, 0.02, 0.3]))
def test_the_answer_satisfies_the_optimality_conditions(seed, inside, outside, tau):
    matrix, mask = _cone(seed, inside=inside, outside=outside, dim=8)
    rng = np.random.default_rng(seed)
    start = rng.standard_normal(8)
    lengths = np.linalg.norm(matrix, axis=1)
    unit, margins = matrix / lengths[:, None], tau * lengths**2
    point, answer = _project(matrix, start, margins)
    assert answer.protected.tolist() == mask.tolist()
    tolerance = 1e-8 * max(1.0, np.linalg.norm(point))
    progress = unit @ point
    assert np.abs(progress[~mask]).max() <= tolerance
    assert (progress - margins / lengths)[mask].min() >= -tolerance
    coefficients = answer.coefficients.numpy()
    assert (coefficients[mask] >= 0).all()
    active = answer.active.numpy()
    assert active.tolist() == (mask & (coefficients > 0)).tolist()
    assert np.abs((progress - margins / lengths)[active]).max(initial=0) <= tolerance


@given(SEEDS)
def test_a_solver_on_the_vectors_with_equations_finds_the_same_point(seed):
    matrix, mask = _cone(seed, inside=3, outside=3, dim=6)
    matrix = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    start = np.random.default_rng(seed).standard_normal(6)
    point, _ = _project(matrix, start, np.full(6, 0.1))
    other = scipy.optimize.minimize(
        lambda d: 0.5 * (d - start) @ (d - start),
        np.zeros(6),
        jac=lambda d: d - start,
        method="SLSQP",
        constraints=[
            {
                "type": "ineq",
                "fun": lambda d: matrix[mask] @ d - 0.1,
                "jac": lambda _: matrix[mask],
            },
            # two of the three are enough: the third is a combination of them
            {
                "type": "eq",
                "fun": lambda d: matrix[~mask][:2] @ d,
                "jac": lambda _: matrix[~mask][:2],
            },
        ],
        options={"ftol": 1e-15, "maxiter": 500},
    )
    assume(other.success)  # its line search gives up on a few programs in a thousand
    np.testing.assert_allclose(point, other.x, atol=1e-5 * max(1.0, np.abs(point).max()))


@given(matrices(kinds=("clustered",)), SEEDS)
def test_a_feasible_program_is_answered_as_without_protection(matrix, seed):
    matrix[:, 0] = np.abs(matrix[:, 0]) + 1.0
    start = np.random.default_rng(seed).standard_normal(matrix.shape[1])
    gram, products = gram_of(matrix), tensor(matrix @ start)
    margins = 0.1 * torch.diagonal(gram)
    plain = project_onto_halfspaces(gram, products, margins)
    answer = project_with_protection(gram, products, margins)
    assert answer.protected.all()
    np.testing.assert_allclose(
        answer.coefficients @ tensor(matrix), plain.multipliers @ tensor(matrix), atol=1e-7
    )


def test_with_nobody_to_protect_the_step_is_stalled_and_zero():
    # (1, 0), (0, 1), (-1, -1) surround the origin and span the plane
    matrix = np.array([[1.0, 0], [0, 1], [-1, -1]])
    point, answer = _project(matrix, np.array([0.3, 0.1]), 0.1 * np.array([1.0, 1, 2]))
    assert answer.stalled
    assert not answer.protected.any()
    np.testing.assert_allclose(point, [0, 0], atol=1e-15)


def test_with_nobody_to_protect_the_part_of_the_start_outside_the_span_stays():
    matrix = np.array([[1.0, 0, 0], [-2, 0, 0]])
    point, answer = _project(matrix, np.array([0.3, 0.1, -4.0]), np.zeros(2))
    assert answer.stalled
    np.testing.assert_allclose(point, [0, 0.1, -4.0], atol=1e-15)


def test_many_more_clients_than_dimensions_stall():
    # Wendel 1962: 70 random rows in 10 dimensions surround the origin but for a chance below 1e-8
    matrix = rows("gaussian", n=70, dim=10, seed=0)
    point, answer = _project(matrix, matrix.mean(axis=0), 0.02 * (matrix**2).sum(axis=1))
    assert answer.stalled
    np.testing.assert_allclose(point, np.zeros(10), atol=1e-12)


def test_one_exactly_opposite_client_can_veto_another():
    matrix = rows("clustered", n=10, dim=40, seed=1)
    opposed = np.vstack([matrix, -matrix[3:4]])
    answer = _project(opposed, matrix.mean(axis=0), 0.02 * (opposed**2).sum(axis=1))[1]
    assert torch.nonzero(~answer.protected).flatten().tolist() == [3, 10]


def test_zero_rows_are_neither_protected_nor_harmful():
    matrix = np.array([[1.0, 0], [0, 0], [0, 1]])
    point, answer = _project(matrix, np.array([-1.0, 2.0]), np.array([0.5, 0, 0.5]))
    assert answer.protected.tolist() == [True, False, True]
    assert float(answer.coefficients[1]) == 0.0
    np.testing.assert_allclose(point, [0.5, 2.0], atol=1e-14)


def test_only_zero_rows_leave_the_start_as_it_is():
    matrix = np.zeros((2, 3))
    point, answer = _project(matrix, np.array([1.0, 2, 3]), np.zeros(2))
    assert answer.stalled
    assert point.tolist() == [1.0, 2.0, 3.0]


def test_the_lengths_of_rows_do_not_decide_who_is_protected():
    matrix, mask = _cone(5, inside=4, outside=3, dim=6)
    factors = 10.0 ** np.linspace(-6, 6, len(matrix))[:, None]
    assert protectable(gram_of(matrix * factors)).tolist() == mask.tolist()


@pytest.mark.parametrize("n", [70, pytest.param(300, marks=pytest.mark.slow)])
def test_a_large_constructed_cone_is_sorted_out(n):
    matrix, mask = _cone(0, inside=n - 20, outside=20, dim=2 * n)
    assert protectable(gram_of(matrix)).tolist() == mask.tolist()


@pytest.mark.parametrize("seed", range(8))
def test_rows_that_cancel_only_up_to_float32_rounding_do_not_drag_others_along(seed):
    # exact arithmetic on the rounded rows would find that hardly anyone can be protected
    matrix, mask = _cone(seed, inside=10, outside=9, dim=8)
    rounded = matrix.astype(np.float32).astype(np.float64)
    start = np.random.default_rng(seed).standard_normal(8)
    lengths = np.linalg.norm(rounded, axis=1)
    point, answer = _project(rounded, start, 0.02 * lengths**2)
    assert answer.protected[mask].all()
    size = max(np.linalg.norm(point), np.linalg.norm(start))
    progress = rounded @ point / lengths
    protected = answer.protected.numpy()
    assert (progress - 0.02 * lengths)[protected].min() >= -1e-6 * size
    assert np.abs(progress[~protected]).max() <= 1e-6 * size
