"""What clients keep back from training: test and validation samples, and whole clients."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..random import derive
from ._labels import Indices, Labels, encode_labels
from ._partition import Partition


@dataclass(frozen=True, eq=False)
class Holdout:
    """A split with samples and clients held back.

    The three partitions have one part for each client of the split they were made from, in its
    order; a client's parts do not overlap and together are all its samples.

    :param train: Samples to train on.
    :param validation: Samples to tune on.
    :param test: Samples to test on.
    :param seen: Clients that train, increasing.
    :param unseen: Clients held out of training entirely, increasing. Their ``train`` part may serve
        to adapt a model to them; what a model reaches on them beside the others' test samples is
        the participation gap (Yuan, Morningstar, Ning, Singh, ICLR 2022).
    :param shared: Samples that one client trains on and that are another's test or validation
        samples, because the split gave them to both; increasing. A test on them leaks.
    """

    train: Partition
    validation: Partition
    test: Partition
    seen: tuple[int, ...]
    unseen: tuple[int, ...]
    shared: Indices

    @property
    def without_test(self) -> tuple[int, ...]:
        """Clients that have samples but none to test on, increasing."""
        return tuple(
            client
            for client, (kept, tested) in enumerate(
                zip(self.train.sizes, self.test.sizes, strict=True)
            )
            if kept and not tested
        )


def hold_out(
    partition: Partition,
    *,
    test: float = 0.0,
    validation: float = 0.0,
    clients: float = 0.0,
    stratify: Labels | None = None,
    seed: int = 0,
) -> Holdout:
    """Hold back a part of every client's samples, and a part of the clients.

    A client with ``n`` samples gives ``floor(test n + 0.5)`` of them to the test and, of the rest,
    ``floor(validation n + 0.5)`` to validation, but keeps at least one to train on. Which ones does
    not depend on the other clients.

    :param partition: The split.
    :param test: Part of every client's samples, in ``[0, 1)``.
    :param validation: Likewise; ``test + validation`` below 1.
    :param clients: Part of the clients that never train, in ``[0, 1)``: ``floor(clients N + 0.5)``,
        leaving at least one that does.
    :param stratify: ``[n]`` or ``[n, m]``, the label of every sample: then the parts of a client
        have its proportions of labels, up to rounding.
    :param seed: Any integer.
    :raises ValueError: If a part is out of range or ``stratify`` has another length.
    """
    _require_part("test", test)
    _require_part("validation", validation)
    _require_part("clients", clients)
    if test + validation >= 1:
        raise ValueError(
            f"`test` and `validation` must leave something to train on, a sum below 1. Got {test} "
            f"and {validation}."
        )
    codes = None if stratify is None else encode_labels(stratify)[0]
    if codes is not None and len(codes) != partition.num_samples:
        raise ValueError(
            f"`stratify` must have one entry for each of {partition.num_samples} samples. Got "
            f"{len(codes)}."
        )
    cuts = [
        _cut(part, test, validation, codes, np.random.default_rng(derive(seed, "holdout", client)))
        for client, part in enumerate(partition)
    ]
    seen, unseen = _choose(len(partition), clients, seed)
    given: Mapping[str, float | str] = {"test": test, "validation": validation, "clients": clients}

    def collect(name: str, parts: list[Indices]) -> Partition:
        return Partition(
            parts,
            partition.num_samples,
            name=f"{partition.name}, {name}",
            seed=seed,
            parameters={**partition.parameters, **given},
            client_names=partition.client_names,
        )

    train = collect("train", [cut.train for cut in cuts])
    held = [*(cut.validation for cut in cuts), *(cut.test for cut in cuts)]
    return Holdout(
        train,
        collect("validation", [cut.validation for cut in cuts]),
        collect("test", [cut.test for cut in cuts]),
        seen,
        unseen,
        shared=np.intersect1d(_all(train[client] for client in seen), _all(held)),
    )


class _Cut(NamedTuple):
    train: Indices
    validation: Indices
    test: Indices


def _cut(
    part: Indices,
    test: float,
    validation: float,
    codes: Indices | None,
    rng: np.random.Generator,
) -> _Cut:
    n = len(part)
    num_test = min(_rounded(test * n), max(n - 1, 0))
    num_validation = min(_rounded(validation * n), max(n - 1 - num_test, 0))
    order = rng.permutation(n)
    if codes is not None:
        order = _spread_out(codes[part], order)
    ends = (num_test, num_test + num_validation)
    chosen = np.split(order, ends) if codes is None else _strided(order, *ends)
    # in the order of the part: who trains on what does not show how it was drawn
    tested, tuned, trained = (part[np.sort(places)] for places in chosen)
    return _Cut(trained, tuned, tested)


def _spread_out(labels: Indices, order: Indices) -> Indices:
    """The places grouped by label, in random order within each."""
    return order[np.argsort(labels[order], kind="stable")]


def _strided(order: Indices, num_test: int, end: int) -> list[Indices]:
    """Take test and validation places at equal distances, so that every label gives its share."""
    n, held = len(order), end
    places = np.floor((np.arange(held) + 0.5) * n / held).astype(np.int64) if held else order[:0]
    # of the places held back, again at equal distances, which are for the test
    count = np.floor((np.arange(num_test) + 0.5) * held / num_test) if num_test else np.empty(0)
    is_test = np.zeros(held, dtype=bool)
    is_test[count.astype(np.int64)] = True
    rest = np.ones(n, dtype=bool)
    rest[places] = False
    return [order[places[is_test]], order[places[~is_test]], order[rest]]


def _choose(count: int, part: float, seed: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    held = min(_rounded(part * count), max(count - 1, 0))
    order = np.random.default_rng(derive(seed, "holdout", "clients")).permutation(count)
    return tuple(sorted(order[held:].tolist())), tuple(sorted(order[:held].tolist()))


def _rounded(value: float) -> int:
    # 0.29 * 100 is a little less than 29 in binary
    return math.floor(value + 0.5 + 1e-9)


def _all(parts: object) -> Indices:
    return np.concatenate([*parts, np.empty(0, dtype=np.int64)])  # type: ignore[misc]


def _require_part(name: str, value: float) -> None:
    if isinstance(value, bool) or not 0 <= value < 1:
        raise ValueError(f"`{name}` must be in [0, 1). Got {value}.")
