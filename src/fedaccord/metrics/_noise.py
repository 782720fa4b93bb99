"""How much of what clients' accuracies show is the noise of few test rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy.special import ndtri
from torch import Tensor

from ._values import Values, as_vector, require_level


@dataclass(frozen=True)
class VarianceParts:
    """The variance of accuracies over clients, taken apart.

    :param total: Population variance of the measured accuracies, ``spread`` squared.
    :param sampling: What the finite numbers of test rows contribute to it on average.
    :param between: The rest, an unbiased estimate of the variance of the clients' true accuracies;
        negative if the measured ones differ less than the noise alone would make them.
    :param num_clients: Number of clients counted.
    :param num_missing: Number left out: those without a value or with fewer than two test rows,
        which say nothing about their own noise.
    """

    total: float
    sampling: float
    between: float
    num_clients: int
    num_missing: int


def variance_parts(accuracies: Values, num_examples: Values) -> VarianceParts:
    r"""Separate clients' differences from the noise of their few test rows.

    An accuracy measured on :math:`n_i` rows has variance :math:`p_i (1 - p_i) / n_i` around its
    true value, of which :math:`v_i = a_i (1 - a_i) / (n_i - 1)` is an unbiased estimate. The
    population variance of the measured accuracies exceeds that of the true ones by
    :math:`\frac{N - 1}{N^2} \sum_i v_i` on average, which is ``sampling``.

    :param accuracies: ``[N]`` in ``[0, 1]``, each the fraction of a client's own test rows that is
        correct; NaN for a client without a value.
    :param num_examples: ``[N]``, numbers of test rows.
    :raises ValueError: If no client is left, lengths differ, or an accuracy is out of range.
    """
    values = as_vector(accuracies, "accuracies", missing=True)
    counts = as_vector(num_examples, "num_examples")
    if len(values) != len(counts):
        raise ValueError(
            f"`num_examples` must have one entry per client. "
            f"Got {len(counts)} for {len(values)} accuracies."
        )
    used = ~np.isnan(values) & (counts >= 2)
    if not used.any():
        raise ValueError("At least one client must have a value and two test rows. Got none.")
    values, counts = values[used], counts[used]
    if values.min() < 0 or values.max() > 1:
        raise ValueError(f"`accuracies` must be in [0, 1]. Got {values.min()} to {values.max()}.")
    noise = (values * (1 - values) / (counts - 1)).mean()
    total, sampling = float(values.var()), float((1 - 1 / len(values)) * noise)
    return VarianceParts(total, sampling, total - sampling, len(values), int((~used).sum()))


def wilson_interval(accuracies: Tensor, num_examples: Tensor, *, level: float = 0.95) -> Tensor:
    r"""Return Wilson's confidence interval of each accuracy.

    :math:`\left(a + \frac{z^2}{2n} \pm z \sqrt{\frac{a (1 - a)}{n} + \frac{z^2}{4 n^2}}\right)
    / \left(1 + \frac{z^2}{n}\right)`, which stays inside ``[0, 1]`` and is not empty where all rows
    are correct or none. Source: Wilson, "Probable inference, the law of succession, and
    statistical inference", 1927.

    :param accuracies: ``[N, ...]`` in ``[0, 1]``, or NaN.
    :param num_examples: ``[N]``, numbers of test rows.
    :param level: Probability that an interval holds the true accuracy, in ``(0, 1)``.
    :return: ``[N, ..., 2]`` float64, NaN where there is no value.
    :raises ValueError: If ``level`` is out of range or the lengths differ.
    """
    require_level(level)
    if accuracies.ndim == 0 or accuracies.shape[:1] != num_examples.shape:
        raise ValueError(
            f"`num_examples` must have one entry per client. "
            f"Got {tuple(num_examples.shape)} for accuracies {tuple(accuracies.shape)}."
        )
    values = accuracies.to(torch.float64)
    n = num_examples.to(torch.float64).reshape(-1, *[1] * (values.ndim - 1))
    z = float(ndtri((1 + level) / 2))
    centre = values + z**2 / (2 * n)
    half = z * (values * (1 - values) / n + z**2 / (4 * n**2)).sqrt()
    ends = torch.stack([centre - half, centre + half], -1) / (1 + z**2 / n).unsqueeze(-1)
    # rounding alone leaves the range, by 1e-17 for a = 0
    return ends.clamp(0, 1)
