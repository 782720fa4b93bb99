from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedaccord.linalg import INFEASIBLE_MARGIN, feasibility_margin

from ._inputs import gram_of, matrices, rows, tensor


def _at(*degrees: float) -> np.ndarray:
    angles = np.radians(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def test_one_row_has_margin_one():
    assert feasibility_margin(tensor([[7.0]])) == 1.0


def test_two_rows_have_the_cosine_of_half_their_angle():
    assert feasibility_margin(gram_of(_at(10, 130))) == pytest.approx(math.cos(math.radians(60)))


def test_orthogonal_rows_have_margin_one_over_root_n():
    assert feasibility_margin(tensor(np.diag([1.0, 4.0, 9.0, 16.0]))) == pytest.approx(0.5)


@pytest.mark.parametrize("angles", [(0, 180), (0, 120, 240), (10, 80, 190, 260), (0, 90, 180)])
def test_rows_around_the_origin_have_no_margin(angles):
    assert feasibility_margin(gram_of(_at(*angles))) <= INFEASIBLE_MARGIN


@given(matrices(kinds=("gaussian", "clustered", "unequal lengths")))
def test_a_row_and_its_opposite_leave_no_margin(matrix):
    opposed = np.vstack([matrix, -3.0 * matrix[:1]])
    assert feasibility_margin(gram_of(opposed)) <= INFEASIBLE_MARGIN


@pytest.mark.parametrize("angle", [1e-2, 1e-3, 1e-4, 1e-5, 1e-6])
def test_nearly_opposite_rows_keep_their_small_margin(angle):
    # half the missing angle: cos((pi - angle) / 2) = sin(angle / 2)
    matrix = np.array([[1.0, 0.0], [-math.cos(angle), math.sin(angle)]])
    margin = feasibility_margin(gram_of(matrix))
    # a squared margin is known to 1e-15
    assert margin == pytest.approx(math.sin(angle / 2), abs=1e-15 / angle)
    assert margin > INFEASIBLE_MARGIN


def test_float32_noise_does_not_hide_that_rows_are_opposite():
    row = torch.randn(1000, generator=torch.Generator().manual_seed(0)).double().numpy()
    assert feasibility_margin(gram_of(np.stack([row, -row, row]))) <= INFEASIBLE_MARGIN


def test_a_row_that_must_only_not_lose_allows_more_than_one_that_must_gain():
    # (1, 0) and (-1, 0.0...): required to gain along (0, 1) only, others must not lose:
    # d = (0, 1) has progress one along it and none along the two opposite ones
    matrix = np.array([[0.0, 1.0], [1.0, 0.0], [-1.0, 0.0]])
    required = torch.tensor([True, False, False])
    assert feasibility_margin(gram_of(matrix)) <= INFEASIBLE_MARGIN
    assert feasibility_margin(gram_of(matrix), required) == pytest.approx(1.0)


def test_a_required_row_against_one_that_must_not_lose_has_the_sine_of_their_angle():
    # d is a_0 with its part along the other removed: progress sin(60 degrees)
    required = torch.tensor([True, False])
    margin = feasibility_margin(gram_of(_at(0, 120)), required)
    assert margin == pytest.approx(math.sin(math.radians(60)))


def test_a_required_row_opposite_to_one_that_must_not_lose_has_no_margin():
    required = torch.tensor([True, False])
    assert feasibility_margin(gram_of(_at(0, 180)), required) <= INFEASIBLE_MARGIN


@given(matrices(kinds=("clustered", "gaussian", "duplicates")), st.integers(0, 2**31))
def test_the_margin_is_what_its_dual_promises(matrix, seed):
    # weak duality from outside: no unit direction does better, no convex combination is shorter
    rng = np.random.default_rng(seed)
    unit = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    margin = feasibility_margin(gram_of(matrix))
    directions = rng.standard_normal((200, matrix.shape[1]))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    assert (unit @ directions.T).min(axis=0).max() <= margin + 1e-7
    assert (
        np.linalg.norm(rng.dirichlet(np.ones(len(unit)), 200) @ unit, axis=1).min() >= margin - 1e-7
    )


@given(matrices(kinds=("clustered", "gaussian")), st.integers(0, 2**31))
def test_lengths_and_order_do_not_matter(matrix, seed):
    rng = np.random.default_rng(seed)
    other = (matrix * 10.0 ** rng.uniform(-5, 5, (len(matrix), 1)))[rng.permutation(len(matrix))]
    # noise of 1e-15 in the square
    expected = feasibility_margin(gram_of(matrix))
    assert feasibility_margin(gram_of(other)) ** 2 == pytest.approx(expected**2, abs=4e-15)


def test_zero_rows_are_left_out():
    assert feasibility_margin(tensor(np.diag([1.0, 0.0, 1.0]))) == pytest.approx(math.sqrt(0.5))


def test_nothing_required_is_an_infinite_margin():
    assert feasibility_margin(tensor(np.eye(2)), torch.zeros(2, dtype=torch.bool)) == math.inf
    assert feasibility_margin(tensor(np.zeros((2, 2)))) == math.inf


def test_a_mask_of_the_wrong_length_is_rejected():
    with pytest.raises(ValueError, match="one entry per row"):
        feasibility_margin(tensor(np.eye(2)), torch.ones(3, dtype=torch.bool))


@pytest.mark.parametrize("n", [70, 200])
def test_random_rows_in_half_as_many_dimensions_surround_the_origin_or_not(n):
    # Wendel 1962: with n rows in n / 4 dimensions the chance of a common direction is below 1e-6;
    # in n dimensions independent rows always have one
    assert (
        feasibility_margin(gram_of(rows("gaussian", n=n, dim=n // 4, seed=0))) <= INFEASIBLE_MARGIN
    )
    assert feasibility_margin(gram_of(rows("gaussian", n=n, dim=n, seed=0))) > 1e-6
