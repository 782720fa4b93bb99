"""The pathological split: samples in the order of their labels, cut into shards."""

from __future__ import annotations

import numpy as np

from ..random import derive
from ._feasibility import as_whole, counted
from ._labels import Labels, encode_labels, indices_by_label
from ._partition import Partition


def shards_partition(
    labels: Labels, *, num_clients: int, shards_per_client: int = 2, seed: int = 0
) -> Partition:
    """Sort the samples by label, cut them into equal shards, deal the shards out at random.

    There are ``num_clients * shards_per_client`` shards. Where that does not divide the number of
    samples, the first shards hold one more, so that every sample is given once; sizes of clients
    differ by ``shards_per_client`` at most. A shard lies within one class where classes are large,
    so a client has about ``shards_per_client`` of them.

    Source: McMahan, Moore, Ramage, Hampson, Agüera y Arcas, AISTATS 2017, section 3, with 200
    shards of 300 samples, 2 for each of 100 clients. The order within a class, which they leave
    open, is random.

    :param labels: ``[n]`` or ``[n, m]``, the class of each sample; rows count as classes.
    :param num_clients: Number of clients.
    :param shards_per_client: Shards of each client; ``num_clients * shards_per_client`` may not
        exceed ``n``.
    :param seed: Any integer.
    :raises ValueError: If there are fewer samples than shards or a value is out of range.
    """
    num_clients = as_whole("num_clients", num_clients, least=1)
    shards_per_client = as_whole("shards_per_client", shards_per_client, least=1)
    seed = as_whole("seed", seed)
    codes, classes = encode_labels(labels)
    num_shards = num_clients * shards_per_client
    if num_shards > len(codes):
        possible = [f"at most {counted(len(codes) // shards_per_client, 'client')}"]
        if each := len(codes) // num_clients:
            possible.insert(0, f"`shards_per_client` of at most {each}")
        raise ValueError(
            f"{counted(num_clients, 'client')} with {counted(shards_per_client, 'shard')} each "
            f"need{'s' if num_clients == 1 else ''} at least {counted(num_shards, 'sample')}. "
            f"Got {len(codes)}. Use {' or '.join(possible)}."
        )
    rng = np.random.default_rng(derive(seed, "partition", "shards"))
    pools = [rng.permutation(pool) for pool in indices_by_label(codes, len(classes))]
    shards = np.array_split(np.concatenate(pools), num_shards)
    dealt = rng.permutation(num_shards).reshape(num_clients, shards_per_client)
    parts = [np.concatenate([shards[shard] for shard in row]) for row in dealt]
    parameters = {"shards_per_client": shards_per_client}
    return Partition(parts, len(codes), name="shards", seed=seed, parameters=parameters)
