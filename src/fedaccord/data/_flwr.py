"""The partitioners of Flower Datasets."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from ._labels import Labels, encode_labels
from ._optional import missing
from ._partition import Partition

_ROW = "fedaccord_row"


def flwr_partition(partitioner: Any, data: Any, *, column: str = "label") -> Partition:
    """Split by a partitioner of ``flwr-datasets``; needs the extra ``flwr-datasets``.

    The partitioner works on a copy of itself and sees one more column, which numbers the rows, so
    the indices are those of the data as they were given, also where it sorts or shuffles them.
    What it leaves out is ``unassigned``. Its seed and its settings are its own.

    :param partitioner: New, without a dataset; one that gives rows to clients. Its ``partition_by``
        is ``column``, or a column of the dataset.
    :param data: The label of every sample, ``[n]`` or ``[n, m]``, or a whole ``datasets.Dataset``.
        Labels other than whole numbers and text are numbered in increasing order.
    :param column: What the labels' column is called.
    :return: One part for each of its partitions, named by the natural ids of those that have any.
    :raises FedAccordError: If ``flwr-datasets`` is not installed.
    :raises ValueError: If the partitioner has a dataset already, or splits columns.
    """
    try:
        import datasets  # type: ignore[import-untyped,unused-ignore]
        from flwr_datasets.partitioner import (  # type: ignore[import-untyped,unused-ignore]
            Partitioner,
        )
    except ImportError as error:
        raise missing("flwr-datasets", "A partitioner of Flower", "flwr-datasets") from error

    if not isinstance(partitioner, Partitioner):
        raise ValueError(
            f"`partitioner` must be one of `flwr_datasets.partitioner`. Got {partitioner!r:.60}."
        )
    if partitioner.is_dataset_assigned():
        raise ValueError("`partitioner` must be new. Got one that has a dataset already.")
    if isinstance(data, datasets.Dataset):
        table = data
    else:
        table = datasets.Dataset.from_dict({column: _plain(data)})
    used = copy.deepcopy(partitioner)
    used.dataset = table.add_column(_ROW, np.arange(len(table)))
    parts = []
    for client in range(used.num_partitions):
        part = used.load_partition(client)
        if _ROW not in part.column_names or len(part.column_names) < len(table.column_names) + 1:
            raise ValueError(
                f"A split gives rows to clients, but {type(used).__name__} gives them columns."
            )
        parts.append(np.array(part[_ROW], dtype=np.int64))
    return Partition(
        parts,
        len(table),
        name="flwr",
        parameters={"partitioner": type(used).__name__},
        client_names=_natural_ids(used, len(parts)),
    )


def _plain(labels: Labels) -> list[Any]:
    codes, classes = encode_labels(labels)
    # what a column of Arrow holds without loss
    whole = all(type(label) is int and -(2**63) <= label < 2**63 for label in classes)
    if whole or all(type(label) is str for label in classes):
        return [classes[code] for code in codes.tolist()]
    numbers: list[Any] = codes.tolist()
    return numbers


def _natural_ids(partitioner: Any, num_clients: int) -> tuple[Any, ...]:
    names = getattr(partitioner, "partition_id_to_natural_id", {})
    return tuple(names[client] for client in range(num_clients)) if names else ()
