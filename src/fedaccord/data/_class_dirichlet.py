"""Each class cut over the clients by Dirichlet proportions; sizes differ."""

from __future__ import annotations

import heapq
from typing import Literal, get_args

import numpy as np

from ..random import derive
from ._feasibility import as_concentration, as_whole, counted, require_minimum
from ._labels import Indices, Labels, encode_labels, indices_by_label
from ._partition import Partition
from ._proportions import DirichletDraws, cut

Repair = Literal["move", "raise"]


def class_dirichlet_partition(
    labels: Labels,
    *,
    num_clients: int,
    alpha: float,
    min_samples: int = 10,
    max_tries: int = 100,
    repair: Repair = "move",
    seed: int = 0,
) -> Partition:
    r"""Cut each class over the clients in proportions from :math:`\mathrm{Dir}(\alpha 1_N)`.

    Class by class, proportions are drawn, clients that hold ``n / N`` samples already are left out
    of them, and the class is cut at :math:`\lfloor n_c \sum_{j \le i} p_j \rfloor`. If a client
    ends with fewer than ``min_samples``, everything is drawn again, ``max_tries`` times at most.
    Then the try with the largest smallest client is kept and repaired: clients below the minimum
    take samples, one after the other, at random from whoever is the largest at that moment. With 10
    classes, 100 clients and an ``alpha`` of .01 no try succeeds, so a part of every small client is
    then what others happened to hold. Every sample is given once.

    What happened is in the split's ``parameters``: ``tries``, how many were made;
    ``smallest_before``, the smallest client of the one that was kept; ``moved``, how many samples
    were moved. The smallest client after the repair is ``min(partition.sizes)``.

    Source: class-wise proportions from Yurochkin et al., ICML 2019, arXiv:1905.12022;
    leaving out clients that have their even part as Lin, Kong, Stich, Jaggi, NeurIPS 2020,
    arXiv:2006.07242; the protocol of FedLF (Pan et al., AAAI 2024), which draws until all is well.
    Bounded tries and the repair follow CRAFT, with 200 tries and a minimum of 20. Deviation: the
    proportions are drawn among the clients that take part, which has the same distribution as
    drawing for all and dividing by what is left, but is defined where that divides 0 by 0.

    :param labels: ``[n]`` or ``[n, m]``, the class of each sample; rows count as classes.
    :param num_clients: Number of clients, ``N``.
    :param alpha: Concentration, positive. Small means that few clients share a class.
    :param min_samples: Least number of samples of a client, at least 0; FedLF has the number of
        classes.
    :param max_tries: How often to draw at most, at least 1.
    :param repair: ``"move"`` repairs the best try, ``"raise"`` makes it an error.
    :param seed: Any integer.
    :raises ValueError: If the samples do not suffice, a value is out of range, or no try succeeds
        and ``repair`` is ``"raise"``.
    """
    alpha = as_concentration(alpha)
    num_clients = as_whole("num_clients", num_clients, least=1)
    min_samples = as_whole("min_samples", min_samples, least=0)
    max_tries = as_whole("max_tries", max_tries, least=1)
    seed = as_whole("seed", seed)
    if repair not in get_args(Repair):
        raise ValueError(f"`repair` must be 'move' or 'raise'. Got {repair!r}.")
    codes, classes = encode_labels(labels)
    require_minimum(num_clients, min_samples, len(codes))
    rng = np.random.default_rng(derive(seed, "partition", "class_dirichlet"))
    pools = indices_by_label(codes, len(classes))
    class_sizes = [len(pool) for pool in pools]

    counts, smallest, tries = np.empty((0, 0), dtype=np.int64), -1, 0
    while smallest < min_samples and tries < max_tries:
        tries += 1
        attempt = _draw_counts(rng, class_sizes, num_clients, alpha)
        if (reached := int(attempt.sum(axis=0).min())) > smallest:
            counts, smallest = attempt, reached
    if smallest < min_samples and repair == "raise":
        raise ValueError(
            f"Every client must have at least {counted(min_samples, 'sample')}. After "
            f"{'one try' if tries == 1 else f'{tries} tries'} the best has a client with "
            f"{smallest}. Use a larger `alpha`, `min_samples` of at most {smallest}, more "
            f"`max_tries`, or `repair='move'`."
        )

    shuffled = [rng.permutation(pool) for pool in pools]
    ends = [np.cumsum(row)[:-1] for row in counts]
    shares = [np.split(pool, cuts) for pool, cuts in zip(shuffled, ends, strict=True)]
    parts = [np.concatenate(share) for share in zip(*shares, strict=True)]
    moved = _move_to_the_small(rng, parts, min_samples) if smallest < min_samples else 0
    parameters = {
        "alpha": alpha,
        "min_samples": min_samples,
        "max_tries": max_tries,
        "repair": repair,
        "tries": tries,
        "smallest_before": smallest,
        "moved": moved,
    }
    return Partition(parts, len(codes), name="class_dirichlet", seed=seed, parameters=parameters)


def _draw_counts(
    rng: np.random.Generator, class_sizes: list[int], num_clients: int, alpha: float
) -> Indices:
    """One try: how many samples of each class ``[C]`` each client ``[N]`` gets."""
    draws = DirichletDraws(rng, alpha, len(class_sizes), num_clients)
    counts = np.zeros((len(class_sizes), num_clients), dtype=np.int64)
    held, num_samples = np.zeros(num_clients, dtype=np.int64), sum(class_sizes)
    for label, size in enumerate(class_sizes):
        # somebody has less than the even part as long as a class is left
        among = held * num_clients < num_samples
        counts[label] = cut(draws.weights(label, among), size)
        held += counts[label]
    return counts


def _move_to_the_small(rng: np.random.Generator, parts: list[Indices], least: int) -> int:
    """Move samples from the largest parts until each has ``least``; how many were moved."""
    sizes = np.array([len(part) for part in parts])
    small = np.flatnonzero(sizes < least)
    heap = [(-size, client) for client, size in enumerate(sizes.tolist()) if size > least]
    heapq.heapify(heap)
    lost = np.zeros(len(parts), dtype=np.int64)
    donors = []
    for _ in range(int((least - sizes[small]).sum())):
        _, client = heapq.heapreplace(heap, (heap[0][0] + 1, heap[0][1]))
        donors.append(client)
        lost[client] += 1
    given = {}
    for client in np.flatnonzero(lost).tolist():
        order = rng.permutation(len(parts[client]))
        given[client] = iter(parts[client][order[: lost[client]]])
        parts[client] = parts[client][np.sort(order[lost[client] :])]
    moved = np.array([next(given[donor]) for donor in donors], dtype=np.int64)
    ends = np.cumsum(least - sizes[small])
    for client, gained in zip(small.tolist(), np.split(moved, ends[:-1]), strict=True):
        parts[client] = np.concatenate([parts[client], gained])
    return len(moved)
