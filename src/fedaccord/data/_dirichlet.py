"""Clients of equal size whose class proportions are drawn from a Dirichlet distribution."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..random import derive
from ._feasibility import as_concentration, as_whole, require_supply
from ._labels import Indices, Labels, encode_labels, indices_by_label
from ._partition import Partition


def client_dirichlet_partition(
    labels: Labels, *, num_clients: int, samples_per_client: int, alpha: float, seed: int = 0
) -> Partition:
    r"""Draw each client's class proportions from :math:`\mathrm{Dir}(\alpha 1_C)`, sizes equal.

    Client by client, the classes of its samples are drawn from its proportions and the samples
    from those that are left, without replacement. When a class runs out, what is still missing is
    drawn from the same proportions restricted to the classes that last. Later clients therefore
    get less of what they would have drawn as the samples run short. No sample is given twice; those
    left over are ``unassigned``.

    Source: Hsu, Qi, Brown, arXiv:1909.06335, section 3, with a uniform prior over the classes.

    :param labels: ``[n]`` or ``[n, m]``, the class of each sample; rows count as classes.
    :param num_clients: Number of clients.
    :param samples_per_client: Samples of each client; ``num_clients * samples_per_client`` may not
        exceed ``n``.
    :param alpha: Concentration, positive. Small means few classes per client.
    :param seed: Any integer.
    :raises ValueError: If the samples do not suffice or a value is out of range.
    """
    alpha = as_concentration(alpha)
    num_clients = as_whole("num_clients", num_clients, least=1)
    samples_per_client = as_whole("samples_per_client", samples_per_client, least=1)
    seed = as_whole("seed", seed)
    codes, classes = encode_labels(labels)
    require_supply(num_clients, samples_per_client, len(codes))
    rng = np.random.default_rng(derive(seed, "partition", "client_dirichlet"))
    pools = [rng.permutation(pool) for pool in indices_by_label(codes, len(classes))]
    left = np.array([len(pool) for pool in pools])
    parts = []
    for _ in range(num_clients):
        shares = rng.dirichlet(np.full(len(classes), alpha))
        if not np.isfinite(shares).all():
            raise ValueError(f"`alpha` is too small to draw proportions with. Got {alpha}.")
        counts = _draw_counts(rng, shares, left, samples_per_client)
        parts.append(_take(pools, left, counts))
        left = left - counts
    parameters = {"samples_per_client": samples_per_client, "alpha": alpha}
    return Partition(parts, len(codes), name="client_dirichlet", seed=seed, parameters=parameters)


def _draw_counts(
    rng: np.random.Generator, shares: npt.NDArray[np.float64], left: Indices, size: int
) -> Indices:
    counts = np.zeros_like(left)
    while (missing := size - counts.sum()) > 0:
        room = left - counts
        open_shares = np.where(room > 0, shares, 0.0)
        if open_shares.sum() == 0:  # every class the client wants has run out
            open_shares = room.astype(np.float64)
        wanted = rng.multinomial(missing, open_shares / open_shares.sum())
        counts = counts + np.minimum(wanted, room)
    return counts


def _take(pools: list[Indices], left: Indices, counts: Indices) -> Indices:
    # a pool is shuffled once; its first `left` entries are still to be given
    taken = [pool[end - count : end] for pool, end, count in zip(pools, left, counts, strict=True)]
    return np.concatenate(taken)
