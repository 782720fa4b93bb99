"""Samples and clients held back from training."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedaccord.data import Partition, hold_out, iid_partition

parts = st.lists(st.integers(0, 12), min_size=1, max_size=6).map(
    lambda sizes: Partition(
        np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1]), num_samples=sum(sizes)
    )
)
fractions = st.sampled_from([0.0, 0.1, 0.25, 0.4])


@given(parts, fractions, fractions, st.sampled_from([0.0, 0.3, 0.9]), st.integers())
def test_every_sample_of_a_client_is_in_one_of_its_parts(
    split: Partition, test: float, validation: float, clients: float, seed: int
):
    held = hold_out(split, test=test, validation=validation, clients=clients, seed=seed)
    for whole, *three in zip(split, held.train, held.validation, held.test, strict=True):
        assert np.sort(np.concatenate(three)).tolist() == np.sort(whole).tolist()
    assert sorted((*held.seen, *held.unseen)) == list(range(len(split)))
    assert held.seen
    assert all(
        len(kept) > 0 for whole, kept in zip(split, held.train, strict=True) if len(whole) > 0
    )
    assert len(held.shared) == 0


@pytest.mark.parametrize(
    ("test", "validation", "sizes"),
    [
        (0.2, 0.0, (8, 0, 2)),
        (0.25, 0.25, (4, 3, 3)),  # floor(2.5 + 0.5) = 3 of each
        (0.29, 0.0, (7, 0, 3)),
        (0.9, 0.05, (1, 0, 9)),  # one stays to train on
    ],
)
def test_parts_are_rounded_half_up(test: float, validation: float, sizes: tuple[int, int, int]):
    held = hold_out(iid_partition(10, num_clients=1), test=test, validation=validation)
    assert (held.train.sizes[0], held.validation.sizes[0], held.test.sizes[0]) == sizes


def test_a_client_of_one_sample_trains_on_it_and_is_named():
    split = Partition([np.array([0]), np.arange(1, 5), np.array([], dtype=np.int64)], 5)
    held = hold_out(split, test=0.5)
    assert held.train.sizes == (1, 2, 0)
    assert held.without_test == (0,)


def test_one_clients_parts_do_not_depend_on_the_others():
    first = Partition([np.arange(10), np.arange(10, 30)], 40)
    second = Partition([np.arange(10), np.arange(30, 35)], 40)
    a, b = (hold_out(split, test=0.3, validation=0.2, seed=4) for split in (first, second))
    assert a.test[0].tolist() == b.test[0].tolist()
    assert a.validation[0].tolist() == b.validation[0].tolist()


@pytest.mark.parametrize("counts", [(30, 20, 10), (50, 7, 3), (4, 4, 52)])
def test_stratified_parts_have_the_clients_proportions(counts: tuple[int, ...]):
    labels = np.repeat(np.arange(3), counts)
    held = hold_out(iid_partition(60, num_clients=1), test=0.2, validation=0.1, stratify=labels)
    for part, fraction in ((held.test, 0.2), (held.validation, 0.1)):
        found = np.bincount(labels[part[0]], minlength=3)
        # proportional numbers, up to rounding: systematic selection is off by less than one for
        # what is held back in all, and once more for its division into two
        assert (np.abs(found - fraction * np.array(counts)) < 2).all()
    everything = np.concatenate([held.test[0], held.validation[0]])
    found = np.bincount(labels[everything], minlength=3)
    assert (np.abs(found - 0.3 * np.array(counts)) < 1).all()


@pytest.mark.parametrize(("fraction", "unseen"), [(0.0, 0), (0.1, 1), (0.25, 3), (0.99, 9)])
def test_clients_are_held_out(fraction: float, unseen: int):
    held = hold_out(iid_partition(50, num_clients=10), clients=fraction)
    assert len(held.unseen) == unseen


def test_the_seed_decides():
    split = iid_partition(100, num_clients=4)
    a, b, again = (hold_out(split, test=0.5, clients=0.5, seed=seed) for seed in (0, 1, 0))
    assert a.test.digest() != b.test.digest()
    assert a.test.digest() == again.test.digest()
    assert a.unseen == again.unseen


def test_samples_that_two_clients_share_are_named_where_they_leak():
    split = Partition([np.arange(10), np.arange(5, 15)], 15)
    held = hold_out(split, test=0.5)
    trained = {i for part in held.train for i in part.tolist()}
    tested = {i for part in held.test for i in part.tolist()}
    assert held.shared.tolist() == sorted(trained & tested)
    assert len(held.shared) > 0


@pytest.mark.parametrize(
    "options",
    [
        {"test": 1.0},
        {"test": -0.1},
        {"validation": float("nan")},
        {"clients": 1.0},
        {"test": True},
        {"test": 0.6, "validation": 0.4},
    ],
)
def test_parts_out_of_range_are_refused(options: dict[str, float]):
    with pytest.raises(ValueError, match=r"must (be in \[0, 1\)|leave something)"):
        hold_out(iid_partition(10, num_clients=2), **options)


def test_labels_of_other_data_are_refused():
    with pytest.raises(ValueError, match="each of 10 samples"):
        hold_out(iid_partition(10, num_clients=2), test=0.5, stratify=[0, 1])
