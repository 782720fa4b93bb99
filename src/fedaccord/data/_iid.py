"""Random parts of equal size, and the parts that the data come in."""

from __future__ import annotations

import numpy as np

from ..random import derive
from ._feasibility import as_whole, count_samples, require_clients
from ._labels import Labels, encode_labels, indices_by_label
from ._partition import Partition


def iid_partition(samples: int | Labels, *, num_clients: int, seed: int = 0) -> Partition:
    """Deal the samples out at random; sizes differ by one at most and nothing is left over.

    :param samples: How many samples there are, or anything with one entry per sample.
    :param num_clients: Number of clients, at most the number of samples.
    :param seed: Any integer.
    :raises ValueError: If there are more clients than samples.
    """
    num_samples = count_samples(samples)
    num_clients = as_whole("num_clients", num_clients, least=1)
    seed = as_whole("seed", seed)
    require_clients(num_clients, num_samples)
    rng = np.random.default_rng(derive(seed, "partition", "iid"))
    parts = np.array_split(rng.permutation(num_samples), num_clients)
    return Partition(parts, num_samples, name="iid", seed=seed)


def natural_partition(client_ids: Labels) -> Partition:
    """Give every client its own samples, as the data come.

    :param client_ids: ``[n]``, whose each sample is: numbers, names or any hashable values.
    :return: One part per distinct id in increasing order, named in ``client_names``; indices are
        in increasing order and nothing is left over.
    :raises ValueError: If there is no sample or an id is NaN.
    """
    codes, names = encode_labels(client_ids)
    parts = indices_by_label(codes, len(names))
    return Partition(parts, len(codes), name="natural", client_names=names)
