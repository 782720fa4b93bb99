"""Who trains on what and who is tested on what."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from ..data import Dataset, Holdout, Partition, Samples
from ..federation import Federation
from ..metrics import populations

ALL = "all clients"
HELD_OUT = "clients held out of training"


@dataclass(frozen=True, eq=False)
class Population:
    """The clients of a run: first those that train, then those held out, by position.

    :param dataset: The data.
    :param partition: Their split over all clients.
    :param holdout: What clients keep back, and which do not train.
    :param federation: Those who train; a client's id is its position.
    :param rows: Which of the rows held back are measured on.
    """

    dataset: Dataset
    partition: Partition
    holdout: Holdout
    federation: Federation
    rows: Literal["test", "validation"] = "test"

    @property
    def num_seen(self) -> int:
        """How many clients train."""
        return len(self.holdout.seen)

    @property
    def order(self) -> tuple[int, ...]:
        """Each client's number in the split, by position."""
        return (*self.holdout.seen, *self.holdout.unseen)

    @cached_property
    def names(self) -> tuple[Hashable, ...]:
        """Each client's name: where the data have none, its number in the split."""
        known = self.dataset.client_names if self.natural else self.partition.client_names
        return tuple(known[client] if known else client for client in self.order)

    @property
    def natural(self) -> bool:
        """Whether clients are those that the data come by."""
        return self.partition.name == "natural"

    @property
    def num_classes(self) -> tuple[int, ...] | None:
        """Number of classes of each task; ``None`` for other tasks."""
        return self.dataset.num_classes if "classes" in self.dataset.kinds else None

    @cached_property
    def everyone(self) -> Federation:
        """All clients with their training rows, those held out too."""
        more = self.holdout.train.take(self.holdout.unseen)
        clients = (*self.federation.clients, *self.dataset.clients(more))
        return replace(self.federation, clients=clients)

    @cached_property
    def own_rows(self) -> tuple[Samples, ...] | None:
        """Each client's own rows to be measured on, by position; ``None`` if there are none."""
        held = self.holdout.test if self.rows == "test" else self.holdout.validation
        if any(held.sizes):
            return self.dataset.clients(held.take(self.order))
        owner = self.dataset.test_client_ids
        if owner is None or not self.natural or self.rows == "validation":
            return None
        numbers = [int(str(self.partition.client_names[client])) for client in self.order]
        return tuple(
            self.dataset.test.subset((owner == number).nonzero().flatten()) for number in numbers
        )

    @cached_property
    def tests(self) -> Samples:
        """What tasks are measured on: the whole test set, or all validation rows."""
        if self.rows == "test":
            return self.dataset.test
        parts = self.holdout.validation.take(self.holdout.seen)
        return self.dataset.train.subset(np.unique(np.concatenate(parts)))

    @property
    def tests_are(self) -> str:
        """What :attr:`tests` are, for labels."""
        return "whole test set" if self.rows == "test" else "validation rows of all clients"

    def groups(self, sampled: Sequence[Sequence[int]]) -> dict[str, tuple[int, ...]]:
        """Clients by whether the model has seen them, by position; all that train come first.

        :param sampled: The clients of every round so far; without any, groups that depend on it
            are left out, as are empty ones.
        """
        held_out = range(self.num_seen, len(self.order))
        found = populations(self.num_seen, sampled, held_out=held_out)
        every = found["all clients"]
        named = {ALL: every}
        if sampled:
            named |= {
                name: found[name]
                for name in ("clients sampled in this round", "never-sampled clients")
                if found[name] != every  # nothing new
            }
        named[HELD_OUT] = found["held-out clients"]
        return {name: ids for name, ids in named.items() if ids}
