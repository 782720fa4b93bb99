"""FedFV's two kinds of projection, in coefficients of the updates."""

from __future__ import annotations

import torch
from torch import Tensor

from ._diagnostics import SMALLEST


def without_internal(gram: Tensor, order: list[int], kept: set[int]) -> tuple[Tensor, list[int]]:
    """Each update after its projections, as coefficients ``[n, r]``, and how many it took."""
    own = torch.eye(len(order), len(gram), dtype=torch.float64)
    conflicts = [0] * len(order)
    for i in set(order) - kept:
        for j in order:
            product = _product(gram[j], own[i])
            if j != i and product < 0 and gram[j, j] >= SMALLEST:
                own[i, j] -= product / gram[j, j]
                conflicts[i] += 1
    return own, conflicts


def without_external(
    gram: Tensor, coefficients: Tensor, last: list[int], rounds: list[int]
) -> tuple[Tensor, set[int]]:
    """The mean after its projections, and the rows that were against it on the way."""
    against: set[int] = set()
    for round in rounds:
        group = [k for k, seen in enumerate(last) if seen == round]
        group = [k for k in group if _product(gram[k], coefficients) < 0]
        total = torch.zeros_like(coefficients)
        total[group] = 1.0
        squared, product = float(total @ gram @ total), _product(gram @ total, coefficients)
        if product < 0 and squared >= SMALLEST:
            coefficients = coefficients - product / squared * total
            against |= set(group)
    return coefficients, against


def _product(products: Tensor, coefficients: Tensor) -> float:
    """A row's product with a combination; 0 where it is rounding alone."""
    product = float(products @ coefficients)
    rounding = 4 * torch.finfo(torch.float64).eps * float(products.abs() @ coefficients.abs())
    return product if abs(product) > rounding else 0.0
