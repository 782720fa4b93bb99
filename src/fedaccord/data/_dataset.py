"""Samples with what belongs to them: splits, tasks, natural clients, licence, citation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from ._arrays import ArrayData
from ._labels import Indices
from ._partition import Partition


@dataclass(frozen=True, eq=False)
class Dataset:
    """Samples to train and to test on, ready for a model, and where they come from.

    :param name: What ``load`` calls it.
    :param title: Its name in one line.
    :param description: What the samples and the tasks are.
    :param train: Samples to train on: inputs float32 ``[n, ...]``, normalised; targets int64
        ``[n]``, or ``[n, m]`` for ``m > 1`` tasks.
    :param test: Samples to test on, likewise.
    :param tasks: Name of each task, ``m`` of them.
    :param class_names: Names of the classes of each task.
    :param client_ids: ``[n]``, whose each training sample is; ``None`` without natural clients.
    :param test_client_ids: The same for the test samples.
    :param client_names: Names of the natural clients, by id.
    :param licence: SPDX expression of the data's licence, which is not the code's.
    :param citation: What to cite.
    :param metadata: Everything that is recorded: origin, construction, notes on the licence.
    """

    name: str
    title: str
    description: str
    train: ArrayData
    test: ArrayData
    tasks: tuple[str, ...]
    class_names: tuple[tuple[str, ...], ...]
    licence: str
    citation: tuple[str, ...]
    metadata: Mapping[str, Any]
    client_ids: Tensor | None = None
    test_client_ids: Tensor | None = None
    client_names: tuple[str, ...] = ()

    @property
    def num_tasks(self) -> int:
        """Number of tasks, ``m``."""
        return len(self.tasks)

    @property
    def num_classes(self) -> tuple[int, ...]:
        """Number of classes of each task."""
        return tuple(len(names) for names in self.class_names)

    @property
    def labels(self) -> Indices:
        """The training labels ``[n]`` or ``[n, m]`` as an array, which the partitions take."""
        return self.train.targets.numpy()

    def clients(self, parts: Partition | Sequence[Indices]) -> tuple[ArrayData, ...]:
        """Give each client its part of the training samples.

        :param parts: The indices of each client.
        """
        return tuple(self.train.subset(part) for part in parts)
