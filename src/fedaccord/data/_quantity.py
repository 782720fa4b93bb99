"""Random parts whose sizes are drawn from a Dirichlet distribution."""

from __future__ import annotations

import numpy as np

from ..random import derive
from ._feasibility import as_concentration, as_whole, count_samples, require_minimum
from ._labels import Labels
from ._partition import Partition
from ._proportions import DirichletDraws, cut


def quantity_partition(
    samples: int | Labels,
    *,
    num_clients: int,
    alpha: float,
    min_samples: int = 10,
    seed: int = 0,
) -> Partition:
    r"""Deal the samples out at random, in amounts from :math:`\mathrm{Dir}(\alpha 1_N)`.

    Every client gets ``min_samples``; the rest is cut by the proportions. Clients differ in how
    much they have, and not in what. Every sample is given once.

    Source: Li, Diao, Chen, He, ICDE 2022, arXiv:2102.02079 (NIID-Bench), "quantity skew".
    Deviation: they draw the proportions of all samples again until everybody has the minimum, which
    may be never.

    :param samples: How many samples there are, or anything with one entry per sample.
    :param num_clients: Number of clients, ``N``.
    :param alpha: Concentration, positive. Small means few clients with nearly everything.
    :param min_samples: Least number of samples of a client, at least 0.
    :param seed: Any integer.
    :raises ValueError: If the samples do not suffice or a value is out of range.
    """
    alpha = as_concentration(alpha)
    num_samples = count_samples(samples)
    num_clients = as_whole("num_clients", num_clients, least=1)
    min_samples = as_whole("min_samples", min_samples, least=0)
    seed = as_whole("seed", seed)
    require_minimum(num_clients, min_samples, num_samples)
    rng = np.random.default_rng(derive(seed, "partition", "quantity"))
    weights = DirichletDraws(rng, alpha, 1, num_clients).weights(0)
    sizes = min_samples + cut(weights, num_samples - num_clients * min_samples)
    parts = np.split(rng.permutation(num_samples), np.cumsum(sizes)[:-1])
    parameters = {"alpha": alpha, "min_samples": min_samples}
    return Partition(parts, num_samples, name="quantity", seed=seed, parameters=parameters)
