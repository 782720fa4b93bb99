"""The mathematics of rules: inner products, projections, minimum-norm points; float64 on the CPU.

Rows may be as long as a model; everything else works on their Gramian ``[n, n]``.
"""

from __future__ import annotations

from ._dense import combine, gramian, norm
from ._halfspaces import Projection, project_onto_halfspaces
from ._hull import INFEASIBLE_MARGIN, feasibility_margin
from ._min_norm import min_norm_weights
from ._protect import ProtectedProjection, project_with_protection, protectable
from ._simplex import project_onto_simplex

__all__ = [
    "INFEASIBLE_MARGIN",
    "Projection",
    "ProtectedProjection",
    "combine",
    "feasibility_margin",
    "gramian",
    "min_norm_weights",
    "norm",
    "project_onto_halfspaces",
    "project_onto_simplex",
    "project_with_protection",
    "protectable",
]
