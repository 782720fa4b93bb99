"""The shortest combination with weights of sum one between bounds: solver and proof."""

from __future__ import annotations

import math
from dataclasses import dataclass

import daqp
import numpy as np
import scipy.linalg

from ..errors import SolverError
from ._nonnegative import TOLERANCE, rounding, solve_nonnegative
from ._rows import SMALLEST, Floats, Indices, unit_rows

# Weights of the first solver this near to a bound are taken to be on it.
SNAP = 1e-12


@dataclass(frozen=True)
class Box:
    """Weights of sum one between two bounds ``[n]``."""

    lower: Floats
    upper: Floats

    @property
    def is_simplex(self) -> bool:
        """Whether no bound but zero can act."""
        return bool((self.lower <= 0).all() and (self.upper >= 1).all())

    def minimiser(self, gradient: Floats) -> tuple[Floats, float]:
        """Return the weights that minimise a linear function, and the price of the sum.

        Everything starts at the lower bound; what is left of the sum goes to the smallest entries
        of the gradient first. The price is the entry that receives the last of it.
        """
        weights, left, price = self.lower.copy(), 1.0 - float(self.lower.sum()), float("-inf")
        for i in np.argsort(gradient, kind="stable"):
            price = float(gradient[i])
            amount = min(left, float(self.upper[i] - self.lower[i]))
            weights[i] += amount
            left -= amount
            if left <= 0:
                break
        return weights, price

    def admit(self, weights: Floats, *, snap: float = 0.0) -> Floats:
        """Return nearby weights of sum one, exactly on a bound where they are within ``snap``."""
        weights = np.where(weights - self.lower <= snap, self.lower, weights)
        weights = np.where(self.upper - weights <= snap, self.upper, weights)
        missing = 1.0 - float(weights.sum())
        # What is left of the sum goes to weights between their bounds, in proportion: a weight of
        # 1e-10 on a long row must not be changed by a rounding error of one.
        room = np.minimum(weights - self.lower, self.upper - weights)
        if not (room > 0).any():
            room = self.upper - weights if missing > 0 else weights - self.lower
        total = float(room.sum())
        return weights + missing * (room / total) if total > 0 else weights


def duality_gap(gram: Floats, box: Box, weights: Floats) -> float:
    r"""Return what any other weights could gain at most, relative to :math:`w^\top |G| w`."""
    gradient = gram @ weights
    best, _ = box.minimiser(gradient)
    terms = np.abs(gram) @ weights
    length = float(weights @ terms)
    astray = abs(1.0 - float(weights.sum()))
    # The longest row has length one; a combination 1e-10 times shorter is zero.
    if length <= 1e-20:
        return astray
    scale = max(length, rounding(len(gram)) / TOLERANCE * float(terms @ best))
    # Differences of weights are summed, not two large sums subtracted.
    return abs(float(gradient @ (weights - best))) / scale + astray


def solve_boxed(gram: Floats, box: Box) -> Floats:
    """Return weights with a proven gap, for a Gramian with largest diagonal entry one.

    :raises SolverError: If the gap cannot be proven.
    """
    weights = _by_daqp(gram, box)
    gap = duality_gap(gram, box, weights)
    if gap > 1e-15:
        improved = box.admit(_by_active_set(gram, box, weights))
        better = duality_gap(gram, box, improved)
        if better < gap:
            weights, gap = improved, better
    if gap > TOLERANCE:
        raise SolverError(
            f"The duality gap of the weights must be at most {TOLERANCE:g}. Got {gap:.2g} for "
            f"{len(weights)} rows. Check that `gram` is a positive semidefinite Gramian in float64."
        )
    return weights


def solve_simplex(gram: Floats) -> Floats:
    """Return weights with a proven gap for the plain simplex and rows that are not zero.

    With the row scaled to unit length and the weight times the length as unknown, this is the
    bounded program of ``_hull`` with lengths in place of ones: rows may differ in length by any
    factor.
    """
    rows = unit_rows(gram)
    inverse = rows.norms.min() / rows.norms
    box = Box(np.zeros_like(inverse), np.ones_like(inverse))

    def weights(u: Floats) -> Floats:
        scaled = u * inverse
        total = float(scaled.sum())
        return scaled / total if total > 0 else np.full_like(u, np.nan)

    answer = solve_nonnegative(
        rows.gram + np.outer(inverse, inverse),
        inverse,
        lambda u: duality_gap(gram, box, weights(u)) if u.any() else math.inf,
    )
    return weights(answer.x)


