"""Whether some direction makes progress along every row, decided without a required amount."""

from __future__ import annotations

import math

import numpy as np
from torch import Tensor

from ._nonnegative import TOLERANCE, rounding, solve_nonnegative
from ._rows import Floats, Mask, as_gramian, unit_rows

# Rows whose hull comes this near to the origin have no common direction of progress. The squared
# norm is known to about 1e-15 in float64, hence the norm to about 3e-8: a smaller bound would
# decide by rounding noise.
INFEASIBLE_MARGIN = 1e-7


def feasibility_margin(gram: Tensor, required: Tensor | None = None) -> float:
    r"""Return how much progress a unit direction can make along every required row at once.

    Let :math:`a_i` be the rows, scaled to unit length. The margin is

    .. math:: \max_{\|d\| \le 1} \; \min_{i \in T} a_i^\top d
              \quad \text{subject to} \quad a_j^\top d \ge 0 \text{ for } j \notin T,

    with :math:`T` the required rows. By duality it equals the distance between the convex hull of
    the rows in :math:`T` and the cone spanned by the negatives of the others,

    .. math:: \min \Big\{ \Big\| \sum_j y_j a_j \Big\| : y \ge 0, \; \sum_{i \in T} y_i = 1 \Big\},

    the norm of the minimum-norm point of the hull of all rows when all are required. It is zero
    exactly when no direction gives every required row progress (a theorem of the alternative;
    Gordan 1873, Motzkin 1936). A margin of at most ``INFEASIBLE_MARGIN`` = 1e-7 counts as zero.
    The margin ignores the length of the rows. Rows of length zero are left out.

    :param gram: Inner products ``[n, n]`` of the rows, positive semidefinite.
    :param required: Mask ``[n]`` of :math:`T`; ``None`` means all rows.
    :returns: The margin in ``[0, 1]``; infinity when no row of positive length is required.
    :raises ValueError: If an argument is malformed.
    :raises SolverError: If no solver's answer could be proven.
    """
    matrix = as_gramian(gram)
    rows = unit_rows(matrix)
    if required is None:
        mask = np.ones(rows.kept.size, dtype=np.bool_)
    else:
        if tuple(required.shape) != (matrix.shape[0],):
            raise ValueError(
                f"`required` must have shape [{matrix.shape[0]}], one entry per row of `gram`. "
                f"Got {list(required.shape)}."
            )
        mask = required.detach().cpu().numpy().astype(np.bool_)[rows.kept]
    return hull_margin(rows.gram, mask)[0]


def hull_margin(gram: Floats, required: Mask) -> tuple[float, int]:
    """Return the margin for the Gramian of unit rows, and the number of methods given up for it.

    The program is solved in the always bounded form: minimise ``|A'u|^2 + (1 - sum of u_T)^2`` over
    ``u >= 0``; scaling ``u`` to ``sum of u_T = 1`` gives the nearest points.
    """
    if not required.any():
        return math.inf, 0
    if gram.shape[0] == 1:
        return 1.0, 0
    indicator = required.astype(np.float64)
    quadratic = gram + np.outer(indicator, indicator)
    answer = solve_nonnegative(quadratic, indicator, lambda u: _gap(gram, required, u))
    return _norm(gram, required, answer.x)[0], answer.fallbacks


def _norm(gram: Floats, required: Mask, u: Floats) -> tuple[float, Floats]:
    total = float(u[required].sum())
    if total <= 0:
        return math.inf, np.zeros_like(u)
    y = u / total
    return math.sqrt(max(float(y @ gram @ y), 0.0)), y


def _gap(gram: Floats, required: Mask, u: Floats) -> float:
    """Return the relative distance between the upper and the lower bound that ``u`` proves.

    The norm of any admissible combination bounds the margin from above: when that is already
    infeasible, nothing else has to be proven. Its direction bounds the margin from below.
    """
    upper, y = _norm(gram, required, u)
    if upper <= INFEASIBLE_MARGIN:
        return 0.0
    progress = gram @ y
    shortfall = upper**2 - float(progress[required].min())
    worst = -float(progress[~required].min(initial=0.0))
    terms = float((np.abs(gram) @ y).max())
    floor = rounding(len(gram)) / TOLERANCE * terms
    return max(shortfall, worst, 0.0) / max(upper**2, floor)
