from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.optimize
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from fedaccord.linalg import min_norm_weights

from ._inputs import gram_of, matrices, rows, tensor

EXAMPLES = json.loads((Path(__file__).parents[1] / "data" / "examples.json").read_text())
SIZES = st.integers(0, 2**31)


def _weights(matrix: np.ndarray, **bounds: object) -> np.ndarray:
    return min_norm_weights(gram_of(matrix), **bounds).numpy()


def _box(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    prior, width = rng.dirichlet(np.ones(n)), rng.choice([0.01, 0.1, 0.5])
    return np.maximum(prior - width, 0), np.minimum(prior + width, 1)


def _assert_optimal(matrix, weights, lower, upper):
    # A linear program over the same weights, by SciPy, bounds what any of them could gain.
    product = matrix @ (weights @ matrix)
    best = scipy.optimize.linprog(
        product,
        A_eq=np.ones((1, len(product))),
        b_eq=[1.0],
        bounds=list(zip(lower, upper, strict=True)),
    ).fun
    scale = weights @ np.abs(matrix @ matrix.T) @ weights
    assert weights @ product - best <= 1e-9 * scale + 1e-18 * np.abs(matrix).max() ** 2
    assert abs(weights.sum() - 1) <= 1e-12
    assert (weights >= lower - 1e-15).all()
    assert (weights <= upper + 1e-15).all()


@pytest.mark.parametrize("name", ["two_tasks_interior", "three_tasks_orthogonal"])
def test_worked_example(name):
    example = next(e for e in EXAMPLES if e.get("name") == name)
    weights = _weights(np.array(example["inputs"]["task_updates"]))
    np.testing.assert_allclose(weights, example["expected"]["weights"], atol=example["tolerance"])


def test_orthogonal_rows_get_weights_inverse_to_their_squared_length():
    # closed form: w_i proportional to 1 / |v_i|^2 = (1, 1/4, 1/9)
    weights = _weights(np.diag([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(weights, np.array([36, 9, 4]) / 49, rtol=1e-13)


def test_a_dominating_row_gets_nothing_exactly():
    # (1, 0) is the shortest point of the segment to (3, 1)
    assert _weights(np.array([[1.0, 0], [3, 1]])).tolist() == [1.0, 0.0]


@given(SIZES)
def test_two_rows_follow_the_closed_form(seed):
    # clip((G22 - G12) / (G11 + G22 - 2 G12), 0, 1), spec 0.4
    matrix = rows("gaussian", n=2, dim=3, seed=seed)
    g = matrix @ matrix.T
    first = np.clip((g[1, 1] - g[0, 1]) / (g[0, 0] + g[1, 1] - 2 * g[0, 1]), 0, 1)
    np.testing.assert_allclose(_weights(matrix), [first, 1 - first], atol=1e-12)


@given(matrices())
def test_no_other_weights_give_a_shorter_combination(matrix):
    n = len(matrix)
    _assert_optimal(matrix, _weights(matrix), np.zeros(n), np.ones(n))


@given(matrices(), SIZES)
def test_no_other_weights_between_the_bounds_give_a_shorter_combination(matrix, seed):
    lower, upper = _box(len(matrix), seed)
    weights = _weights(matrix, lower=tensor(lower), upper=tensor(upper))
    _assert_optimal(matrix, weights, lower, upper)


@given(matrices(), SIZES)
def test_the_order_of_clients_does_not_matter(matrix, seed):
    order = np.random.default_rng(seed).permutation(len(matrix))
    np.testing.assert_allclose(_weights(matrix[order]), _weights(matrix)[order], atol=1e-7)


@given(matrices(), st.sampled_from([1e-20, 1e-3, 1e12]))
def test_the_scale_of_the_gramian_does_not_matter(matrix, factor):
    scaled = min_norm_weights(factor * gram_of(matrix)).numpy()
    np.testing.assert_allclose(scaled, _weights(matrix), atol=1e-7)


@given(matrices(most_rows=6), st.integers(2, 3))
def test_copies_of_a_client_get_equal_weights(matrix, copies):
    weights = _weights(np.repeat(matrix, copies, axis=0)).reshape(len(matrix), copies)
    np.testing.assert_allclose(weights, weights[:, :1].repeat(copies, axis=1), atol=1e-9)


def test_three_identical_updates_share_equally():
    # case C05 (a)
    weights = _weights(np.tile([1.0, 2.0, 3.0], (3, 1)))
    np.testing.assert_allclose(weights, np.ones(3) / 3, rtol=1e-14)


def test_zero_updates_share_equally():
    # case C05 (c)
    np.testing.assert_allclose(_weights(np.zeros((3, 2))), np.ones(3) / 3, rtol=1e-14)


def test_zero_updates_stay_near_uniform_within_bounds():
    # closest to uniform with w_0 >= 0.5: the rest shares the remainder
    weights = _weights(np.zeros((3, 2)), lower=tensor([0.5, 0, 0]))
    np.testing.assert_allclose(weights, [0.5, 0.25, 0.25], rtol=1e-14)


def test_five_updates_in_two_dimensions_are_solved_alike_each_time():
    # case C05 (b)
    gram = gram_of(rows("gaussian", n=5, dim=2, seed=1))
    assert torch.equal(min_norm_weights(gram), min_norm_weights(gram))


def test_opposite_updates_get_half_each():
    # case C06
    assert_close(
        min_norm_weights(gram_of(np.array([[1.0, 0], [-1, 0]]))),
        tensor([0.5, 0.5]),
        rtol=0,
        atol=1e-15,
    )


def test_opposite_updates_and_a_small_third_cancel():
    # case C06; the combination is zero, and of all such weights (1/2, 1/2, 0) is the only one
    weights = _weights(np.array([[1.0, 0], [-1, 0], [0, 0.001]]))
    np.testing.assert_allclose(weights, [0.5, 0.5, 0.0], atol=1e-12)


def test_four_cancelling_updates_get_the_shortest_weights():
    # every (s, t, s, t) / 2 with s + t = 1 cancels; the shortest is uniform
    weights = _weights(np.array([[1.0, 0], [0, 1], [-1, 0], [0, -1]]))
    np.testing.assert_allclose(weights, np.full(4, 0.25), rtol=1e-13)


def test_one_client_gets_everything():
    # case C04
    assert min_norm_weights(tensor([[10.0]])).tolist() == [1.0]


def test_bounds_that_leave_no_choice_are_returned():
    prior = tensor([0.2, 0.3, 0.5])
    weights = min_norm_weights(gram_of(np.eye(3)), lower=prior, upper=prior)
    assert torch.equal(weights, prior)


def test_a_bound_that_acts_is_met_exactly():
    weights = min_norm_weights(gram_of(np.diag([1.0, 2.0, 3.0])), upper=0.4)
    assert float(weights[0]) == 0.4


def test_rows_of_very_different_lengths_follow_the_closed_form():
    # orthogonal rows: w_i proportional to 1 / |v_i|^2, here down to 1e-12
    lengths = np.array([1e-3, 1.0, 1e3])
    expected = lengths**-2 / (lengths**-2).sum()
    np.testing.assert_allclose(_weights(np.diag(lengths)), expected, rtol=1e-10)


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ({"lower": 0.6}, "sum of at most 1"),
        ({"upper": 0.4}, "sum of at least 1"),
        ({"lower": 0.3, "upper": 0.2}, "leave room"),
        ({"lower": torch.zeros(3)}, "shape \\[2\\]"),
        ({"upper": float("nan")}, "finite"),
    ],
)
def test_impossible_bounds_are_rejected(bounds, message):
    with pytest.raises(ValueError, match=message):
        min_norm_weights(tensor(np.eye(2)), **bounds)


@pytest.mark.parametrize(
    ("gram", "message"),
    [
        ([[1.0, 0.0]], "shape \\[n, n\\]"),
        ([[1.0, 0.5], [0.0, 1.0]], "symmetric"),
        ([[-1.0, 0.0], [0.0, 1.0]], "non-negative diagonal"),
        ([[float("inf")]], "finite"),
        (np.zeros((0, 0)), "at least one row"),
    ],
)
def test_what_is_no_gramian_is_rejected(gram, message):
    with pytest.raises(ValueError, match=message):
        min_norm_weights(tensor(gram))


def test_zero_rows_between_bounds_are_all_that_is_taken():
    # found by a search: a combination of length 1e-20 is zero, whatever the sign of its noise
    matrix = rows("zeros", n=9, dim=5, seed=1)
    lower, upper = _box(9, 1)
    weights = _weights(matrix, lower=tensor(lower), upper=tensor(upper))
    np.testing.assert_allclose(matrix.T @ weights, 0, atol=1e-10)
