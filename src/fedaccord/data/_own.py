"""What one's own data become: samples, whose they are, and what their numbers mean."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ..random import derive
from ._arrays import ArrayData, clients_from_samples
from ._dataset import Dataset
from ._labels import Indices
from ._partition import Partition

TargetKind: TypeAlias = Literal["classes", "values"]


@dataclass(frozen=True, eq=False)
class OwnData:
    """One's own data: training and test rows of every client, and what the numbers mean.

    ``Federation(model, losses, data.clients)`` trains on it, ``evaluate_clients(model, data.tests,
    num_classes=data.num_classes)`` scores each client on its own test rows, and
    ``evaluate(model, data.test, num_classes=data.num_classes)`` everybody's together.

    :param samples: All samples: inputs ``[n, ...]``, targets ``[n]``, or ``[n, m]`` for ``m > 1``
        tasks.
    :param parts: Which samples each client trains on, with the clients' names.
    :param test_parts: Which samples each client is tested on, the same clients in the same order.
    :param tasks: Name of each task.
    :param class_names: Names of the classes of each task, by number; none for a task of values.
    :param feature_names: What each column of the inputs is; none where inputs are no table.
    :param notes: What was left out, filled in or converted on the way.
    """

    samples: ArrayData
    parts: Partition
    test_parts: Partition
    tasks: tuple[str, ...]
    class_names: tuple[tuple[str, ...], ...]
    feature_names: tuple[str, ...] = ()
    notes: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        alike: dict[str, list[str]] = {}
        for name in self.client_names:
            alike.setdefault("".join(name.casefold().split()), []).append(name)
        if twins := [names for names in alike.values() if len(names) > 1]:
            told = "; ".join(" and ".join(map(repr, names)) for names in twins[:5])
            warnings.warn(
                f"Clients are told apart by names that differ in case or spaces alone: {told}. "
                f"Make them one first if they are, for example by `.str.strip().str.lower()`.",
                stacklevel=4,
            )

    def __repr__(self) -> str:
        return (
            f"OwnData({self.samples!r}; {len(self.parts)} clients with "
            f"{sum(self.parts.sizes)} training and {sum(self.test_parts.sizes)} test samples; "
            f"tasks {', '.join(self.tasks)})"
        )

    @cached_property
    def clients(self) -> tuple[ArrayData, ...]:
        """Each client's training samples; may be none."""
        return clients_from_samples(self.samples, self.parts)

    @cached_property
    def tests(self) -> tuple[ArrayData, ...]:
        """Each client's test samples; may be none."""
        return clients_from_samples(self.samples, self.test_parts)

    @cached_property
    def train(self) -> ArrayData:
        """The training samples of all clients together, in the clients' order."""
        return self.samples.subset(_together(self.parts))

    @cached_property
    def test(self) -> ArrayData:
        """The test samples of all clients together, in the clients' order."""
        return self.samples.subset(_together(self.test_parts))

    @property
    def client_names(self) -> tuple[str, ...]:
        """The clients' names; their own numbers where they have none."""
        names = self.parts.client_names or range(len(self.parts))
        return tuple(str(name) for name in names)

    @property
    def empty_clients(self) -> tuple[str, ...]:
        """Names of the clients without any sample."""
        both = zip(self.client_names, self.parts.sizes, self.test_parts.sizes, strict=True)
        return tuple(name for name, train, test in both if train + test == 0)

    @property
    def num_classes(self) -> tuple[int, ...] | None:
        """Number of classes of each task; ``None`` where tasks have values."""
        return tuple(len(names) for names in self.class_names) if all(self.class_names) else None

    @property
    def num_features(self) -> int:
        """Number of inputs of a sample."""
        return int(self.samples.tensors[0][:1].numel()) if len(self.samples) else 0

    def dataset(
        self, name: str, *, description: str = "", licence: str = "", citation: tuple[str, ...] = ()
    ) -> Dataset:
        """Describe the same samples as a ``Dataset``, like those that ``load`` gives.

        :param name: What to call it.
        :param description: What the samples and tasks are.
        :param licence: Of the data.
        :param citation: What to cite.
        """
        return Dataset(
            name=name,
            title=name,
            description=description,
            train=self.train,
            test=self.test,
            tasks=self.tasks,
            class_names=self.class_names,
            licence=licence,
            citation=citation,
            metadata={"feature_names": self.feature_names, **self.notes},
            client_ids=_owner_ids(self.parts),
            test_client_ids=_owner_ids(self.test_parts),
            client_names=self.client_names,
            kinds=tuple("classes" if names else "values" for names in self.class_names),
        )

    def divide(
        self,
        parts: Partition | Sequence[Indices | Tensor | Sequence[int]],
        *,
        test_fraction: float = 0.0,
        seed: int = 0,
    ) -> OwnData:
        """Give the samples to other clients, for example to those of ``iid_partition``.

        :param parts: The indices in ``samples`` of each client.
        :param test_fraction: Share of each client's samples to test on, in ``[0, 1)``.
        :param seed: Decides which.
        :raises ValueError: If an index is out of range, or the fraction.
        """
        if not isinstance(parts, Partition):
            parts = Partition([np.asarray(part) for part in parts], len(self.samples))
        if parts.num_samples != len(self.samples):
            raise ValueError(
                f"`parts` splits {parts.num_samples} samples, but there are {len(self.samples)}."
            )
        train, test = split_off(parts, test_fraction=test_fraction, seed=seed)
        return replace(self, parts=train, test_parts=test)


