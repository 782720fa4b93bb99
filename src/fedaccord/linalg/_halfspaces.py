"""Projection onto an intersection of half-spaces, through the Gramian of their normals."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ._hull import INFEASIBLE_MARGIN, hull_margin
from ._nonnegative import halfspace_residual, solve_nonnegative
from ._rows import as_gramian, as_vector, unit_rows


@dataclass(frozen=True)
class Projection:
    r"""The answer of ``project_onto_halfspaces``: :math:`d = a_0 + \sum_i \mu_i a_i`.

    :param multipliers: :math:`\mu` ``[n]`` float64, non-negative; exactly zero for a constraint
        that does not act, for a zero row, and throughout if the program is infeasible.
    :param active: Mask ``[n]``: where the multiplier is positive.
    :param feasible: Whether some :math:`d` satisfies every constraint.
    :param margin: ``feasibility_margin`` of the rows with a positive margin; infinity if there is
        none (then :math:`d = 0` is admissible); NaN if the starting point satisfies everything, as
        nothing had to be solved.
    :param kkt_residual: Largest violation of the optimality conditions, relative to the data, at
        most 1e-10; ``0.0`` where nothing was solved.
    :param method: What found the multipliers: ``"none"`` (no solver ran, or the program is
        infeasible), ``"daqp"``, ``"pivoting"`` or ``"nnls"``.
    :param fallbacks: Number of methods given up on the way, for the margin and for the multipliers
        together; to be counted and reported.
    """

    multipliers: Tensor
    active: Tensor
    feasible: bool
    margin: float
    kkt_residual: float
    method: str
    fallbacks: int


def project_onto_halfspaces(
    gram: Tensor, products: Tensor, margins: Tensor, *, start: Tensor | None = None
) -> Projection:
    r"""Find the point nearest to :math:`a_0` with :math:`a_i^\top d \ge m_i` for every row.

    .. math:: \min_d \tfrac12 \|d - a_0\|^2 \quad \text{subject to} \quad A d \ge m

    The solution is :math:`d = a_0 + A^\top \mu`, where :math:`\mu` minimises
    :math:`\tfrac12 \mu^\top G \mu - (m - A a_0)^\top \mu` over :math:`\mu \ge 0`. Every answer is
    proven by its optimality conditions. :math:`d` is unique; with dependent rows :math:`\mu` is
    not. Scaling a row together with its margin changes nothing but its multiplier.

    Whether the program is feasible does not depend on the size of the positive margins, because a
    direction that gives every such row progress can be made longer: it is decided by
    ``feasibility_margin`` over the rows with a positive margin, the others being required not to
    lose.

    Source: Irshaid, Varam and AlHajri, FedPCD, 2026, with margins ``tau * |a_i|^2``.

    :param gram: :math:`G = A A^\top` ``[n, n]``, positive semidefinite; any rank.
    :param products: :math:`A a_0` ``[n]``.
    :param margins: :math:`m` ``[n]``, at least zero; zero for a row of length zero.
    :param start: Multipliers ``[n]`` of an earlier, similar program. They are a guess which
        constraints act; the answer does not depend on it beyond rounding.
    :raises ValueError: If an argument is malformed, a margin is negative, or a row of length zero
        has a positive margin.
    :raises SolverError: If no solver's answer could be proven.
    """
    matrix = as_gramian(gram)
    n = matrix.shape[0]
    inner = as_vector(products, "products", n)
    needed = as_vector(margins, "margins", n)
    guess = None if start is None else as_vector(start, "start", n)
    if (needed < 0).any():
        worst = int(np.argmin(needed))
        raise ValueError(
            f"`margins` must be at least 0. Got {needed[worst]:.3g} at position {worst}."
        )
    rows = unit_rows(matrix)
    zero = np.setdiff1d(np.arange(n), rows.kept)
    if (needed[zero] > 0).any():
        worst = int(zero[np.argmax(needed[zero])])
        raise ValueError(
            "`margins` must be 0 for a row of length zero, along which nothing can make progress. "
            f"Got {needed[worst]:.3g} at position {worst}. Leave such rows out."
        )
    unit_margins = needed[rows.kept] / rows.norms
    unit_products = inner[rows.kept] / rows.norms
    gaps = unit_margins - unit_products
    if (needed[rows.kept] <= inner[rows.kept]).all() or (gaps <= 0).all():
        return _without_solver(n, feasible=True, margin=math.nan)
    margin, fallbacks = hull_margin(rows.gram, unit_margins > 0)
    if margin <= INFEASIBLE_MARGIN:
        return _without_solver(n, feasible=False, margin=margin, fallbacks=fallbacks)

    # The largest gap becomes one, so that the solvers' absolute tolerances mean the same always.
    largest = float(gaps.max())
    size = max(float(np.abs(unit_products).max()), float(unit_margins.max()))
    answer = solve_nonnegative(
        rows.gram,
        gaps / largest,
        halfspace_residual(rows.gram, gaps / largest, size / largest),
        start=None if guess is None else guess[rows.kept],
    )
    multipliers = np.zeros(n)
    multipliers[rows.kept] = answer.x * largest / rows.norms
    return Projection(
        multipliers=torch.from_numpy(multipliers),
        active=torch.from_numpy(multipliers > 0),
        feasible=True,
        margin=margin,
        kkt_residual=answer.residual,
        method=answer.method,
        fallbacks=fallbacks + answer.fallbacks,
    )


def _without_solver(n: int, *, feasible: bool, margin: float, fallbacks: int = 0) -> Projection:
    return Projection(
        multipliers=torch.zeros(n, dtype=torch.float64),
        active=torch.zeros(n, dtype=torch.bool),
        feasible=feasible,
        margin=margin,
        kkt_residual=0.0,
        method="none",
        fallbacks=fallbacks,
    )
