"""FedLF's direction of one layer, and what to do with layers that have none."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..history import Represented
from ..linalg import INFEASIBLE_MARGIN, min_norm_weights, norm
from ._diagnostics import SMALLEST

# a fairness vector shorter than this, for losses of length one, is rounding: the losses are equal
EQUAL = 1e-12
# products with updates below minus this part of the longest one squared are a conflict
CONFLICT = 1e-6


@dataclass(frozen=True)
class Layer:
    """A solved block.

    :param columns: Where it is.
    :param direction: Its direction, float64.
    :param weights: Weights of clients, absent ones after those of the round, ``[r]``.
    :param stuck: Whether somebody moves it, but no direction serves everybody.
    """

    columns: slice
    direction: Tensor
    weights: Tensor
    stuck: bool


def fairness_vector(losses: Tensor) -> Tensor:
    r"""How losses change the cosine to equal losses, for losses of length one, float64 ``[n]``.

    It is :math:`\lVert F \rVert` times the paper's :math:`h`; only its direction counts. Zero for
    equal losses.
    """
    losses = losses.to(device="cpu", dtype=torch.float64)
    largest = float(losses.abs().max())
    if largest == 0:
        return torch.zeros_like(losses)
    unit = losses / largest / (losses / largest).norm()
    equal = torch.full_like(unit, 1 / math.sqrt(len(unit)))
    vector = (unit @ equal) * unit - equal
    return vector if float(vector.norm()) > EQUAL else torch.zeros_like(vector)


def solve_layers(
    rows: Represented, fairness: Tensor, layers: Sequence[slice], *, merge: bool
) -> list[Layer]:
    """Solve each layer; with ``merge`` join stuck ones to a neighbour until none is left."""
    solved = [_solve(rows, fairness, columns) for columns in layers]
    while merge and len(solved) > 1 and any(layer.stuck for layer in solved):
        at = next(i for i, layer in enumerate(solved) if layer.stuck)
        first = min(at, len(solved) - 2)
        columns = slice(solved[first].columns.start, solved[first + 1].columns.stop)
        solved[first : first + 2] = [_solve(rows, fairness, columns)]
    return solved


def safe_length(length: float, raw: float, against: float, longest: float) -> float:
    """The length of the step: that of the mean, shortened while it hurts a client noticeably.

    :param length: That of the mean.
    :param raw: That of the direction before scaling, the least it is shortened to.
    :param against: How far a step of length one goes against an update at most.
    :param longest: Length of the longest update.
    """
    while length * against > CONFLICT * longest**2:
        if length <= 2 * raw:
            return raw
        length /= 2
    return length


def _solve(rows: Represented, fairness: Tensor, columns: slice) -> Layer:
    block, n = rows.block(columns), rows.num_current
    moving = block.gram.diagonal() >= SMALLEST
    lengths, count = block.lengths, len(rows.client_ids)
    if not moving[:n].any():
        still = torch.zeros(count, dtype=torch.float64)
        return Layer(columns, block.combine(still), still, stuck=False)
    common = float(lengths[:n].mean())  # of all the round's clients, also those that stand still
    # each line is one row of the problem, as a combination of the block's rows
    lines = torch.diag(torch.where(moving, common / lengths, 0.0))
    fair = torch.zeros(count, dtype=torch.float64)
    fair[:n] = fairness
    fair = fair @ lines
    lines = lines[moving]
    noise = max(INFEASIBLE_MARGIN, float(block.rounding.max()) / 2)
    size = math.sqrt(max(float(fair @ block.gram @ fair), 0.0))
    if size > noise * common * float(fairness.norm()):
        lines = torch.cat([lines, common / size * fair[None]])
    products = lines @ block.gram @ lines.T
    coefficients = min_norm_weights((products + products.T) / 2) @ lines
    direction = block.combine(coefficients)
    stuck = norm(direction) <= noise * common
    return Layer(
        columns,
        torch.zeros_like(direction) if stuck else direction,
        coefficients * lengths / common,
        stuck,
    )
