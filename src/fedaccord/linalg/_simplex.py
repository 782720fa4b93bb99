"""Projection onto the probability simplex."""

from __future__ import annotations

import torch
from torch import Tensor


def project_onto_simplex(vector: Tensor) -> Tensor:
    r"""Return the point of the probability simplex nearest to a vector.

    With :math:`u` the entries in descending order, :math:`\rho` the largest :math:`k` with
    :math:`u_k + (1 - \sum_{j \le k} u_j) / k > 0` and
    :math:`\vartheta = (\sum_{j \le \rho} u_j - 1) / \rho`, the projection is
    :math:`\max(y - \vartheta, 0)`.

    Source: Duchi, Shalev-Shwartz, Singer and Chandra, "Efficient projections onto the
    :math:`\ell_1`-ball for learning in high dimensions", ICML 2008, Figure 1.

    :param vector: Any finite vector ``[n]`` with ``n >= 1``.
    :returns: ``[n]`` float64 on the CPU, non-negative, of sum one up to rounding; entries off the
        support are exactly zero.
    :raises ValueError: If ``vector`` is empty, not one-dimensional or not finite.
    """
    if vector.dim() != 1 or vector.numel() == 0:
        raise ValueError(f"`vector` must have shape [n] with n >= 1. Got {list(vector.shape)}.")
    y = vector.detach().to(device="cpu", dtype=torch.float64)
    if not torch.isfinite(y).all():
        raise ValueError("`vector` must be finite. Got NaN or infinity.")
    # Shifting every entry alike leaves the projection as it is and keeps large entries exact.
    y = y - y.max()
    descending = torch.sort(y, descending=True).values
    counts = torch.arange(1, y.numel() + 1, dtype=torch.float64)
    # The partial sum must include the entry under test; without it the result can exceed one.
    thresholds = (torch.cumsum(descending, dim=0) - 1.0) / counts
    support = int(torch.nonzero(descending > thresholds).max())
    return torch.clamp(y - thresholds[support], min=0.0)
