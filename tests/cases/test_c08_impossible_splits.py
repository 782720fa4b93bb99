"""C08: splits that cannot be made, or hardly."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from fedaccord.data import (
    Partition,
    client_dirichlet_partition,
    iid_partition,
    strata_partition,
)

LIMIT = 2.0  # seconds, as the case says; each takes some milliseconds
LABELS = np.arange(1000) % 10
every_split = pytest.mark.parametrize(
    "split", [client_dirichlet_partition, strata_partition], ids=lambda f: f.__name__
)
Split = Callable[..., Partition]


@contextmanager
def in_time() -> Iterator[None]:
    before = time.perf_counter()
    yield
    assert time.perf_counter() - before < LIMIT


def test_too_few_samples_say_how_many_are_needed_and_what_is_possible():
    # 10 clients x 10 samples = 100; 50 samples give 5 each, or 10 each to 5 clients
    with in_time(), pytest.raises(ValueError, match=r"need 100 samples\. Got 50\.") as caught:
        client_dirichlet_partition(
            np.arange(50) % 10, num_clients=10, samples_per_client=10, alpha=0.1
        )
    assert "`samples_per_client` of at most 5 or at most 5 clients" in str(caught.value)


def test_too_few_samples_for_the_strata_name_what_is_possible():
    # this partition recycles samples, so it may do with fewer; if not, it says at what it stopped
    with in_time(), pytest.raises(ValueError, match="ran out at client") as caught:
        strata_partition(np.arange(50) % 10, num_clients=10, samples_per_client=10, alpha=0.1)
    assert "`samples_per_client` of at most 5" in str(caught.value)


@pytest.mark.parametrize("samples", [1, 7, 9])
def test_fewer_samples_than_clients_are_refused(samples: int):
    wanted = f"at least 10 samples. Got {samples}"
    with in_time(), pytest.raises(ValueError, match=wanted):
        iid_partition(samples, num_clients=10)
    labels = np.zeros(samples, dtype=int)
    with in_time(), pytest.raises(ValueError, match=wanted):
        client_dirichlet_partition(labels, num_clients=10, samples_per_client=1, alpha=1.0)


EXTREME = {
    "b": {"num_clients": 10, "samples_per_client": 100, "alpha": 0.001},
    "b, some left over": {"num_clients": 10, "samples_per_client": 60, "alpha": 0.001},
    "c": {"num_clients": 100, "samples_per_client": 5, "alpha": 0.1},
    "c, all samples": {"num_clients": 100, "samples_per_client": 10, "alpha": 0.1},
    "one sample each": {"num_clients": 1000, "samples_per_client": 1, "alpha": 0.001},
    "one client": {"num_clients": 1, "samples_per_client": 1000, "alpha": 1e-8},
    "hardly any mixture": {"num_clients": 10, "samples_per_client": 100, "alpha": 1e-8},
    "nearly equal": {"num_clients": 10, "samples_per_client": 100, "alpha": 1e8},
}
every_extreme = pytest.mark.parametrize("options", EXTREME.values(), ids=EXTREME)


@every_extreme
@pytest.mark.parametrize("seed", range(5))
def test_extreme_proportions_give_a_valid_split(options: dict[str, Any], seed: int):
    with in_time():
        parts = client_dirichlet_partition(LABELS, seed=seed, **options)
    assert parts.sizes == (options["samples_per_client"],) * options["num_clients"]
    given = np.concatenate(parts)
    assert len(np.unique(given)) == len(given)  # disjoint
    assert len(parts.unassigned) == 1000 - len(given)  # what is left over is said


@every_extreme
@pytest.mark.parametrize("seed", range(5))
def test_extreme_proportions_of_strata_are_valid_or_name_the_parameter(
    options: dict[str, Any], seed: int
):
    message, parts = "", None
    with in_time():
        try:
            parts = strata_partition(LABELS, seed=seed, **options)
        except ValueError as error:
            message = str(error)
    if parts is None:
        assert re.search("`alpha`|`samples_per_client`", message)
        return
    assert parts.sizes == (options["samples_per_client"],) * options["num_clients"]
    # recycled samples are reported, so nothing is lost in silence
    times = np.bincount(np.concatenate(parts), minlength=1000)
    assert np.array_equal(parts.repeated, np.flatnonzero(times > 1))
    assert np.array_equal(parts.unassigned, np.flatnonzero(times == 0))


@every_split
def test_the_same_seed_gives_the_same_split_and_another_seed_another(split: Split):
    options = {"num_clients": 100, "samples_per_client": 5, "alpha": 0.1}
    one, again, other = (split(LABELS, seed=seed, **options) for seed in (3, 3, 4))
    assert one.digest() == again.digest()
    assert one.digest() != other.digest()


@every_split
@pytest.mark.parametrize("alpha", [0.0, -1.0, float("nan"), float("inf")])
def test_impossible_concentrations_are_refused_by_name(split: Split, alpha: float):
    with pytest.raises(ValueError, match="`alpha` must be positive and finite"):
        split(LABELS, num_clients=10, samples_per_client=10, alpha=alpha)


@every_split
@pytest.mark.parametrize("label_count", [1, 2, 1000], ids=["one class", "two", "all different"])
def test_any_number_of_classes_can_be_split(split: Split, label_count: int):
    labels = np.arange(1000) % label_count
    with in_time():
        parts = split(labels, num_clients=10, samples_per_client=20, alpha=0.1)
    assert parts.sizes == (20,) * 10
