"""The partition of the task-wise benchmarks, index for index."""

from __future__ import annotations

import numpy as np

from ._feasibility import as_concentration, as_whole
from ._labels import Indices, Labels, encode_labels, indices_by_label
from ._partition import Partition


def strata_partition(
    labels: Labels, *, num_clients: int, samples_per_client: int, alpha: float, seed: int = 0
) -> Partition:
    """Draw each client's shares of the strata from a Dirichlet distribution, sizes equal.

    A stratum is a label or, for ``[n, m]`` labels, a combination of labels (``10 L + R``). A client
    takes the integer part of share times size from each stratum; what the rounding leaves is
    filled at random from everything not given yet. A stratum that runs short is recycled, so
    samples may be ``repeated`` over clients, and others stay ``unassigned``.

    Source: the partition code of FedCMOO (Askin et al., AISTATS 2025), reproduced draw for draw
    with NumPy's legacy generator; FedHV's benchmarks use it with seed 10.

    :param labels: ``[n]`` or ``[n, m]``, of any hashable kind.
    :param num_clients: Number of clients.
    :param samples_per_client: Samples of each client, at most ``n``.
    :param alpha: Concentration, positive. Below about 0.005 the legacy generator's proportions can
        underflow, which is an error.
    :param seed: In ``[0, 2**32)``, as the legacy generator takes it.
    :raises ValueError: If a value is out of range, the samples run out, or the proportions
        underflow.
    """
    alpha = as_concentration(alpha)
    num_clients = as_whole("num_clients", num_clients, least=1)
    samples_per_client = as_whole("samples_per_client", samples_per_client, least=1)
    seed = as_whole("seed", seed)
    if not 0 <= seed < 2**32:
        raise ValueError(f"`seed` must be in [0, 2**32) for this partition. Got {seed}.")
    codes, classes = encode_labels(labels)
    num_samples = len(codes)
    if samples_per_client > num_samples:
        raise ValueError(
            f"`samples_per_client` must be at most {num_samples}, the number of samples. "
            f"Got {samples_per_client}."
        )
    rng = np.random.RandomState(seed)
    rng.shuffle(np.arange(num_samples))  # step 1: only moves the generator on
    pools = indices_by_label(codes, len(classes))
    for pool in pools:  # step 2
        rng.shuffle(pool)
    used = [pool[:0] for pool in pools]
    parts = []
    for client in range(num_clients):  # step 3
        shares = rng.dirichlet(np.full(len(classes), alpha))
        if not np.isfinite(shares).all():
            raise ValueError(
                f"The shares of client {client} underflow with `alpha` {alpha}. "
                "Use a larger `alpha`, another `seed`, or `client_dirichlet_partition`."
            )
        counts = (shares * samples_per_client).astype(np.int64)  # the integer part
        taken = [pools[0][:0]]
        for label in np.flatnonzero(counts):
            count = counts[label]
            if len(pools[label]) < count:
                pools[label] = np.concatenate([used[label], pools[label]])
                rng.shuffle(pools[label])
                used[label] = pools[label][:0]
            taken.append(pools[label][:count])
            used[label] = np.concatenate([used[label], pools[label][:count]])
            pools[label] = pools[label][count:]
        missing = samples_per_client - sum(map(len, taken))
        if missing:
            taken.append(_fill(rng, codes, pools, used, missing, (client, num_clients)))
        parts.append(np.concatenate(taken))
    parameters = {"samples_per_client": samples_per_client, "alpha": alpha}
    return Partition(parts, num_samples, name="strata", seed=seed, parameters=parameters)


def _fill(
    rng: np.random.RandomState,
    codes: Indices,
    pools: list[Indices],
    used: list[Indices],
    missing: int,
    progress: tuple[int, int],
) -> Indices:
    """Take ``missing`` samples from all pools together and move them to ``used`` (step 4)."""
    remaining = np.concatenate(pools)
    if len(remaining) < missing:
        client, num_clients = progress
        raise ValueError(
            f"The samples ran out at client {client} of {num_clients}: it needs {missing} more and "
            f"{len(remaining)} are left. Use `num_clients` of at most {client} with this seed, or "
            f"`samples_per_client` of at most {len(codes) // num_clients}."
        )
    rng.shuffle(remaining)
    taken = remaining[::-1][:missing].copy()
    is_taken = np.zeros(len(codes), dtype=bool)
    is_taken[taken] = True
    for label in np.unique(codes[taken]):
        used[label] = np.concatenate([used[label], taken[codes[taken] == label]])
        pools[label] = pools[label][~is_taken[pools[label]]]
    return taken
