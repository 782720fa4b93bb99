"""The weights of PCD, from inner products."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import torch
from torch import Tensor
from torchjd.aggregation import Weighting
from torchjd.linalg import PSDMatrix

from torchjd import Stateful

from ..errors import NonFiniteError, SolverError
from ..linalg import INFEASIBLE_MARGIN, project_onto_halfspaces

# a loss short by less than this part of the numbers compared is short by rounding only
ROUNDING = 1e-12


class PCDWeighting(Weighting[PSDMatrix], Stateful):
    """Weights of :class:`PCD`, from a Gramian whose first row is the primary loss's.

    Arguments, ``outcome`` and state are those of :class:`PCD`. A Gramian in float32 says little
    about gradients that are nearly parallel: margins and directions below the root of its
    precision, 1e-3 of the lengths, count as zero. :class:`PCD` makes its own Gramian in float64.
    """

    def __init__(
        self, tau: float | Sequence[float] = 0.02, *, beta: float = 0.999, eps: float = 1e-8
    ) -> None:
        super().__init__()
        several = not isinstance(tau, Real)
        taus = tuple(map(float, tau)) if several else (float(tau),)  # type: ignore[arg-type]
        if not all(0 <= value <= 1 for value in taus):
            raise ValueError(f"`tau` must be in [0, 1]. Got {tau}.")
        if not 0 <= beta < 1:
            raise ValueError(f"`beta` must be in [0, 1). Got {beta}.")
        if not 0 <= eps < math.inf:
            raise ValueError(f"`eps` must be at least 0 and finite. Got {eps}.")
        self.tau = taus if several else taus[0]
        self.beta = beta
        self.eps = eps
        self.reset()

    def reset(self) -> None:
        """Forget the running means."""
        self._means: tuple[float, ...] = ()
        self._calls = 0
        self.outcome = "none"

    def forward(self, gram: PSDMatrix, /) -> Tensor:
        """Weigh the rows, ``[m]``, and move the running means on.

        :param gram: ``[m, m]``, positive semidefinite.
        :raises NonFiniteError: If it is not finite; the means are left alone.
        :raises ValueError: If the number of rows is not that of earlier calls, or of ``tau``.
        """
        known = torch.finfo(gram.dtype).eps
        exact = gram if gram.dtype == torch.float64 else _nearest_gramian(gram)
        return self.weigh(exact, math.sqrt(10 * known)).to(gram)

    def weigh(self, gram: Tensor, precision: float) -> Tensor:
        """Weigh the rows, float64 ``[m]``, of which combinations are known up to ``precision``."""
        gram = gram.detach().to(device="cpu", dtype=torch.float64)
        gram = (gram + gram.T) / 2
        scale = self._next_scale(gram)
        weights = torch.zeros_like(scale)
        weights[:1] = 1.0  # of the primary loss alone
        if not gram.diagonal()[:1].any():
            self.outcome = "no-primary"
            return torch.zeros_like(scale)
        # a row whose squared length is below the smallest normal number has no direction left
        tiny = torch.finfo(torch.float64).tiny
        scale = torch.where(scale.square() * gram.diagonal() >= tiny, scale, 0.0)
        rows = gram * scale[:, None] * scale
        squared, products = rows.diagonal(), rows[1:, 0]
        margins = torch.tensor(self.tau, dtype=torch.float64) * squared[1:]
        compared = (squared[1:] * squared[0]).sqrt() + margins
        if not (margins - products > ROUNDING * compared).any():
            self.outcome = "primary"
            return weights
        try:
            found = project_onto_halfspaces(rows[1:, 1:], products, margins)
        except SolverError:
            self.outcome = "unproven"
            return weights
        coefficients = torch.cat([weights[:1], found.multipliers]) * scale
        length = math.sqrt(max(float(coefficients @ gram @ coefficients), 0.0))
        least = max(INFEASIBLE_MARGIN, precision)
        collapsed = length <= least * float(coefficients.abs() @ gram.diagonal().sqrt())
        if not found.feasible or found.margin <= least or (collapsed and margins.any()):
            self.outcome = "infeasible"
            return weights
        if collapsed:
            self.outcome = "collapsed"
            return torch.zeros_like(scale)
        self.outcome = "projected"
        return coefficients * (math.sqrt(float(gram[0, 0])) / length)

    def _next_scale(self, gram: Tensor) -> Tensor:
        """Move the running means on; one over the root of each, ``[m]``."""
        m = len(gram)
        if not torch.isfinite(gram).all():
            raise NonFiniteError(
                "Gradients must be finite, and small enough to square. Their inner products hold "
                "NaN or infinity."
            )
        if self._calls and m != len(self._means):
            raise ValueError(
                f"The losses must stay the same. Got {m} rows after {len(self._means)}. Call "
                f"`reset()` to begin again with others."
            )
        if isinstance(self.tau, tuple) and len(self.tau) != m - 1:
            raise ValueError(
                f"`tau` must be one number, or one for each of {m - 1} secondary losses. Got "
                f"{len(self.tau)}."
            )
        before = torch.tensor(self._means or (0.0,) * m, dtype=torch.float64)
        means = self.beta * before + (1 - self.beta) * gram.diagonal()
        self._means, self._calls = tuple(means.tolist()), self._calls + 1
        corrected = means / (1 - self.beta**self._calls) + self.eps
        return torch.where(corrected > 0, corrected.rsqrt(), 0.0)

    def get_extra_state(self) -> dict[str, Any]:
        """The running means, for ``state_dict()``."""
        return {"means": self._means, "calls": self._calls}

    def set_extra_state(self, state: Mapping[str, Any]) -> None:
        """Go on from the running means of a ``state_dict()``."""
        self._means, self._calls = tuple(state["means"]), int(state["calls"])

    def arguments(self, name: str) -> str:
        """How a constructor of that name was called."""
        return f"{name}(tau={self.tau}, beta={self.beta}, eps={self.eps})"

    def __repr__(self) -> str:
        return self.arguments("PCDWeighting")


def _nearest_gramian(gram: Tensor) -> Tensor:
    """Take out of a rounded Gramian, float64 ``[m, m]``, what no rows could have given."""
    gram = gram.detach().to(device="cpu", dtype=torch.float64)
    if not torch.isfinite(gram).all():
        return gram
    lengths = gram.diagonal().clamp(min=0.0).sqrt()
    inverse = torch.where(lengths > 0, 1 / lengths, 0.0)
    values, vectors = torch.linalg.eigh(gram * inverse[:, None] * inverse)
    unit: Tensor = (vectors * values.clamp(min=0.0)) @ vectors.T
    return unit * lengths[:, None] * lengths
