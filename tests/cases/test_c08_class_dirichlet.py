"""C08 for splits that cut classes, which is where it was met."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from fedaccord.data import class_dirichlet_partition, quantity_partition

LIMIT = 2.0  # seconds, as the case says
LABELS = np.arange(1000) % 10


@contextmanager
def in_time() -> Iterator[None]:
    before = time.perf_counter()
    yield
    assert time.perf_counter() - before < LIMIT


def test_a_says_how_many_samples_are_needed_and_what_is_possible():
    # 10 clients x 10 samples = 100; 50 samples give 5 each, or 10 each to 5 clients
    with in_time(), pytest.raises(ValueError, match=r"need 100 samples\. Got 50\.") as caught:
        class_dirichlet_partition(np.arange(50) % 10, num_clients=10, alpha=0.1, min_samples=10)
    assert "`min_samples` of at most 5 or at most 5 clients" in str(caught.value)


@pytest.mark.parametrize("options", [{"min_samples": 5}, {"num_clients": 5}])
def test_a_what_is_named_as_possible_is(options: dict[str, int]):
    settings = {"num_clients": 10, "min_samples": 10, **options}
    with in_time():
        parts = class_dirichlet_partition(np.arange(50) % 10, alpha=0.1, **settings)
    assert min(parts.sizes) >= settings["min_samples"]


EXTREME = {
    "b": {"num_clients": 10, "alpha": 0.001, "min_samples": 10},
    "b, any size": {"num_clients": 10, "alpha": 0.001, "min_samples": 0},
    "b, less": {"num_clients": 10, "alpha": 1e-300, "min_samples": 10},
    "c": {"num_clients": 100, "alpha": 0.1, "min_samples": 5},
    "c, all equal": {"num_clients": 100, "alpha": 0.1, "min_samples": 10},
    "c, one each": {"num_clients": 1000, "alpha": 0.1, "min_samples": 1},
    "benchmark": {"num_clients": 100, "alpha": 0.01, "min_samples": 10},
}


@pytest.mark.parametrize("options", EXTREME.values(), ids=EXTREME)
@pytest.mark.parametrize("seed", range(5))
def test_b_c_give_a_valid_split(options: dict[str, Any], seed: int):
    with in_time():
        parts = class_dirichlet_partition(LABELS, seed=seed, **options)
    assert len(parts) == options["num_clients"]
    assert sorted(np.concatenate(parts)) == list(range(1000))  # disjoint, nothing lost
    assert min(parts.sizes) >= options["min_samples"]
    again = class_dirichlet_partition(LABELS, seed=seed, **options)
    assert again.digest() == parts.digest()


@pytest.mark.parametrize("seed", range(5))
def test_c_without_repair_names_the_parameters_to_change(seed: int):
    with in_time(), pytest.raises(ValueError, match="tries the best has a client") as caught:
        class_dirichlet_partition(
            LABELS, num_clients=100, alpha=0.01, min_samples=5, repair="raise", seed=seed
        )
    for name in ("`alpha`", "`min_samples`", "`max_tries`", "`repair='move'`"):
        assert name in str(caught.value)


@pytest.mark.parametrize("alpha", [1e-300, 1e-3, 0.1, 1e8])
def test_sizes_of_any_inequality_can_be_drawn(alpha: float):
    with in_time():
        parts = quantity_partition(1000, num_clients=100, alpha=alpha, min_samples=5)
    assert sorted(np.concatenate(parts)) == list(range(1000))
    assert min(parts.sizes) >= 5
