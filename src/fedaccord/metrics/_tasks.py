"""Quantities of several tasks' losses."""

from __future__ import annotations

import numpy as np

from ._values import Values, as_vector


def hypervolume(losses: Values, reference: float | Values = 3.0) -> float:
    r"""Return :math:`\prod_j (r_j - \ell_j)`, and 0 as soon as one loss reaches its reference.

    Source: the evaluation of FedHV, with reference 3 for every task.

    :param losses: ``[m]``, one per task.
    :param reference: One number, or one per task ``[m]``.
    :raises ValueError: If a value is NaN, there is none, or the numbers differ.
    """
    reached = as_vector(losses, "losses")
    bound = as_vector(np.atleast_1d(np.asarray(reference, dtype=np.float64)), "reference")
    if len(bound) not in (1, len(reached)):
        raise ValueError(
            f"`reference` must be one number or one per task. "
            f"Got {len(bound)} for {len(reached)} tasks."
        )
    slacks = bound - reached
    return float(np.prod(slacks)) if (slacks > 0).all() else 0.0
