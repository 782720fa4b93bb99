"""Samples with what belongs to them: splits, tasks, natural clients, licence, citation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from ..clients import Batch
from ..models import Kind
from ._labels import Indices
from ._partition import Partition


class Samples(Protocol):
    """Samples to train or to test on: what a client holds, and what parts can be taken from.

    ``ArrayData`` fulfils it; so does anything that makes its batches when they are asked for.
    """

    def __len__(self) -> int:
        """Number of samples."""
        ...

    def batch(self, index: Tensor, /) -> Batch:
        """The samples at ``index``, int64 ``[b]``: inputs ``[b, ...]``, targets ``[b, ...]``."""
        ...

    def subset(self, index: Indices | Tensor | Sequence[int], /) -> Samples:
        """The samples at ``index``, ``[k]``, as samples of their own."""
        ...

    @property
    def inputs(self) -> Tensor:
        """All inputs ``[n, ...]``."""
        ...

    @property
    def targets(self) -> Tensor:
        """All targets ``[n]`` or ``[n, m]``."""
        ...


@dataclass(frozen=True, eq=False)
class Dataset:
    """Samples to train and to test on, ready for a model, and where they come from.

    :param name: What ``load`` calls it.
    :param title: Its name in one line.
    :param description: What the samples and the tasks are.
    :param train: Samples to train on. Inputs ``[n, ...]``: float32 and normalised, or int64 codes
        of characters. Targets: int64 classes ``[n]``, or ``[n, m]`` for ``m > 1`` tasks; float32
        values ``[n, m]``; for survival float32 ``[n, 2]``, the time and whether the event was
        observed (1) or observation ended (0).
    :param test: Samples to test on, likewise.
    :param tasks: Name of each task, ``m`` of them.
    :param class_names: Names of the classes of each task; empty for a task without classes.
    :param client_ids: ``[n]``, whose each training sample is; ``None`` without natural clients.
    :param test_client_ids: The same for the test samples.
    :param client_names: Names of the natural clients, by id.
    :param licence: SPDX expression of the data's licence, or words where there is none; it is not
        the code's.
    :param citation: What to cite.
    :param metadata: Everything else that is recorded: origin, construction, notes on the licence;
        for tasks that predict values ``"target_mean"``, ``"target_scale"`` ``[m]`` and
        ``"target_unit"``, with which a value in original units is ``mean + scale * value``.
    :param kinds: What each task predicts: ``"classes"``, ``"values"`` or ``"survival"``; left out,
        all predict classes.
    :raises ValueError: If ``kinds`` or ``class_names`` do not have one entry per task.
    """

    name: str
    title: str
    description: str
    train: Samples
    test: Samples
    tasks: tuple[str, ...]
    class_names: tuple[tuple[str, ...], ...]
    licence: str
    citation: tuple[str, ...]
    metadata: Mapping[str, Any]
    client_ids: Tensor | None = None
    test_client_ids: Tensor | None = None
    client_names: tuple[str, ...] = ()
    kinds: tuple[Kind, ...] = ()

    def __post_init__(self) -> None:
        if not self.kinds:
            object.__setattr__(self, "kinds", ("classes",) * len(self.tasks))
        if not len(self.kinds) == len(self.class_names) == len(self.tasks):
            raise ValueError(
                f"`kinds` and `class_names` must have one entry for each of the "
                f"{len(self.tasks)} tasks. Got {len(self.kinds)} and {len(self.class_names)}."
            )

    def __repr__(self) -> str:
        return (
            f"Dataset({self.name}: {len(self.train)} training and {len(self.test)} test samples, "
            f"tasks {', '.join(self.tasks)})"
        )

    @property
    def num_tasks(self) -> int:
        """Number of tasks, ``m``."""
        return len(self.tasks)

    @property
    def num_classes(self) -> tuple[int, ...]:
        """Number of classes of each task, 0 for a task without."""
        return tuple(len(names) for names in self.class_names)

    @property
    def num_outputs(self) -> int:
        """Numbers that a model answers with for one sample: each class, each value, or the risk."""
        return sum(
            classes if kind == "classes" else 1
            for kind, classes in zip(self.kinds, self.num_classes, strict=True)
        )

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of one sample's input; unlike ``train.inputs.shape`` it makes one sample only."""
        return tuple(self.train.batch(torch.arange(min(1, len(self.train))))[0].shape[1:])

    @property
    def labels(self) -> Indices:
        """The training labels ``[n]`` or ``[n, m]`` as an array, which the partitions take.

        :raises ValueError: If a task has no classes.
        """
        if any(kind != "classes" for kind in self.kinds):
            natural = "its natural clients, `natural_partition(dataset.client_ids)`, or "
            raise ValueError(
                f"`labels` needs tasks with classes. `{self.name}` predicts "
                f"{' and '.join(sorted(set(self.kinds)))}; split it by "
                f"{natural if self.client_ids is not None else ''}"
                f"`iid_partition(len(dataset.train), num_clients=...)`."
            )
        return self.train.targets.numpy()

    def clients(self, parts: Partition | Sequence[Indices]) -> tuple[Samples, ...]:
        """Give each client its part of the training samples.

        :param parts: The indices of each client.
        """
        return tuple(self.train.subset(part) for part in parts)
