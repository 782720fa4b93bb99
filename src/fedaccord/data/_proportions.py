"""Dirichlet proportions that neither underflow nor divide by zero, and their whole numbers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ._labels import Indices

Floats = npt.NDArray[np.float64]


class DirichletDraws:
    r"""Draws of :math:`\mathrm{Dir}(\alpha 1)`, kept as logarithms.

    A gamma variable with a small shape is mostly too small for floating point: at ``alpha`` .001
    every second one is 0, and all of a draw can be. Its logarithm is
    :math:`\log\Gamma_{\alpha+1} - E/\alpha` with a standard exponential :math:`E`, an ordinary
    number (Marsaglia and Tsang, ACM TOMS 2000), and proportions are a softmax of it.
    Among some of the entries they follow the Dirichlet distribution of those, so nobody has to be
    divided by what is left.

    :param rng: Where they are drawn from.
    :param alpha: Concentration, positive.
    :param shape: ``[..., k]``, a draw in every row.
    """

    def __init__(self, rng: np.random.Generator, alpha: float, *shape: int) -> None:
        # a small alpha divides differences only, where overflow means a proportion of 0
        self._divisor = min(alpha, 1.0)
        self._scaled = self._divisor * np.log(rng.standard_gamma(alpha + 1, shape))
        self._scaled -= rng.standard_exponential(shape) / max(alpha, 1.0)

    def weights(self, row: int, among: npt.NDArray[np.bool_] | None = None) -> Floats:
        """What the proportions ``[k]`` of one draw are proportional to; the largest is 1.

        :param row: Which.
        :param among: ``[k]``, which entries share; the others get 0. At least one does.
        """
        scaled = self._scaled[row]
        if among is not None:
            scaled = np.where(among, scaled, -np.inf)
        with np.errstate(over="ignore"):
            weights: Floats = np.exp((scaled - scaled.max()) / self._divisor)
        return weights


def cut(weights: Floats, total: int) -> Indices:
    """Cut ``total`` things at the rounded-down cumulated proportions.

    :param weights: ``[k]``, not negative, at least one positive; proportions times any number.
    :return: Whole numbers ``[k]`` with sum ``total``; an entry of weight 0 gets 0.
    """
    heights = np.cumsum(weights)
    # divided by the last, so that the cut after the last positive entry is at `total` exactly
    cuts = np.floor(heights / heights[-1] * total).astype(np.int64)
    counts: Indices = np.diff(cuts, prepend=0)
    return counts
