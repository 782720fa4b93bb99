r"""Quadratic programs over :math:`x \ge 0`, solved and proven.

This is the one place where solvers are chosen. A caller hands over the program and a measure of how
far a point is from satisfying its optimality conditions; it gets an answer that passes, or an
error. Which method gave the answer and how many had to be given up is part of the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from ..errors import SolverError
from ._methods import by_daqp, by_least_squares, by_pivoting
from ._rows import Floats

# Largest relative optimality residual of an answer.
TOLERANCE = 1e-10
# Residuals above this are more than the rounding of a good solver; a polished answer may be better.
WORTH_POLISHING = 1e-14
# From this size on block principal pivoting is the first method. One thread, milliseconds, median,
# clustered unit rows with many active constraints (tau = 0.3), daqp against pivoting:
# 20 rows 0.02 : 0.16, 70 rows 0.13 : 0.22, 100 rows 0.34 : 0.32, 150 rows 1.1 : 0.5,
# 200 rows 2.7 : 0.7, 500 rows 46 : 3, 1,000 rows 390 : 14. daqp keeps the sizes where it costs
# about a millisecond, since it does not use threads and so cannot depend on their number.
PIVOTING_SIZE = 150


def rounding(num_terms: int) -> float:
    """Return the share of its terms' total that a sum of cancelling terms keeps as noise."""
    return float(np.finfo(np.float64).eps) * max(num_terms, 45)


@dataclass(frozen=True)
class Answer:
    """A proven solution.

    :param x: The solution ``[n]``, non-negative, with exact zeros.
    :param residual: Its relative optimality residual, at most ``TOLERANCE``.
    :param method: Which method found it.
    :param fallbacks: How many methods were tried before without success.
    """

    x: Floats
    residual: float
    method: str
    fallbacks: int


def solve_nonnegative(
    quadratic: Floats,
    linear: Floats,
    residual: Callable[[Floats], float],
    *,
    start: Floats | None = None,
) -> Answer:
    r"""Minimise :math:`\tfrac12 x^\top Q x - b^\top x` over :math:`x \ge 0`.

    :param quadratic: Symmetric positive semidefinite :math:`Q` ``[n, n]``, diagonal near one.
    :param linear: :math:`b` ``[n]``, largest absolute entry near one.
    :param residual: Measures the optimality residual of a point; at most ``TOLERANCE`` is a proof.
    :param start: A point whose zeros guess the zeros of the solution.
    :raises SolverError: If no method's answer could be proven.
    """
    methods = {"daqp": by_daqp, "pivoting": by_pivoting, "nnls": by_least_squares}
    order = ["daqp", "pivoting", "nnls"]
    if linear.size >= PIVOTING_SIZE:
        order = ["pivoting", "daqp", "nnls"]
    failures = []
    for fallbacks, name in enumerate(order):
        x = methods[name](quadratic, linear, start)
        if x is None or not np.isfinite(x).all():
            failures.append(f"{name}: no answer")
            continue
        error = residual(x)
        if error > WORTH_POLISHING:
            polished = polish(quadratic, linear, x)
            better = residual(polished)
            if better < error:
                x, error = polished, better
        if error <= TOLERANCE:
            return Answer(x, error, name, fallbacks)
        failures.append(f"{name}: residual {error:.2g}")
    raise SolverError(
        f"An answer must satisfy its optimality conditions to {TOLERANCE:g}. Got, for a program "
        f"with {linear.size} rows, {'; '.join(failures)}. Check that `gram` is a Gramian in "
        "float64; rows that differ by rounding noise only should be merged."
    )


def polish(quadratic: Floats, linear: Floats, x: Floats) -> Floats:
    """Return a point solved anew on the support of ``x``, a few Newton corrections at most."""
    for _ in range(3):
        slack = quadratic @ x - linear
        # Of an index with both values near zero the larger one is taken to be the positive one.
        inside = np.flatnonzero(x > np.maximum(slack, 0.0))
        cleaned = np.zeros_like(x)
        if inside.size == 0:
            return cleaned
        cleaned[inside] = x[inside]
        block = quadratic[np.ix_(inside, inside)]
        missing = linear[inside] - block @ cleaned[inside]
        try:
            triangle = scipy.linalg.cho_factor(block, check_finite=False)
            change = scipy.linalg.cho_solve(triangle, missing, check_finite=False)
        except np.linalg.LinAlgError:
            # Dependent rows: of all corrections the shortest one.
            change = np.linalg.lstsq(block, missing, rcond=1e-13)[0].astype(np.float64)
        cleaned[inside] = np.maximum(cleaned[inside] + change, 0.0)
        x = cleaned
    return x


def halfspace_residual(gram: Floats, gaps: Floats, scale: float) -> Callable[[Floats], float]:
    r"""Return the relative optimality residual of the program of ``project_onto_halfspaces``.

    For multipliers :math:`x` the slacks are :math:`s = G x - b`; optimal means :math:`x \ge 0`,
    :math:`s \ge 0` and :math:`x_i s_i = 0`. The residual is the largest violation: ``|s_i|`` where
    :math:`x_i > 0`, the negative part of :math:`s_i` elsewhere. It is relative to the largest of
    ``scale`` and :math:`\|A^\top x\|`, and, for a row whose terms cancel, to what rounding leaves
    of them at least.

    :param gram: Gramian :math:`G` ``[n, n]`` of unit rows.
    :param gaps: :math:`b` ``[n]``, what each row misses at the start.
    :param scale: The size of the data.
    """
    sizes = np.abs(gram)
    floor = rounding(len(gram)) / TOLERANCE

    def residual(x: Floats) -> float:
        product = gram @ x
        slack = product - gaps
        length = np.sqrt(max(float(x @ product), 0.0))
        terms = sizes @ x + np.abs(gaps)
        unit = np.maximum(max(scale, float(length)), floor * terms)
        violation = np.where(x > 0, np.abs(slack), np.maximum(-slack, 0.0))
        return float(np.max(violation / unit, initial=0.0))

    return residual
