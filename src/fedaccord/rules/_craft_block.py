"""CRAFT's direction of one block."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ..cohort import Cohort
from ..linalg import combine, gramian, norm
from ._diagnostics import checked_lengths


def resolve(cohort: Cohort, rows: Tensor, shares: Tensor, previous: Tensor) -> tuple[Tensor, float]:
    """One block's direction, and how far progress is from the shares at most.

    :param rows: The updates in the block, ``[n, block]``.
    """
    gram = gramian(rows)
    lengths = checked_lengths(cohort, gram.diagonal())
    usable = lengths > 0
    count = int(usable.sum())
    if count == 0:
        return torch.zeros_like(previous), 0.0
    if count == 1:
        return rows[usable][0].to(torch.float64), 0.0  # step 1: as it is, not normalised
    scale = torch.where(usable, 1 / lengths, 0.0)
    unit = (gram * scale[:, None] * scale)[usable][:, usable]
    rho = shares[usable]
    rho = rho / rho.sum() if rho.sum() > 0 else torch.full_like(rho, 1 / count)
    size = norm(previous)
    past = previous / size if size else previous
    missing = rho - (gramian(rows, past[None])[:, 0] * scale)[usable]
    shift = _pseudo_inverse(unit, cutoff=cutoff(rows.dtype)) @ missing
    coefficients = torch.zeros_like(scale)
    coefficients[usable] = shift
    direction = past + combine(rows, coefficients * scale)
    if norm(direction) <= 4 * torch.finfo(rows.dtype).eps * float(shift.abs().sum() + (size > 0)):
        direction = torch.zeros_like(direction)
    return direction, float((unit @ shift - missing).abs().max())


def cutoff(dtype: torch.dtype) -> float:
    """Singular values below this part of the largest count as zero.

    Unit rows are known to the precision of their dtype, and the square root of float64's is all
    that a Gramian can resolve. The default of a pseudo-inverse of the rows themselves grows with
    their length, and would drop every client of a large block.
    """
    return max(torch.finfo(dtype).eps, 1e-7)


def _pseudo_inverse(unit: Tensor, *, cutoff: float) -> Tensor:
    """Of a Gramian ``[k, k]`` of unit rows, whose eigenvalues are squared singular values."""
    values, vectors = np.linalg.eigh(unit.numpy())
    large = values > cutoff**2 * values[-1]
    kept = vectors[:, large]
    return torch.from_numpy((kept / values[large]) @ kept.T)
