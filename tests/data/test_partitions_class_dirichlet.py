"""Facts about the class-wise Dirichlet split."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedaccord.data import Partition, class_dirichlet_partition
from fedaccord.data._proportions import DirichletDraws, cut

LABELS = np.arange(6000) % 10


def class_counts(parts: Partition, labels: np.ndarray) -> np.ndarray:
    return np.array([np.bincount(labels[part], minlength=labels.max() + 1) for part in parts])


def test_class_shares_follow_the_dirichlet_distribution():
    # the first class is cut before anybody has the even part: E p = 1/N and
    # Var p = (1/N)(1 - 1/N)/(N alpha + 1), here .2, .16/3.5; cutting 3,000 changes that by < .1 %
    labels = np.repeat([0, 1], [3000, 9000])
    shares = np.array(
        [
            class_counts(
                class_dirichlet_partition(
                    labels, num_clients=5, alpha=0.5, min_samples=0, seed=seed
                ),
                labels,
            )[:, 0]
            / 3000
            for seed in range(1000)
        ]
    )
    assert abs(shares.mean() - 0.2) < 1e-12
    # five clients of a thousand draws; the variance of a variance is about 4 % here
    assert abs(shares.var() / (0.16 / 3.5) - 1) < 0.1


def test_who_has_the_even_part_gets_nothing_of_later_classes():
    # the definition: clients are left out once they hold n / N
    labels = np.repeat(np.arange(10), 100)
    parts = class_dirichlet_partition(labels, num_clients=5, alpha=0.1, min_samples=0, seed=3)
    before = np.cumsum(class_counts(parts, labels), axis=1)
    for label in range(1, 10):
        full = before[:, label - 1] >= 1000 / 5
        assert not class_counts(parts, labels)[full, label].any()


def test_small_alpha_never_succeeds_unrepaired():
    # benchmarks: at alpha .01 with 100 clients and 10 classes, several clients stay empty
    for seed in range(3):
        parts = class_dirichlet_partition(LABELS, num_clients=100, alpha=0.01, seed=seed)
        assert parts.parameters["tries"] == parts.parameters["max_tries"] == 100
        assert parts.parameters["smallest_before"] == 0
        assert parts.parameters["moved"] > 0
        assert min(parts.sizes) == 10


def test_large_alpha_succeeds_at_once():
    parts = class_dirichlet_partition(LABELS, num_clients=100, alpha=1.0, seed=0)
    report = parts.parameters
    assert (report["tries"], report["moved"]) == (1, 0)
    assert report["smallest_before"] == min(parts.sizes) >= 10


def slow_repair(sizes: list[int], least: int) -> list[int]:
    """One sample at a time from the largest, the lowest number among equals."""
    sizes = list(sizes)
    for client, size in enumerate(sizes):
        for _ in range(max(0, least - size)):
            sizes[sizes.index(max(sizes))] -= 1
            sizes[client] += 1
    return sizes


@pytest.mark.parametrize("seed", range(5))
def test_the_repair_takes_one_sample_at_a_time_from_the_largest(seed: int):
    options: dict[str, Any] = {"num_clients": 50, "alpha": 0.02, "max_tries": 1, "seed": seed}
    before = class_dirichlet_partition(LABELS, min_samples=0, **options)
    after = class_dirichlet_partition(LABELS, min_samples=30, **options)
    assert list(after.sizes) == slow_repair(list(before.sizes), 30)
    assert after.parameters["smallest_before"] == min(before.sizes)
    gained = [max(0, 30 - size) for size in before.sizes]
    assert after.parameters["moved"] == sum(gained)
    assert sorted(np.concatenate(after)) == list(range(6000))


def test_the_repair_leaves_small_clients_what_they_had():
    options: dict[str, Any] = {"num_clients": 50, "alpha": 0.02, "max_tries": 1}
    before = class_dirichlet_partition(LABELS, min_samples=0, **options)
    after = class_dirichlet_partition(LABELS, min_samples=30, **options)
    small = [client for client, size in enumerate(before.sizes) if 0 < size < 30]
    assert small
    assert all(set(before[client]) <= set(after[client]) for client in small)


def test_the_best_try_is_kept():
    options: dict[str, Any] = {"num_clients": 100, "alpha": 0.1, "min_samples": 25}
    smallest = [
        class_dirichlet_partition(LABELS, max_tries=tries, **options).parameters["smallest_before"]
        for tries in (1, 3, 10, 30)
    ]
    assert smallest == sorted(smallest)
    assert smallest[0] < smallest[-1]


def test_without_repair_failure_names_settings_that_work():
    options: dict[str, Any] = {"num_clients": 100, "alpha": 0.1, "repair": "raise"}
    with pytest.raises(ValueError, match="After 5 tries the best has a client with") as caught:
        class_dirichlet_partition(LABELS, min_samples=25, max_tries=5, **options)
    text = str(caught.value)
    possible = int(re.findall("`min_samples` of at most ([0-9]+)", text)[0])
    parts = class_dirichlet_partition(LABELS, min_samples=possible, max_tries=5, **options)
    assert min(parts.sizes) == possible


def test_repair_is_one_of_two_words():
    with pytest.raises(ValueError, match="`repair` must be 'move' or 'raise'. Got 'drop'."):
        class_dirichlet_partition(LABELS, num_clients=2, alpha=1, repair="drop")


@pytest.mark.parametrize("alpha", [5e-324, 1e-300, 1e-8, 1e8, 1e300])
def test_any_positive_alpha_can_be_drawn(alpha: float):
    parts = class_dirichlet_partition(
        LABELS, num_clients=10, alpha=alpha, min_samples=0, max_tries=1
    )
    assert sorted(np.concatenate(parts)) == list(range(6000))


def test_tiny_alpha_gives_each_class_to_one_client():
    labels = np.arange(1000) % 10
    parts = class_dirichlet_partition(labels, num_clients=10, alpha=1e-12, min_samples=0)
    # whoever has a class of 100 has the even part of 100
    assert sorted(map(sorted, class_counts(parts, labels).tolist())) == [[0] * 9 + [100]] * 10


def test_huge_alpha_gives_equal_parts_of_each_class():
    parts = class_dirichlet_partition(LABELS, num_clients=10, alpha=1e12, min_samples=0)
    assert np.abs(class_counts(parts, LABELS)[:, 0] - 60).max() <= 1  # cuts are rounded down


def test_draws_have_the_moments_of_the_dirichlet_distribution():
    # Dir(alpha 1_k): mean 1/k, variance (1/k)(1 - 1/k)/(k alpha + 1)
    for alpha in (0.01, 0.5, 1.0, 20.0):
        draws = DirichletDraws(np.random.default_rng(0), alpha, 20_000, 4)
        weights = np.array([draws.weights(row) for row in range(20_000)])
        shares = weights / weights.sum(axis=1, keepdims=True)
        expected = 0.25 * 0.75 / (4 * alpha + 1)
        assert np.abs(shares.mean(axis=0) - 0.25).max() < 5 * np.sqrt(expected / 20_000)
        assert abs(shares.var() / expected - 1) < 0.03


def test_draws_among_some_follow_their_own_dirichlet_distribution():
    # Dir(alpha 1_2): mean 1/2, variance (1/4)/(2 alpha + 1)
    draws = DirichletDraws(np.random.default_rng(0), 0.3, 20_000, 4)
    among = np.array([True, False, True, False])
    weights = np.array([draws.weights(row, among) for row in range(20_000)])
    assert not weights[:, ~among].any()
    first = weights[:, 0] / weights.sum(axis=1)
    assert abs(first.mean() - 0.5) < 5 * np.sqrt(0.25 / 1.6 / 20_000)
    assert abs(first.var() / (0.25 / 1.6) - 1) < 0.03


@given(
    st.lists(st.floats(0, 1e300), min_size=1, max_size=20).filter(lambda w: max(w) > 0),
    st.integers(0, 10_000),
)
def test_a_cut_gives_everything_and_nothing_to_who_has_no_share(weights: list[float], total: int):
    counts = cut(np.array(weights), total)
    assert counts.sum() == total
    assert counts.min() >= 0
    assert not counts[np.array(weights) == 0].any()


def test_a_cut_rounds_cumulated_shares_down():
    # 10 at .25, .5, 1: floor of 2.5, 5, 10
    assert cut(np.array([1.0, 1.0, 2.0]), 10).tolist() == [2, 3, 5]