def _by_daqp(gram: Floats, box: Box) -> Floats:
    n = gram.shape[0]
    weights, _, status, _ = daqp.solve(
        gram,
        np.zeros(n),
        np.ones((1, n)),
        np.append(box.upper, 1.0),
        np.append(box.lower, 1.0),
        np.append(np.zeros(n, dtype=np.int32), np.int32(5)),  # 5 marks an equality
        primal_tol=1e-12,
    )
    if status <= 0 or not np.isfinite(weights).all():
        return box.minimiser(np.diagonal(gram))[0]
    return box.admit(weights, snap=SNAP)


def _by_active_set(gram: Floats, box: Box, start: Floats) -> Floats:
    """Primal active-set method; Nocedal and Wright, "Numerical optimization", algorithm 16.3.

    Works for any rank: along dependent rows the objective is flat, and no step is taken there. The
    step is computed for weights times norms, which makes rows of very different lengths alike.
    """
    diagonal = np.diagonal(gram)
    norms = np.sqrt(np.where(diagonal >= SMALLEST, diagonal, 1.0))
    weights = start.copy()
    best, best_gap, patience = weights, duality_gap(gram, box, weights), weights.size + 20
    free = (weights > box.lower) & (weights < box.upper)
    for _ in range(10 * weights.size + 50):
        gradient = gram @ weights
        step = np.zeros_like(weights)
        inside = np.flatnonzero(free)
        if inside.size > 1:
            step[inside] = _newton(gram, gradient, norms, inside)
        up, down = step > 0, step < 0
        reach = np.full_like(weights, np.inf)
        reach[up] = (box.upper - weights)[up] / step[up]
        reach[down] = (box.lower - weights)[down] / step[down]
        blocking = int(np.argmin(reach))
        if reach[blocking] < 1.0:
            weights = weights + reach[blocking] * step
            weights[blocking] = box.upper[blocking] if up[blocking] else box.lower[blocking]
            free[blocking] = False
            continue
        weights = weights + step
        gap = duality_gap(gram, box, weights)
        patience -= 1
        if gap < best_gap:
            best, best_gap, patience = weights, gap, weights.size + 20
        if best_gap <= 1e-15 or patience == 0:
            break
        gradient = gram @ weights
        noise = 4e-16 * (np.abs(gram) @ weights)
        price = box.minimiser(gradient)[1] if inside.size == 0 else gradient[inside].mean()
        wanted = np.where(weights <= box.lower, price - gradient, gradient - price) - noise
        wanted[free | (box.lower >= box.upper)] = 0.0
        if wanted.max() <= 0:
            break
        free[int(np.argmax(wanted))] = True
    return best


def _newton(gram: Floats, gradient: Floats, norms: Floats, inside: Indices) -> Floats:
    """Return the step of the free weights, of sum zero, to the minimum without bounds."""
    sizes = norms[inside]
    unit = gram[np.ix_(inside, inside)] / sizes[:, None] / sizes[None, :]
    slope, normal = gradient[inside] / sizes, 1.0 / sizes
    try:
        triangle = scipy.linalg.cho_factor(unit, check_finite=False)
        if np.diagonal(triangle[0]).min() > 1e-5:
            ascent, price = scipy.linalg.cho_solve(
                triangle, np.stack([slope, normal], axis=1), check_finite=False
            ).T
            multiplier = float(normal @ ascent) / float(normal @ price)
            step: Floats = (multiplier * price - ascent) / sizes
            return step
    except np.linalg.LinAlgError:
        pass  # dependent rows: below
    # The last columns of the full QR factor span the steps that keep the sum.
    keep = scipy.linalg.qr(normal[:, None])[0][:, 1:]
    values, vectors = np.linalg.eigh(keep.T @ unit @ keep)
    inverse = np.where(values > 1e-15 * values[-1], 1.0 / np.maximum(values, SMALLEST), 0.0)
    return -(keep @ (vectors @ (inverse * (vectors.T @ (keep.T @ slope))))) / sizes
