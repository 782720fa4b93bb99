"""Progress for those who can have it, no loss for the others.

The proofs are in ``docs/theory/protect.md``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.optimize
import torch
from torch import Tensor

from ..errors import SolverError
from ._halfspaces import Projection, project_onto_halfspaces
from ._hull import INFEASIBLE_MARGIN
from ._rows import Floats, Mask, as_gramian, as_vector, factor, unit_rows

# A unit row of which no more than this is left outside the span of cancelling rows belongs to them:
# the span itself is known to about INFEASIBLE_MARGIN only.
NOTHING_LEFT = 10 * INFEASIBLE_MARGIN


@dataclass(frozen=True)
class ProtectedProjection:
    r"""The answer of ``project_with_protection``: :math:`d = a_0 + \sum_i c_i a_i`.

    :param coefficients: :math:`c` ``[n]`` float64. Non-negative for protected rows, zero where the
        constraint does not act; of any sign for the others, whose constraints hold with equality.
    :param protected: Mask ``[n]`` of the rows that get their margin.
    :param active: Mask ``[n]``: protected rows whose constraint acts.
    :param stalled: Whether no row is protected; :math:`d` is then orthogonal to every row.
    :param margin: ``feasibility_margin`` of the protected rows that have a positive margin, after
        the span of the others has been projected out; see ``Projection.margin``.
    :param kkt_residual: Of the reduced program, relative, at most 1e-10; ``0.0`` if none
        was solved.
    :param method: What solved the reduced program; see ``Projection.method``.
    :param fallbacks: Number of methods given up on the way.
    """

    coefficients: Tensor
    protected: Tensor
    active: Tensor
    stalled: bool
    margin: float
    kkt_residual: float
    method: str
    fallbacks: int


def protectable(gram: Tensor) -> Tensor:
    r"""Find the rows along which progress is possible while no row loses.

    With :math:`K = \{d : a_j^\top d \ge 0 \text{ for all } j\}` these are
    :math:`P = \{i : a_i^\top d > 0 \text{ for some } d \in K\}`; one :math:`d \in K` serves them
    all. Row :math:`i` is outside exactly when :math:`-a_i` lies in the cone spanned by the rows.

    Distances of unit rows count as zero up to ``INFEASIBLE_MARGIN`` = 1e-7, as in
    ``feasibility_margin``, and up to 1e-6 between a row and the span of rows that cancel. The order
    of the rows does not matter except for rows this near to the bounds.

    :param gram: Inner products ``[n, n]`` of the rows, positive semidefinite.
    :returns: Mask ``[n]`` of :math:`P`; false for rows of length zero.
    :raises ValueError: If ``gram`` is malformed.
    :raises SolverError: If the least-squares solver does not finish.
    """
    matrix = as_gramian(gram)
    rows = unit_rows(matrix)
    mask = np.zeros(matrix.shape[0], dtype=np.bool_)
    if rows.kept.size:
        mask[rows.kept] = _split(factor(rows.gram))[0]
    return torch.from_numpy(mask)


def _split(coordinates: Floats) -> tuple[Mask, Floats]:
    """Return who is protectable, and a basis ``[r, k]`` of the span of the others.

    One least-squares problem decides many rows: it finds the shortest point of the hull of the rows
    that are left. If that is not zero, it is a direction of progress for all of them. If it is, the
    rows that take part cancel, and each of them is outside. Every step without loss is orthogonal
    to these, so their span is projected out of the rows that are left.

    :param coordinates: Unit rows ``[n, r]``.
    """
    reduced = coordinates.copy()
    inside: Mask = np.ones(len(coordinates), dtype=np.bool_)
    basis = np.zeros((coordinates.shape[1], 0))
    while True:
        lengths = np.linalg.norm(reduced, axis=1)
        # What the span of the rows outside nearly contains is outside with them.
        inside &= lengths > NOTHING_LEFT
        if not inside.any():
            return inside, basis
        y, distance = _shortest_of_hull(reduced[inside] / lengths[inside, None])
        if distance > INFEASIBLE_MARGIN:
            return inside, basis
        # -a_i is within distance / y_i of the cone of the others. A row with a small share is left
        # for later: it may make up for nothing but the rounding errors of the rows that cancel.
        cancelled: Mask = (y >= 1e-4 * y.max()) & (distance <= INFEASIBLE_MARGIN * y)
        cancelled[np.argmax(y)] = True
        outside = np.flatnonzero(inside)[cancelled]
        basis = np.hstack([basis, _span(reduced[outside] / lengths[outside, None])])
        reduced = coordinates - coordinates @ basis @ basis.T
        inside[outside] = False


def _shortest_of_hull(rows: Floats) -> tuple[Floats, float]:
    """Return the weights of the shortest point of the convex hull of rows, and its length."""
    equations = np.vstack([rows.T, np.ones((1, len(rows)))])
    target = np.zeros(len(equations))
    target[-1] = 1.0
    try:
        weights, _ = scipy.optimize.nnls(equations, target, maxiter=30 * len(rows))
    except RuntimeError as error:  # SciPy's word for too many iterations
        raise SolverError(
            f"Deciding which of {len(rows)} rows can be given progress must finish. "
            f'Got: {error}. Use `infeasible="average"` for such rounds.'
        ) from error
    weights = weights / float(weights.sum())
    return weights, float(np.linalg.norm(weights @ rows))


def project_with_protection(gram: Tensor, products: Tensor, margins: Tensor) -> ProtectedProjection:
    r"""Find the nearest point with progress for protectable rows and no loss for the others.

    .. math:: \min_d \tfrac12 \|d - a_0\|^2 \quad \text{subject to} \quad
              a_i^\top d \ge m_i \; (i \in P), \quad a_j^\top d \ge 0 \; (j \notin P)

    with :math:`P` from ``protectable``. For a row outside "at least zero" means "equal to zero", so
    the span of these rows is projected out of everything and the remaining program, which is
    feasible, is solved by ``project_onto_halfspaces``. The coefficients of the rows outside may
    have any sign: they are multipliers of equations. (They could be made non-negative, since some
    positive combination of these rows is zero; adding it changes nothing else.)

    Rows that are dependent only up to a rounding error of their entries count as dependent; the
    constraints then hold to about ``INFEASIBLE_MARGIN`` of the lengths of the row and of the data.
    With rows that are dependent in float64, and for those inside when nobody is outside, they hold
    as exactly as those of ``project_onto_halfspaces``.

    If :math:`P` is empty, the answer is the part of :math:`a_0` that is orthogonal to every row:
    zero if :math:`a_0` is a combination of them. Such a step is ``stalled``.

    :param gram: :math:`A A^\top` ``[n, n]``, positive semidefinite; any rank.
    :param products: :math:`A a_0` ``[n]``.
    :param margins: :math:`m` ``[n]``, at least zero; those of rows outside are not used.
    :raises ValueError: If an argument is malformed.
    :raises SolverError: If no solver's answer could be proven.
    """
    matrix = as_gramian(gram)
    n = matrix.shape[0]
    inner = as_vector(products, "products", n)
    needed = as_vector(margins, "margins", n)
    rows = unit_rows(matrix)
    coordinates = factor(rows.gram) if rows.kept.size else np.zeros((0, 0))
    unit_inner = inner[rows.kept] / rows.norms
    # Coordinates of the part of a_0 inside the span; the rest is orthogonal to every row.
    target = np.linalg.lstsq(coordinates, unit_inner, rcond=None)[0].astype(np.float64)
    inside, basis = _split(coordinates)
    projection = _reduced_projection(
        coordinates, target, needed[rows.kept] / rows.norms, inside, basis
    )
    if not projection.feasible:
        # Only within rounding of the bound on the margin: the rows left have no common direction.
        inside, basis = np.zeros_like(inside), _span(coordinates)
        projection = _reduced_projection(coordinates, target, needed[rows.kept], inside, basis)
    unit = np.zeros(rows.kept.size)
    unit[inside] = projection.multipliers.numpy()
    along = basis @ (basis.T @ (target + unit @ coordinates))
    if (~inside).any():
        unit[~inside] = -np.linalg.lstsq(coordinates[~inside].T, along, rcond=INFEASIBLE_MARGIN)[0]
    coefficients, protected, active = np.zeros(n), np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    coefficients[rows.kept] = unit / rows.norms
    protected[rows.kept] = inside
    active[rows.kept[inside]] = projection.active.numpy()
    return ProtectedProjection(
        coefficients=torch.from_numpy(coefficients),
        protected=torch.from_numpy(protected),
        active=torch.from_numpy(active),
        stalled=not bool(inside.any()),
        margin=projection.margin,
        kkt_residual=projection.kkt_residual,
        method=projection.method,
        fallbacks=projection.fallbacks,
    )


def _reduced_projection(
    coordinates: Floats, target: Floats, margins: Floats, inside: Mask, basis: Floats
) -> Projection:
    """Project onto the half-spaces of the rows inside, orthogonally to the basis."""
    reduced = coordinates[inside] - coordinates[inside] @ basis @ basis.T
    return project_onto_halfspaces(
        torch.from_numpy(reduced @ reduced.T),
        torch.from_numpy(reduced @ target),
        torch.from_numpy(margins[inside]),
    )


def _span(coordinates: Floats) -> Floats:
    """Return an orthonormal basis ``[r, k]`` of the span of rows ``[m, r]``."""
    if coordinates.size == 0:
        return np.zeros((coordinates.shape[1], 0))
    _, sizes, directions = np.linalg.svd(coordinates, full_matrices=False)
    basis: Floats = directions[sizes > INFEASIBLE_MARGIN * sizes[0]].T
    return basis
