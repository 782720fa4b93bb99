from __future__ import annotations

import math

import pytest
import torch
from torch.testing import assert_close

from fedaccord.linalg import combine, gramian, norm

DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


def _matrix(n: int, dim: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, dim, generator=generator).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_gramian_is_the_matrix_of_inner_products(dtype):
    matrix = _matrix(7, 1000, dtype)
    wide = matrix.double()
    assert_close(gramian(matrix, block=64), wide @ wide.T, rtol=1e-12, atol=1e-10)


def test_gramian_with_another_matrix_is_rectangular():
    matrix, other = _matrix(3, 501), _matrix(5, 501, seed=1)
    expected = matrix.double() @ other.double().T
    assert_close(gramian(matrix, other, block=100), expected, rtol=1e-12, atol=1e-10)


def test_gramian_over_several_tiles_is_the_matrix_of_inner_products():
    matrix = _matrix(200, 50, torch.float64)
    assert_close(gramian(matrix), matrix @ matrix.T, rtol=1e-12, atol=1e-12)
    assert_close(gramian(matrix, matrix[:150]), matrix @ matrix[:150].T, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n", [1, 10, 69, 200])
def test_gramian_is_exactly_symmetric(n):
    result = gramian(_matrix(n, 999), block=128)
    assert torch.equal(result, result.T)


def test_gramian_agrees_with_exact_summation():
    # math.fsum rounds once; 20,000 products of float32 numbers are exact in float64
    matrix = _matrix(2, 20_000)
    left, right = matrix.double()
    exact = [math.fsum((left * left).tolist()), math.fsum((left * right).tolist())]
    scale = exact[0]
    assert_close(
        gramian(matrix)[0] / scale,
        torch.tensor(exact, dtype=torch.float64) / scale,
        rtol=0,
        atol=4e-16,
    )


def test_gramian_of_nearly_parallel_float32_rows_keeps_their_distance():
    # rows differ by one unit in the last place of one entry: squared distance 2**-46 exactly
    row = torch.ones(4096)
    other = row.clone()
    other[0] += 2.0**-23
    gram = gramian(torch.stack([row, other]))
    assert float(gram[0, 0] + gram[1, 1] - 2 * gram[0, 1]) == pytest.approx(
        2.0**-46, abs=4096 * 5e-16
    )


def test_gramian_of_exactly_opposite_rows_is_exactly_singular():
    row = _matrix(1, 12_345)
    gram = gramian(torch.cat([row, -row]))
    assert torch.equal(gram[0], -gram[1])


@pytest.mark.parametrize("n", [3, 10, 20, 33, 70])
def test_gramian_does_not_depend_on_the_number_of_threads(n):
    matrix = _matrix(n, 9000)
    before = torch.get_num_threads()
    try:
        results = []
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            results.append((gramian(matrix), combine(matrix, torch.linspace(-1, 1, n))))
    finally:
        torch.set_num_threads(before)
    for gram, sums in results[1:]:
        assert torch.equal(gram, results[0][0])
        assert torch.equal(sums, results[0][1])


def test_gramian_of_no_columns_is_zero():
    assert torch.equal(gramian(torch.zeros(3, 0)), torch.zeros(3, 3, dtype=torch.float64))


def test_gramian_does_not_change_its_argument_and_accepts_views():
    matrix = _matrix(8, 300)
    view = matrix[::2, 5:205]
    copy = matrix.clone()
    assert_close(gramian(view), view.double() @ view.double().T, rtol=1e-12, atol=1e-12)
    assert torch.equal(matrix, copy)


def test_gramian_rejects_unequal_columns():
    with pytest.raises(ValueError, match="equally many columns"):
        gramian(torch.zeros(2, 3), torch.zeros(2, 4))


@pytest.mark.parametrize("bad", [torch.zeros(3), torch.zeros(2, 2, dtype=torch.int64)])
def test_gramian_rejects_what_is_no_matrix_of_numbers(bad):
    with pytest.raises(ValueError, match="floating-point tensor of shape"):
        gramian(bad)


def test_gramian_rejects_an_empty_block():
    with pytest.raises(ValueError, match="`block` must be at least 1. Got 0."):
        gramian(torch.zeros(2, 3), block=0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_combine_is_the_linear_combination(dtype):
    matrix = _matrix(6, 1001, dtype)
    weights = torch.linspace(-1, 1, 6, dtype=torch.float64)
    result = combine(matrix, weights, block=64)
    assert result.dtype == torch.float64
    assert_close(result, weights @ matrix.double(), rtol=1e-12, atol=1e-12)


def test_combine_does_not_read_rows_of_coefficient_zero():
    matrix = torch.tensor([[1.0, 2.0], [math.nan, math.inf]])
    assert torch.equal(combine(matrix, torch.tensor([3.0, 0.0])), torch.tensor([3.0, 6.0]).double())


def test_combine_of_nothing_is_zero():
    matrix = torch.full((2, 3), math.nan)
    assert torch.equal(combine(matrix, torch.zeros(2)), torch.zeros(3, dtype=torch.float64))


def test_combine_rejects_a_wrong_number_of_coefficients():
    with pytest.raises(ValueError, match="one entry per row"):
        combine(torch.zeros(2, 3), torch.zeros(3))


def test_norm_of_a_pythagorean_triple_is_exact():
    assert norm(torch.tensor([3.0, 4.0])) == 5.0


def test_norm_of_large_half_precision_numbers_does_not_overflow():
    # 60,000 squared is beyond float16
    assert norm(torch.full((4,), 60_000.0, dtype=torch.float16)) == pytest.approx(120_000, rel=1e-3)


def test_norm_of_nothing_is_zero():
    assert norm(torch.zeros(0)) == 0.0


def test_norm_rejects_a_matrix():
    with pytest.raises(ValueError, match="shape \\[dim\\]"):
        norm(torch.zeros(2, 2))
