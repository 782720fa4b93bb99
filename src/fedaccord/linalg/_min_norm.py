"""The minimum-norm point of a convex hull, with bounds on the weights."""

from __future__ import annotations

import daqp
import numpy as np
import torch
from torch import Tensor

from ._boxed import Box, duality_gap, solve_boxed, solve_simplex
from ._nonnegative import TOLERANCE
from ._rows import SMALLEST, Floats, as_array, as_gramian

# Bounds whose sums miss one by no more than this are taken to meet it.
SUM_ROUNDING = 1e-9


def min_norm_weights(
    gram: Tensor, *, lower: Tensor | float = 0.0, upper: Tensor | float = 1.0
) -> Tensor:
    r"""Find the weights of the shortest convex combination of rows.

    .. math:: \min_w w^\top G w \quad \text{subject to} \quad \sum_i w_i = 1, \;
              \max(0, l_i) \le w_i \le \min(1, u_i)

    The combination is unique. Where the weights are not (dependent rows), the shortest weight
    vector among the solutions is returned, so that identical clients with identical bounds get
    equal weights, all-zero rows get the weights nearest to uniform, and the order of clients does
    not matter; directions of the weights that move the combination by less than about 3e-6 of the
    longest row count as free for this. Every answer is proven by its duality gap, at most 1e-10 of
    :math:`\sum_{ij} w_i |G_{ij}| w_j`. Scaling the Gramian changes nothing.

    Source: Désidéri, "Multiple-gradient descent algorithm", C. R. Math. 2012, problem (10); with
    bounds Hu et al., FedMGDA+, IEEE TNSE 2022.

    :param gram: Inner products ``[n, n]`` of the rows, ``n >= 1``, positive semidefinite; any rank.
    :param lower: Lower bounds, a number or ``[n]``.
    :param upper: Upper bounds, a number or ``[n]``.
    :returns: Weights ``[n]`` float64 of sum one, exactly at a bound where the bound acts.
    :raises ValueError: If an argument is malformed or no weights of sum one meet the bounds.
    :raises SolverError: If no solver's answer could be proven.
    """
    matrix = as_gramian(gram)
    box = _box(lower, upper, matrix.shape[0])
    if matrix.shape[0] == 1:
        return torch.ones(1, dtype=torch.float64)
    for bound in (box.lower, box.upper):
        if abs(float(bound.sum()) - 1.0) <= SUM_ROUNDING:
            return torch.from_numpy(bound.copy())  # the bounds leave no choice
    largest = float(np.diagonal(matrix).max())
    scaled = matrix / largest if largest > 0 else matrix
    zero = np.diagonal(scaled) < SMALLEST
    if box.is_simplex and zero.any():
        weights = zero / zero.sum()
    elif box.is_simplex:
        weights = solve_simplex(scaled)
    elif largest > 0:
        weights = solve_boxed(scaled, box)
    else:
        weights = box.minimiser(np.zeros(len(matrix)))[0]
    return torch.from_numpy(_shortest(scaled, box, weights))


def _box(lower: Tensor | float, upper: Tensor | float, n: int) -> Box:
    if n == 0:
        raise ValueError("`gram` must have at least one row. Got shape [0, 0].")
    bounds = []
    for value, name in ((lower, "lower"), (upper, "upper")):
        bound = as_array(torch.as_tensor(value, dtype=torch.float64), name)
        if bound.shape not in ((), (n,)):
            raise ValueError(f"`{name}` must be a number or have shape [{n}]. Got {bound.shape}.")
        bounds.append(np.broadcast_to(bound, (n,)))
    box = Box(np.maximum(bounds[0], 0.0), np.minimum(bounds[1], 1.0))
    if (box.lower > box.upper).any():
        i = int(np.argmax(box.lower - box.upper))
        raise ValueError(
            "`lower` and `upper` must leave room for a weight in [0, 1]. "
            f"Got {bounds[0][i]:.6g} and {bounds[1][i]:.6g} at position {i}."
        )
    if box.lower.sum() > 1 + SUM_ROUNDING:
        raise ValueError(
            f"`lower` must have a sum of at most 1, as weights have sum 1. "
            f"Got {box.lower.sum():.6g}. Lower the bounds."
        )
    if box.upper.sum() < 1 - SUM_ROUNDING:
        raise ValueError(
            f"`upper` must have a sum of at least 1, as weights have sum 1. "
            f"Got {box.upper.sum():.6g}. Raise the bounds."
        )
    return box


def _shortest(gram: Floats, box: Box, weights: Floats) -> Floats:
    """Return the shortest weight vector that gives the same combination.

    Rows whose progress along the combination is least may share their weight in every way that
    keeps the combination and the sum: along a null space. It is computed for unit rows (weights
    times lengths), where "zero" means the same for short and for long rows.
    """
    gradient = gram @ weights
    price = box.minimiser(gradient)[1]
    open_rows = np.flatnonzero(np.abs(gradient - price) <= 1e-9 * (np.abs(gram) @ weights))
    if open_rows.size < 2:
        return weights
    diagonal = np.diagonal(gram)[open_rows]
    lengths = np.sqrt(np.where(diagonal >= SMALLEST, diagonal, diagonal.max(initial=SMALLEST)))
    unit = gram[np.ix_(open_rows, open_rows)] / lengths[:, None] / lengths[None, :]
    normal = (lengths.min() / lengths)[:, None]
    normal /= np.linalg.norm(normal)
    # Away from the normal of the sum constraint; the normal itself gets the eigenvalue one.
    away = np.eye(open_rows.size) - normal @ normal.T
    values, vectors = np.linalg.eigh(away @ unit @ away + normal @ normal.T)
    noise = max(1e-11, 64.0 * np.finfo(np.float64).eps * float(values[-1]))
    flat = vectors[:, values <= noise] * (lengths.min() / lengths)[:, None]
    if flat.shape[1] == 0:
        return weights
    basis = np.linalg.qr(flat)[0]
    held = weights[open_rows]
    amounts, _, status, _ = daqp.solve(
        np.eye(basis.shape[1]),
        basis.T @ held,
        np.ascontiguousarray(basis),
        box.upper[open_rows] - held,
        box.lower[open_rows] - held,
        primal_tol=1e-12,
    )
    if status <= 0:
        return weights
    shorter = weights.copy()
    shorter[open_rows] += basis @ amounts
    shorter = box.admit(shorter, snap=1e-14)
    return shorter if duality_gap(gram, box, shorter) <= TOLERANCE else weights