def _owner_ids(parts: Partition) -> Tensor:
    """Whose each sample is where the parts follow each other, int64 ``[n]``."""
    return torch.repeat_interleave(torch.tensor(parts.sizes, dtype=torch.int64))


def consecutive(sizes: Sequence[int], names: Sequence[str]) -> Partition:
    """Give each client the samples that follow those of the client before.

    :param sizes: How many each has.
    :param names: The clients' names.
    """
    ends = np.cumsum([0, *sizes])
    parts = [np.arange(begin, end) for begin, end in itertools.pairwise(ends)]
    return Partition(parts, int(ends[-1]), name="natural", client_names=tuple(names))


def split_off(parts: Partition, *, test_fraction: float, seed: int) -> tuple[Partition, Partition]:
    """Set a random part of each client's samples aside for testing.

    A client's split depends on the seed and its own number alone. A client keeps at least one
    sample to train on if it has any.

    :param parts: Everybody's samples.
    :param test_fraction: Share of each client's samples, in ``[0, 1)``; rounded to the nearest
        number of samples.
    :param seed: Any integer.
    :return: What is trained on, and what is tested on.
    :raises ValueError: If the fraction is out of range.
    """
    if not 0 <= test_fraction < 1:
        raise ValueError(f"`test_fraction` must be in [0, 1). Got {test_fraction}.")
    held_out = []
    for client, part in enumerate(parts):
        count = max(min(int(len(part) * test_fraction + 0.5), len(part) - 1), 0)
        rng = np.random.default_rng(derive(seed, "own data", "test", client))
        held_out.append(np.isin(np.arange(len(part)), rng.permutation(len(part))[:count]))
    return _by_mask(parts, held_out)


def split_by(parts: Partition, is_test: npt.NDArray[np.bool_]) -> tuple[Partition, Partition]:
    """Set the marked samples aside for testing.

    :param is_test: ``[n]``, which samples.
    :return: What is trained on, and what is tested on.
    """
    return _by_mask(parts, [is_test[part] for part in parts])


def _by_mask(
    parts: Partition, held_out: Sequence[npt.NDArray[np.bool_]]
) -> tuple[Partition, Partition]:
    both = zip(parts, held_out, strict=True)
    pairs = [(part[~mask], part[mask]) for part, mask in both]
    train = replace(parts, parts=[pair[0] for pair in pairs])
    return train, replace(parts, parts=[pair[1] for pair in pairs])


def _together(parts: Partition) -> Indices:
    return np.concatenate([*parts, np.empty(0, dtype=np.int64)])
