r"""Three ways to minimise :math:`\tfrac12 x^\top Q x - b^\top x` over :math:`x \ge 0`.

``Q`` is symmetric positive semidefinite with a diagonal near one, the largest entry of ``|b|`` is
near one. None of the three is trusted: what they return is proven, or not, by ``_nonnegative``.
Each returns ``None`` when it noticed itself that it failed.
"""

from __future__ import annotations

import daqp
import numpy as np
import scipy.linalg
import scipy.optimize

from ._rows import Floats, Mask

# Exchanges of the whole violated set that may fail to shrink it before the back-up rule.
PATIENCE = 3
MOST_EXCHANGES = 200
# Proximal weight where the Cholesky factorisation needs one: far above rounding, so that it
# succeeds on a singular matrix, far below the proof's tolerance once the centre has settled.
PROXIMITY = 1e-12


def by_daqp(quadratic: Floats, linear: Floats, start: Floats | None) -> Floats | None:
    """Dual active-set method of Arnström, Bemporad and Axehill (IEEE TAC 2022), package daqp."""
    n = linear.size
    x, _, status, info = daqp.solve(
        quadratic,
        -linear,
        np.zeros((0, n)),
        np.full(n, 1e30),
        np.zeros(n),
        # Bounds that were active before start active: 1 marks them.
        np.zeros(n, dtype=np.int32) if start is None else (start <= 0).astype(np.int32),
        primal_tol=1e-12,
    )
    # A bound that acts has a multiplier; the variable itself is zero only up to rounding.
    return np.where(info["lam"] != 0, 0.0, np.maximum(x, 0.0)) if status > 0 else None


def by_pivoting(quadratic: Floats, linear: Floats, start: Floats | None) -> Floats | None:
    """Block principal pivoting of Júdice and Pires (Computers & OR 1994) by Cholesky solves.

    A singular matrix is made definite by a proximal term of weight 1e-12, whose centre is moved to
    the solution a few times.
    """
    n = linear.size
    free: Mask = np.zeros(n, dtype=np.bool_) if start is None else start > 0
    centre = np.zeros(n)
    for _ in range(4):
        found = _pivot(quadratic, linear, free, centre)
        if found is None:
            return None
        free, x = found
        if float(np.abs(x - centre).max()) * PROXIMITY <= 1e-15:
            break
        centre = np.maximum(x, 0.0)
    return np.maximum(x, 0.0)


def _pivot(
    quadratic: Floats, linear: Floats, free: Mask, centre: Floats
) -> tuple[Mask, Floats] | None:
    """Exchange violated indices between the free and the fixed set until none is left."""
    shifted = linear + PROXIMITY * centre
    fewest, patience = linear.size + 1, PATIENCE
    for _ in range(MOST_EXCHANGES):
        inside = np.flatnonzero(free)
        x = np.zeros(linear.size)
        if inside.size:
            block = quadratic[np.ix_(inside, inside)]
            block[np.diag_indices_from(block)] += PROXIMITY
            try:
                triangle = scipy.linalg.cho_factor(block, overwrite_a=True, check_finite=False)
            except np.linalg.LinAlgError:
                return None
            x[inside] = scipy.linalg.cho_solve(triangle, shifted[inside], check_finite=False)
        slack = quadratic @ x - shifted
        # Multipliers and slacks this small have a sign by rounding only.
        noise = 1e-14 * max(1.0, float(np.abs(x).max()))
        wrong: Mask = np.where(free, x < -noise, slack < -noise)
        count = int(wrong.sum())
        if count == 0:
            return free, x
        if count < fewest:
            fewest, patience = count, PATIENCE
        elif patience > 0:
            patience -= 1
        else:
            # Murty's rule: one index, always the last, cannot cycle.
            last = int(np.flatnonzero(wrong)[-1])
            wrong = np.zeros_like(wrong)
            wrong[last] = True
        free = free ^ wrong
    return None


def by_least_squares(quadratic: Floats, linear: Floats, start: Floats | None) -> Floats | None:
    r"""Non-negative least squares of Lawson and Hanson, through SciPy.

    With :math:`E^\top E = Q + b b^\top` and :math:`E^\top e = b` the least-squares solution
    :math:`u` gives :math:`x = u / (1 - b^\top u)`.
    """
    del start  # The method has no warm start.
    values, vectors = np.linalg.eigh(quadratic)
    large = values > 1e-15 * values[-1]
    rows = np.vstack([np.sqrt(values[large])[:, None] * vectors[:, large].T, linear[None, :]])
    target = np.zeros(rows.shape[0])
    target[-1] = 1.0
    try:
        u, _ = scipy.optimize.nnls(rows, target, maxiter=30 * linear.size)
    except RuntimeError:  # SciPy's word for too many iterations
        return None
    rest = 1.0 - float(linear @ u)
    return u / rest if rest > 0 else None
