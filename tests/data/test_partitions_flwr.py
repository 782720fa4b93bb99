"""The partitioners of Flower Datasets give the indices of the data as they were given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr_datasets", reason="needs the extra `flwr-datasets`")

import datasets
import flwr_datasets.partitioner as flwr

from fedaccord.data import flwr_partition

# what the partitioners say of their own libraries and settings
pytestmark = [
    pytest.mark.filterwarnings("ignore:Specifying null_placement:FutureWarning"),
    pytest.mark.filterwarnings("ignore:The sum of partition sizes:UserWarning"),
]

LABELS = np.random.default_rng(0).permutation(np.arange(300) % 6)

PARTITIONERS: dict[str, Callable[[], Any]] = {
    "iid": lambda: flwr.IidPartitioner(num_partitions=7),
    "linear": lambda: flwr.LinearPartitioner(num_partitions=5),
    "size": lambda: flwr.SizePartitioner(partition_sizes=[100, 30, 20]),
    "dirichlet": lambda: flwr.DirichletPartitioner(
        num_partitions=5, partition_by="label", alpha=0.5, min_partition_size=5, seed=3
    ),
    "inner dirichlet": lambda: flwr.InnerDirichletPartitioner(
        partition_sizes=[60] * 5, partition_by="label", alpha=0.5, seed=3
    ),
    "pathological": lambda: flwr.PathologicalPartitioner(
        num_partitions=6, partition_by="label", num_classes_per_partition=2, seed=3
    ),
    "shard": lambda: flwr.ShardPartitioner(
        num_partitions=5, partition_by="label", num_shards_per_partition=2, shard_size=25
    ),
    "natural id": lambda: flwr.NaturalIdPartitioner(partition_by="label"),
}
every_partitioner = pytest.mark.parametrize("make", PARTITIONERS.values(), ids=PARTITIONERS)


def directly(partitioner: Any) -> list[list[dict[str, Any]]]:
    """What the partitioner gives on its own, with a column that tells the rows apart."""
    table = {"label": LABELS.tolist(), "name": [f"row {i}" for i in range(300)]}
    partitioner.dataset = datasets.Dataset.from_dict(table)
    return [
        partitioner.load_partition(client).to_list() for client in range(partitioner.num_partitions)
    ]


@every_partitioner
def test_the_parts_are_the_partitioners_own(make: Callable[[], Any]):
    parts = flwr_partition(make(), LABELS)
    expected = [[int(row["name"].split()[1]) for row in rows] for rows in directly(make())]
    assert [part.tolist() for part in parts] == expected
    assert len(expected) > 1


@every_partitioner
def test_rows_that_nobody_gets_are_reported(make: Callable[[], Any]):
    parts = flwr_partition(make(), LABELS)
    given = {row["name"] for rows in directly(make()) for row in rows}
    assert [f"row {i}" in given for i in range(300)] == [
        i not in set(parts.unassigned.tolist()) for i in range(300)
    ]
    assert len(parts.repeated) == 0


def test_a_partitioner_can_leave_rows_over():
    parts = flwr_partition(PARTITIONERS["size"](), LABELS)
    assert len(parts.unassigned) == 300 - 150


def test_the_partitioner_that_was_given_stays_new():
    partitioner = PARTITIONERS["dirichlet"]()
    first = flwr_partition(partitioner, LABELS)
    assert not partitioner.is_dataset_assigned()
    assert flwr_partition(partitioner, LABELS).digest() == first.digest()


def test_a_dataset_can_be_given_itself():
    table = datasets.Dataset.from_dict({"who": ["b", "a", "b", "c"], "x": [1, 2, 3, 4]})
    parts = flwr_partition(flwr.NaturalIdPartitioner(partition_by="who"), table)
    assert [part.tolist() for part in parts] == [[0, 2], [1], [3]]  # in order of appearance
    assert parts.client_names == ("b", "a", "c")
    assert table.column_names == ["who", "x"]


def test_a_selection_of_a_dataset_is_numbered_by_itself():
    table = datasets.Dataset.from_dict({"who": list("xbabcx")}).select([1, 2, 3, 4])
    parts = flwr_partition(flwr.NaturalIdPartitioner(partition_by="who"), table)
    assert [part.tolist() for part in parts] == [[0, 2], [1], [3]]


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (["b", "a", "b"], ("b", "a")),
        ([5, 3, 5], (5, 3)),
        ([("b", 1), ("a", 1), ("b", 1)], (1, 0)),  # numbered in increasing order
        ([2**64, 7, 2**64], (1, 0)),
        ([0.5, 0.25, 0.5], (1, 0)),
    ],
    ids=["text", "numbers", "tuples", "beyond int64", "floats"],
)
def test_labels_of_any_kind_are_taken(labels: list[Any], names: tuple[Any, ...]):
    parts = flwr_partition(flwr.NaturalIdPartitioner(partition_by="label"), labels)
    assert [part.tolist() for part in parts] == [[0, 2], [1]]
    assert parts.client_names == names


def test_the_column_can_have_another_name():
    partitioner = flwr.NaturalIdPartitioner(partition_by="target")
    assert len(flwr_partition(partitioner, LABELS, column="target")) == 6


def test_the_record_names_the_partitioner():
    parts = flwr_partition(PARTITIONERS["shard"](), LABELS)
    assert parts.name == "flwr"
    assert parts.parameters == {"partitioner": "ShardPartitioner"}


def test_a_partitioner_of_columns_is_refused():
    table = datasets.Dataset.from_dict({"a": [1, 2], "b": [1, 2], "c": [1, 2]})
    partitioner = flwr.VerticalEvenPartitioner(num_partitions=2)
    with pytest.raises(ValueError, match="VerticalEvenPartitioner gives them columns"):
        flwr_partition(partitioner, table)


def test_a_used_partitioner_is_refused():
    partitioner = PARTITIONERS["iid"]()
    partitioner.dataset = datasets.Dataset.from_dict({"label": [1]})
    with pytest.raises(ValueError, match="must be new"):
        flwr_partition(partitioner, LABELS)


def test_what_is_no_partitioner_is_refused():
    with pytest.raises(ValueError, match="must be one of `flwr_datasets.partitioner`. Got 'iid'."):
        flwr_partition("iid", LABELS)
