"""Facts about the splits of samples over clients."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedaccord.data import (
    Partition,
    client_dirichlet_partition,
    iid_partition,
    natural_partition,
    strata_partition,
)

EXAMPLES = json.loads((Path(__file__).parent / "examples.json").read_text(encoding="utf-8"))
STRATA = [e for e in EXAMPLES if e["algorithm"] == "partition_dirichlet_strata"]
DIRICHLET = [client_dirichlet_partition, strata_partition]

labels_and_clients = st.tuples(
    st.lists(st.integers(0, 4), min_size=1, max_size=120),
    st.integers(1, 12),
    st.sampled_from([0.05, 0.3, 1.0, 100.0]),
    st.integers(0, 2**32 - 1),
).filter(lambda case: case[1] <= len(case[0]))


def as_lists(parts: Partition) -> list[list[int]]:
    return [part.tolist() for part in parts]


def equal_parts(split: Callable[..., Partition], case: tuple) -> Partition:
    labels, num_clients, alpha, seed = case
    size = len(labels) // num_clients
    return split(labels, num_clients=num_clients, samples_per_client=size, alpha=alpha, seed=seed)


# --- what every split obeys


@given(labels_and_clients)
def test_iid_gives_every_sample_once_in_sizes_that_differ_by_one(case):
    labels, num_clients, _, seed = case
    parts = iid_partition(labels, num_clients=num_clients, seed=seed)
    assert sorted(np.concatenate(parts)) == list(range(len(labels)))
    assert max(parts.sizes) - min(parts.sizes) <= 1


@given(labels_and_clients)
def test_client_dirichlet_gives_no_sample_twice_and_equal_sizes(case):
    parts = equal_parts(client_dirichlet_partition, case)
    given_out = np.concatenate(parts)
    assert len(set(given_out.tolist())) == len(given_out)
    assert set(parts.sizes) == {len(case[0]) // case[1]}
    assert len(parts) == case[1]


@given(labels_and_clients)
def test_strata_gives_equal_sizes_without_repetition_inside_a_client(case):
    parts = equal_parts(strata_partition, case)
    assert set(parts.sizes) == {len(case[0]) // case[1]}
    assert all(len(set(part.tolist())) == len(part) for part in parts)


@given(labels_and_clients, st.sampled_from(DIRICHLET))
def test_every_sample_is_held_or_reported(case, split):
    parts = equal_parts(split, case)
    held = np.concatenate(parts).tolist()
    assert set(held) | set(parts.unassigned.tolist()) == set(range(len(case[0])))
    assert not set(held) & set(parts.unassigned.tolist())
    assert parts.repeated.tolist() == sorted({i for i in held if held.count(i) > 1})


@given(labels_and_clients, st.sampled_from(DIRICHLET))
def test_the_same_seed_gives_the_same_split(case, split):
    first, second = equal_parts(split, case), equal_parts(split, case)
    assert as_lists(first) == as_lists(second)
    assert first.digest() == second.digest()


@pytest.mark.parametrize("split", DIRICHLET)
def test_another_seed_gives_another_split(split):
    labels = np.arange(1000) % 10
    settings = {"num_clients": 10, "samples_per_client": 50, "alpha": 1.0}
    assert split(labels, **settings, seed=1).digest() != split(labels, **settings, seed=2).digest()


def test_another_seed_gives_another_iid_split():
    first, second = (iid_partition(100, num_clients=4, seed=seed) for seed in (1, 2))
    assert first.digest() != second.digest()


@pytest.mark.parametrize("split", DIRICHLET)
def test_labels_and_global_generators_are_left_alone(split):
    labels = np.arange(200) % 7
    before, state = labels.copy(), np.random.get_state()[1].copy()  # noqa: NPY002
    torch_state = torch.get_rng_state()
    split(labels, num_clients=5, samples_per_client=20, alpha=0.3, seed=3)
    assert np.array_equal(labels, before)
    assert np.array_equal(np.random.get_state()[1], state)  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), torch_state)


# --- strata, index for index


@pytest.mark.parametrize("example", STRATA, ids=[e["name"] for e in STRATA])
def test_strata_equal_the_published_code_index_for_index(example):
    settings = dict(example["inputs"])  # expected: FedCMOO's own code
    parts = strata_partition(settings.pop("labels"), **settings)
    assert as_lists(parts) == example["expected"]["client_indices"]


def slow_strata(labels, num_clients, samples_per_client, alpha, seed):
    """Lists and one step after the other, word for word from the specification."""
    rng = np.random.RandomState(seed)
    everything = list(range(len(labels)))
    rng.shuffle(everything)
    order = sorted(set(labels))
    pools = {label: [i for i, have in enumerate(labels) if have == label] for label in order}
    for label in order:
        rng.shuffle(pools[label])
    used = {label: [] for label in order}
    clients = []
    for _ in range(num_clients):
        mine = []
        for label, share in zip(order, rng.dirichlet([alpha] * len(order)), strict=True):
            count = int(share * samples_per_client)
            if len(pools[label]) < count:
                pools[label] = used[label] + pools[label]
                rng.shuffle(pools[label])
                used[label] = []
            mine += pools[label][:count]
            used[label] += pools[label][:count]
            del pools[label][:count]
        if len(mine) < samples_per_client:
            rest = [i for label in order for i in pools[label]]
            rng.shuffle(rest)
            while len(mine) < samples_per_client:
                i = rest.pop()
                mine.append(i)
                used[labels[i]].append(i)
                pools[labels[i]].remove(i)
        clients.append(mine)
    return clients


@given(labels_and_clients)
def test_strata_equal_a_slow_version_written_from_the_specification(case):
    labels, num_clients, alpha, seed = case
    size = len(labels) // num_clients
    expected = slow_strata(labels, num_clients, size, alpha, seed)
    assert as_lists(equal_parts(strata_partition, case)) == expected


def test_label_rows_are_strata_of_their_own():
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 10, (600, 2))
    combined = 10 * rows[:, 0] + rows[:, 1]  # the specification's stratum label
    settings = {"num_clients": 6, "samples_per_client": 90, "alpha": 0.3, "seed": 10}
    assert as_lists(strata_partition(rows, **settings)) == as_lists(
        strata_partition(combined, **settings)
    )


@pytest.mark.parametrize(
    "disguise",
    [
        lambda labels: [f"class {label}" for label in labels],
        lambda labels: [(label, "x") for label in labels],
        torch.tensor,
        lambda labels: list(torch.tensor(labels)),
        lambda labels: np.array(labels, dtype=object),
        lambda labels: np.array(labels, dtype=np.uint8),
        lambda labels: [label / 2 for label in labels],
    ],
    ids=["strings", "tuples", "tensor", "tensors", "objects", "uint8", "floats"],
)
def test_the_kind_of_label_does_not_matter(disguise):
    labels = [(3 * i) % 7 for i in range(100)]
    settings = {"num_clients": 4, "samples_per_client": 20, "alpha": 0.3, "seed": 1}
    expected = as_lists(strata_partition(labels, **settings))
    assert as_lists(strata_partition(disguise(labels), **settings)) == expected


def test_a_number_and_its_text_are_different_labels():
    parts = natural_partition([1, "1", 1, "1", None])
    assert sorted(as_lists(parts)) == [[0, 2], [1, 3], [4]]


# --- client-wise Dirichlet


def test_small_alpha_means_one_class_for_most_clients():
    # Dir(.01 on ten classes): the largest share exceeds .95 for about 85 % of draws
    labels = np.arange(60_000) % 10
    settings = {"num_clients": 100, "samples_per_client": 48, "alpha": 0.01}
    parts = client_dirichlet_partition(labels, **settings)
    largest = [np.bincount(labels[part], minlength=10).max() / 48 for part in parts]
    assert np.mean(np.array(largest) > 0.9) > 0.7


def test_large_alpha_means_nearly_equal_classes():
    labels = np.arange(60_000) % 10
    settings = {"num_clients": 20, "samples_per_client": 1000, "alpha": 1e6}
    parts = client_dirichlet_partition(labels, **settings)
    counts = np.array([np.bincount(labels[part], minlength=10) for part in parts])
    # binomial(1000, .1) has standard deviation 9.5; six of them
    assert np.abs(counts - 100).max() < 57


def test_mean_class_shares_follow_the_dirichlet_distribution():
    # E p_c = 1/C and Var p_c = (1/C)(1 - 1/C)/(C alpha + 1), plus the multinomial's p(1-p)/q
    labels = np.arange(400_000) % 4
    settings = {"num_clients": 1000, "samples_per_client": 100, "alpha": 0.5}
    parts = client_dirichlet_partition(labels, **settings)
    shares = np.array([np.bincount(labels[part], minlength=4) for part in parts]) / 100
    variance = 0.25 * 0.75 / 3
    expected = variance + (0.25 - variance - 0.0625) / 100
    assert abs(shares.mean() - 0.25) < 1e-12
    assert abs(shares.var() - expected) < 0.05 * expected  # four classes of 1,000 draws each


def test_a_class_that_runs_out_is_replaced_by_others():
    labels = np.array([0] * 5 + [1] * 95)
    settings = {"num_clients": 10, "samples_per_client": 10, "alpha": 0.001}
    parts = client_dirichlet_partition(labels, **settings)
    assert len(parts.unassigned) == 0
    assert len(parts.repeated) == 0


# --- natural


def test_natural_parts_hold_exactly_each_clients_rows():
    parts = natural_partition(["b", "a", "b", "c", "a"])
    assert as_lists(parts) == [[1, 4], [0, 2], [3]]
    assert parts.client_names == ("a", "b", "c")


# --- what cannot be done is said at once (case C08)


def test_c08_too_few_samples_name_the_need_and_what_is_possible():
    with pytest.raises(ValueError, match=r"need 100 samples. Got 50.*at most 5 or at most 5"):
        client_dirichlet_partition(
            np.arange(50) % 10, num_clients=10, samples_per_client=10, alpha=0.1
        )


@pytest.mark.parametrize("alpha", [1e-3, 1e-2, 0.1])
def test_c08_extreme_alpha_gives_a_valid_split_within_two_seconds(alpha):
    begin = perf_counter()
    for seed in range(20):
        parts = client_dirichlet_partition(
            np.arange(1000) % 10, num_clients=10, samples_per_client=100, alpha=alpha, seed=seed
        )
        assert len(parts.unassigned) == 0
    assert perf_counter() - begin < 2


def test_c08_shares_that_underflow_name_alpha():
    # two gamma draws with shape 1e-4 underflow together with probability about .87
    with pytest.raises(ValueError, match="underflow with `alpha` 0.0001"):
        strata_partition([0, 1] * 50, num_clients=50, samples_per_client=1, alpha=1e-4)


def test_strata_that_run_out_name_settings_that_work():
    # nearly equal shares of twelve strata floor to nothing, so no stratum is ever recycled
    settings = {"labels": range(12), "alpha": 1e6}
    with pytest.raises(ValueError, match="client 1 of 3: it needs 7 more and 5 are left") as caught:
        strata_partition(num_clients=3, samples_per_client=7, **settings)
    assert "`num_clients` of at most 1 " in str(caught.value)
    assert "`samples_per_client` of at most 4." in str(caught.value)
    assert strata_partition(num_clients=1, samples_per_client=7, **settings).sizes == (7,)
    assert strata_partition(num_clients=3, samples_per_client=4, **settings).sizes == (4, 4, 4)


@pytest.mark.parametrize("split", DIRICHLET)
@pytest.mark.parametrize("alpha", [0, -1, math.nan, math.inf])
def test_alpha_must_be_positive(split, alpha):
    with pytest.raises(ValueError, match="`alpha` must be positive"):
        split([0, 1], num_clients=1, samples_per_client=1, alpha=alpha)


@pytest.mark.parametrize("split", DIRICHLET)
@pytest.mark.parametrize("size", [0, 3])
def test_sizes_that_do_not_fit_are_refused(split, size):
    with pytest.raises(ValueError, match="samples_per_client"):
        split([0, 1], num_clients=1, samples_per_client=size, alpha=1)


def test_more_clients_than_samples_are_refused():
    with pytest.raises(ValueError, match="Use at most 3 clients"):
        iid_partition(3, num_clients=4)


def test_no_clients_are_refused():
    with pytest.raises(ValueError, match="`num_clients` must be at least 1. Got 0."):
        iid_partition(3, num_clients=0)


@pytest.mark.parametrize("labels", [[0.0, math.nan], ["a", math.nan], np.array([1.0, math.nan])])
def test_a_missing_label_is_named(labels):
    with pytest.raises(ValueError, match="label of sample 1 is NaN"):
        natural_partition(labels)


def test_no_labels_are_refused():
    with pytest.raises(ValueError, match="at least one sample"):
        natural_partition([])


def test_the_legacy_generator_takes_no_negative_seed():
    with pytest.raises(ValueError, match=r"`seed` must be in \[0, 2\*\*32\)"):
        strata_partition([0, 1], num_clients=1, samples_per_client=1, alpha=1, seed=-1)


@pytest.mark.parametrize(
    "split",
    [
        lambda labels: iid_partition(labels, num_clients=100),
        lambda labels: natural_partition(labels % 100),
        lambda labels: client_dirichlet_partition(
            labels, num_clients=100, samples_per_client=1000, alpha=0.01
        ),
        lambda labels: strata_partition(
            labels, num_clients=100, samples_per_client=1000, alpha=0.3
        ),
    ],
    ids=["iid", "natural", "client_dirichlet", "strata"],
)
def test_a_hundred_thousand_samples_take_less_than_a_second(split):
    labels = np.random.default_rng(0).integers(0, 100, 100_000)
    begin = perf_counter()
    split(labels)
    assert perf_counter() - begin < 1


# --- the value itself


def test_a_partition_is_a_sequence_of_read_only_int64_arrays():
    parts = Partition([[2, 0], [], [1]], 4)
    assert [part.dtype for part in parts] == [np.int64] * 3
    assert parts.sizes == (2, 0, 1)
    assert parts[0].tolist() == [2, 0]
    with pytest.raises(ValueError, match="read-only"):
        parts[0][0] = 1


def test_a_partition_keeps_its_own_copy():
    mine = np.array([0, 1])
    parts = Partition([mine], 2)
    mine[0] = 1
    assert parts[0].tolist() == [0, 1]


def test_a_partition_reports_what_nobody_has_and_what_several_have():
    parts = Partition([[0, 1], [1, 2]], 5)
    assert parts.unassigned.tolist() == [3, 4]
    assert parts.repeated.tolist() == [1]


def test_the_digest_tells_the_same_samples_at_other_clients_apart():
    assert Partition([[0], [1]], 2).digest() != Partition([[1], [0]], 2).digest()
    assert Partition([[0, 1], []], 2).digest() != Partition([[0], [1]], 2).digest()


def test_a_partition_says_what_it_is():
    parts = Partition([[0, 1], [1]], 5, name="mine")
    assert repr(parts) == (
        "Partition(mine, 2 clients of 1 to 2 samples, 3 of 5 unassigned, 1 repeated)"
    )


@pytest.mark.parametrize("bad", [[[5]], [[-1]], [[0.5]], [[[0]]], [[True]]])
def test_indices_that_are_none_are_refused(bad):
    with pytest.raises(ValueError, match=r"Indices must be in|integer indices"):
        Partition(bad, 5)


def test_names_must_fit_the_clients():
    with pytest.raises(ValueError, match="one entry per client"):
        Partition([[0], [1]], 2, client_names=("a",))
