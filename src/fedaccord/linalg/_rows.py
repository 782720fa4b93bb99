"""The small matrices of this package: checked, in NumPy, and with rows of unit length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Floats: TypeAlias = npt.NDArray[np.float64]
Mask: TypeAlias = npt.NDArray[np.bool_]
Indices: TypeAlias = npt.NDArray[np.intp]

# Squared norms below the smallest normal number have lost digits; such rows count as zero.
SMALLEST = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class UnitRows:
    """The rows that are not zero, scaled to unit length, seen through their Gramian.

    :param kept: Positions ``[k]`` of the rows that are not zero among all rows.
    :param norms: Their lengths ``[k]``.
    :param gram: Inner products ``[k, k]`` of the unit rows, with exact ones on the diagonal.
    """

    kept: Indices
    norms: Floats
    gram: Floats


def unit_rows(gram: Floats) -> UnitRows:
    """Drop the zero rows and scale the others to unit length."""
    diagonal = np.diagonal(gram)
    kept = np.flatnonzero(diagonal >= SMALLEST)
    norms = np.sqrt(diagonal[kept])
    # Two divisions, since the product of two small norms may underflow.
    unit = gram[np.ix_(kept, kept)] / norms[:, None] / norms[None, :]
    unit = 0.5 * (unit + unit.T)
    np.fill_diagonal(unit, 1.0)
    return UnitRows(kept, norms, unit)


def as_gramian(gram: Tensor) -> Floats:
    """Return a checked, exactly symmetric float64 copy of a Gramian.

    :raises ValueError: If it is not square, not finite, not symmetric within 1e-9 of its largest
        entry, or has a negative diagonal entry.
    """
    if gram.dim() != 2 or gram.shape[0] != gram.shape[1]:
        raise ValueError(f"`gram` must have shape [n, n]. Got {list(gram.shape)}.")
    matrix = as_array(gram, "gram")
    if matrix.size == 0:
        return matrix
    largest = float(np.abs(matrix).max())
    asymmetry = float(np.abs(matrix - matrix.T).max())
    if asymmetry > 1e-9 * largest:
        raise ValueError(
            f"`gram` must be symmetric. Got entries that differ by {asymmetry:.3g} from their "
            f"mirror images, with a largest entry of {largest:.3g}."
        )
    if (np.diagonal(matrix) < 0).any():
        worst = int(np.argmin(np.diagonal(matrix)))
        raise ValueError(
            "`gram` must have a non-negative diagonal, since it holds squared norms. "
            f"Got {matrix[worst, worst]:.3g} at position {worst}."
        )
    return 0.5 * (matrix + matrix.T)


def as_vector(values: Tensor, name: str, length: int) -> Floats:
    """Return a checked float64 copy of a vector with one entry per row of the Gramian."""
    if tuple(values.shape) != (length,):
        raise ValueError(
            f"`{name}` must have one entry per row of `gram`, shape [{length}]. "
            f"Got {list(values.shape)}."
        )
    return as_array(values, name)


def as_array(values: Tensor, name: str) -> Floats:
    """Return a finite float64 NumPy copy of a tensor."""
    array = values.detach().to(device="cpu", dtype=torch.float64).numpy().copy()
    if not np.isfinite(array).all():
        raise ValueError(f"`{name}` must be finite. Got NaN or infinity.")
    return array


def factor(gram: Floats) -> Floats:
    r"""Return coordinates ``[n, r]`` whose inner products are ``gram``, up to rounding.

    Directions in which all unit rows together extend by no more than about 1e-7 are left out: a
    Gramian in float64 cannot tell them from zero, because a squared length of 1e-15 is rounding
    noise. In these coordinates linear dependencies hold to 1e-9 and better, not only to the 1e-8
    that is left of them in the Gramian.

    :param gram: A Gramian ``[n, n]`` of unit rows.
    """
    values, vectors = np.linalg.eigh(gram)
    # The decomposition itself errs by a few units in the last place of the largest eigenvalue.
    noise = max(1e-14, 8.0 * np.finfo(np.float64).eps * float(values[-1]))
    large = values > noise
    coordinates: Floats = vectors[:, large] * np.sqrt(values[large])
    return coordinates
