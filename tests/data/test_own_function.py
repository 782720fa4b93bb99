"""Facts about clients whose data a function makes."""

from __future__ import annotations

import random
import threading
from collections import Counter

import numpy as np
import pytest
import torch

from fedaccord import FedAvg, Federation, UniformSampler, simulate
from fedaccord.data import ArrayData, clients_from_function
from fedaccord.errors import UncontrolledRandomnessError
from fedaccord.executors import Threads
from fedaccord.models import cross_entropy, logistic
from fedaccord.random import generator


def points(client):
    """A client's own points: client 0 has none, client 1 one, and so on."""
    source = generator(0, "data", client)
    return torch.randn(client, 2, generator=source), torch.arange(client) % 2


class Counting:
    """A function that counts its calls by client."""

    def __init__(self, make=points):
        self.make = make
        self.calls = Counter()

    def __call__(self, client):
        self.calls[client] += 1
        return self.make(client)


def test_nothing_is_made_before_it_is_looked_at():
    make = Counting()
    clients = clients_from_function(make, 5)
    assert len(clients) == 5
    Federation(lambda: logistic(2), cross_entropy, clients)
    assert not make.calls
    assert clients[3].batch(torch.tensor([2]))[0].tolist() == points(3)[0][2:].tolist()
    assert make.calls == {3: 1}


def test_sizes_are_remembered():
    make = Counting()
    clients = clients_from_function(make, 5, cache=1)
    for _ in range(3):
        assert [len(client) for client in clients] == [0, 1, 2, 3, 4]
    assert set(make.calls.values()) == {1}


def test_no_more_are_kept_than_were_asked_for_and_the_last_used_stay():
    make = Counting()
    clients = clients_from_function(make, 4, cache=2)
    for client in (1, 2, 1, 3, 1, 2):  # at 3 client 2 falls out
        clients[client].batch(torch.tensor([0]))
    assert make.calls == {1: 1, 2: 2, 3: 1}


def test_positions_count_from_the_end_and_slices_are_taken():
    clients = clients_from_function(points, 4)
    assert len(clients[-1]) == 3
    assert [len(client) for client in clients[1:3]] == [1, 2]
    with pytest.raises(IndexError):
        clients[4]


def test_data_of_any_kind_are_taken_as_they_are():
    data = ArrayData.of([[1.0]], [0])
    assert clients_from_function(lambda _: data, 1)[0].batch(torch.tensor([0]))[0].tolist() == [[1]]


def test_threads_make_a_clients_data_once():
    together = threading.Barrier(4)
    make = Counting()
    clients = clients_from_function(make, 9)
    found = []

    def look():
        together.wait()
        found.extend(clients[client].batch(torch.tensor([0]))[0] for client in range(1, 9))

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 32
    assert make.calls == dict.fromkeys(range(1, 9), 1)


@pytest.mark.parametrize("cache", [1, 64])
@pytest.mark.parametrize("executor", [None, Threads(3)])
def test_neither_the_cache_nor_threads_change_a_run(cache, executor):
    options = {"rounds": 2, "sampler": UniformSampler(5)}
    options |= {} if executor is None else {"executor": executor}
    made = clients_from_function(points, 8, cache=cache)
    held = [ArrayData.of(*points(client)) for client in range(8)]
    last = []
    for clients, more in ((made, options), (held, {**options})):
        federation = Federation(lambda: logistic(2), cross_entropy, clients)
        *_, result = simulate(FedAvg(), federation, **more)
        last.append(result.training.params)
    assert torch.equal(*last)


@pytest.mark.parametrize(
    "draw",
    [torch.rand, np.random.rand, lambda _: random.random()],
)
def test_draws_from_a_global_generator_are_refused(draw):
    def make(client):
        return torch.zeros(2, 2) + torch.as_tensor(draw(2)).float(), torch.zeros(2).long()

    clients = clients_from_function(make, 2)
    with pytest.raises(UncontrolledRandomnessError):
        len(clients[0])


def test_draws_are_refused_inside_a_job_too():
    first = [True]

    def make(client):
        if first:  # made for its size, then fallen out of the cache
            first.clear()
            return torch.zeros(2, 2), torch.zeros(2).long()
        return torch.rand(2, 2), torch.zeros(2).long()

    clients = clients_from_function(make, 2, cache=1)
    len(clients[0])
    with pytest.raises(UncontrolledRandomnessError):
        list(simulate(FedAvg(), Federation(lambda: logistic(2), cross_entropy, clients), rounds=1))


def test_data_that_change_size_are_refused():
    sizes = iter((2, 1, 3))
    clients = clients_from_function(lambda _: (torch.zeros(next(sizes), 1), None), 2, cache=1)
    with pytest.raises(ValueError, match="Client 0"):
        len(clients[0])
    sizes = iter((2, 1, 3))
    clients = clients_from_function(lambda _: (torch.zeros(next(sizes), 1),), 2, cache=1)
    assert [len(clients[0]), len(clients[1])] == [2, 1]
    with pytest.raises(ValueError, match=r"`make\(0\)` must give the same data.*2 samples.*3 now"):
        clients[0].batch(torch.tensor([0]))


def test_a_function_that_raises_is_asked_again_and_names_the_client_in_a_run():
    def make(client):
        raise OSError("The disk is gone.")

    make = Counting(make)
    clients = clients_from_function(make, 2)
    for _ in range(2):
        with pytest.raises(OSError, match="disk"):
            len(clients[1])
    assert make.calls == {1: 2}


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((points, 0), ValueError, "`num_clients` must be an integer of at least 1"),
        ((points, 2.0), ValueError, "`num_clients` must be an integer of at least 1"),
        ((None, 2), TypeError, "`make` must be a function"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        clients_from_function(*arguments)
    with pytest.raises(ValueError, match="`cache`"):
        clients_from_function(points, 2, cache=0)


def test_what_is_no_data_is_refused():
    with pytest.raises(TypeError, match=r"`make\(0\)` must give `\(inputs, targets\)`"):
        len(clients_from_function(lambda _: 3, 1)[0])
