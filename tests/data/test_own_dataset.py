"""Facts about clients from a PyTorch dataset."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from torch.utils.data import Dataset, IterableDataset

from fedaccord import FedAvg, Federation, simulate
from fedaccord.data import ArrayData, clients_from_dataset, iid_partition
from fedaccord.errors import UncontrolledRandomnessError
from fedaccord.executors import Threads
from fedaccord.metrics import evaluate_clients
from fedaccord.models import cross_entropy, logistic


class Points(Dataset):
    """Points (i, -i) of class i modulo 2, with a transform as torchvision's datasets have one."""

    def __init__(self, size=6, transform=lambda x: x):
        self.size = size
        self.transform = transform
        self.fetched = 0

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        if not 0 <= index < self.size:
            raise IndexError(index)
        self.fetched += 1
        return self.transform(torch.tensor([float(index), -float(index)])), index % 2


PARTS = [[5, 0], [], [3]]


@pytest.mark.parametrize("materialise", [True, False])
def test_each_client_holds_its_samples(materialise):
    clients = clients_from_dataset(Points(), PARTS, materialise=materialise)
    assert [len(client) for client in clients] == [2, 0, 1]
    assert [client.inputs[:, 0].tolist() for client in clients] == [[5, 0], [], [3]]
    assert [client.targets.tolist() for client in clients] == [[1, 0], [], [1]]
    assert clients[1].batch(torch.arange(0))[0].shape == (0, 2)


@pytest.mark.parametrize("materialise", [True, False])
def test_lists_of_arrays_and_numbers_are_datasets_too(materialise):
    pairs = [(np.array([1.0, 2.0]), 0), (np.array([3.0, 4.0]), 1)]
    (client,) = clients_from_dataset(pairs, [[1, 0]], materialise=materialise)
    x, y = client.batch(torch.tensor([0]))
    assert (x.tolist(), y.tolist()) == ([[3, 4]], [1])
    assert (x.dtype, y.dtype) == (torch.float32, torch.int64)


def test_samples_that_are_kept_are_fetched_once():
    points = Points()
    clients = clients_from_dataset(points, [[0, 1], [2]])
    for _ in range(3):
        clients[0].batch(torch.tensor([0, 1]))
    assert points.fetched == 6


def test_samples_that_are_not_kept_are_fetched_by_the_batch():
    points = Points(transform=lambda x: x + 1)
    clients = clients_from_dataset(points, [[0, 1], [2]], materialise=False)
    before = points.fetched
    assert clients[0].batch(torch.tensor([1]))[0].tolist() == [[2, 0]]
    assert points.fetched == before + 1


def test_lazy_samples_can_be_divided_further():
    (client,) = clients_from_dataset(Points(), [range(6)], materialise=False)
    assert client.subset([5, 3]).subset([1]).inputs.tolist() == [[3, -3]]
    with pytest.raises(ValueError, match="must be in"):
        client.subset([6])


@pytest.mark.parametrize(
    "draw",
    [lambda: torch.randn(2), lambda: np.random.rand(2), random.random],  # noqa: NPY002
)
def test_random_transforms_are_refused_where_samples_are_kept(draw):
    points = Points(transform=lambda x: x + torch.as_tensor(draw(), dtype=torch.float32))
    with pytest.raises(UncontrolledRandomnessError, match="materialise=False"):
        clients_from_dataset(points, PARTS)


def steps(points, *, seed=0, **options):
    clients = clients_from_dataset(points, iid_partition(6, num_clients=2), materialise=False)
    federation = Federation(lambda: logistic(2), cross_entropy, clients)
    return [r.step_norm for r in simulate(FedAvg(), federation, rounds=2, seed=seed, **options)]


def test_random_transforms_of_pytorch_follow_the_seed_where_samples_are_not_kept():
    def noisy():
        return Points(transform=lambda x: x + torch.randn(2))

    before = torch.random.get_rng_state()
    first, again, threads, other = (
        steps(noisy()),
        steps(noisy()),
        steps(noisy(), executor=Threads(2)),
        steps(noisy(), seed=1),
    )
    assert first == again == threads != other
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.parametrize("draw", [np.random.rand, random.random])
def test_transforms_that_draw_elsewhere_are_refused_when_training_starts(draw):
    with pytest.raises(UncontrolledRandomnessError):
        steps(Points(transform=lambda x: x + draw()))


@pytest.mark.parametrize(
    ("dataset", "error", "message"),
    [
        ([({"a": 1}, 0)], ValueError, r"Entry 0 of sample 0.*`dict`.*ToTensor"),
        ([([1.0], "cat")], ValueError, r"Entry 1 of sample 0.*encode_classes"),
        ([{"x": [1.0]}], TypeError, "Sample 0 is a `dict`"),
        ([([1.0], 0), ([1.0, 2.0], 0)], ValueError, "same shapes. Sample 1 has"),
        ([([float("nan")], 0)], ValueError, "Row 0 holds NaN"),
        ([], ValueError, "at least one sample"),
    ],
)
def test_samples_that_cannot_be_used_are_named(dataset, error, message):
    with pytest.raises(error, match=message):
        clients_from_dataset(dataset, [range(len(dataset))])


def test_an_iterable_dataset_is_refused():
    class Stream(IterableDataset):
        def __iter__(self):
            yield torch.zeros(2), 0

    with pytest.raises(TypeError, match="Make a list"):
        clients_from_dataset(Stream(), [[0]])


def test_indices_and_partitions_must_fit():
    with pytest.raises(ValueError, match="Client 1: Indices must be in"):
        clients_from_dataset(Points(), [[0], [6]])
    with pytest.raises(ValueError, match="splits 4 samples, but the dataset has 6"):
        clients_from_dataset(Points(), iid_partition(4, num_clients=2))


@pytest.mark.parametrize("materialise", [True, False])
def test_two_rounds_train_and_give_the_same_as_arrays(materialise):
    parts = [[0, 1, 2], [3], [4, 5]]
    whole = ArrayData.of([Points()[i][0] for i in range(6)], [i % 2 for i in range(6)])
    ours = clients_from_dataset(Points(), parts, materialise=materialise)
    last = []
    for clients in (ours, [whole.subset(part) for part in parts]):
        federation = Federation(lambda: logistic(2), cross_entropy, clients)
        *_, result = simulate(FedAvg(), federation, rounds=2)
        last.append(result.training.params)
    assert torch.equal(*last)
    scores = evaluate_clients(federation.module(result.training), ours, num_classes=2)
    assert scores.num_examples.tolist() == [3, 1, 2]
