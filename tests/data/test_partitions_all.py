"""What every split obeys, whichever there are: they are found by their names."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedaccord import data
from fedaccord.data import Partition, load_partition, save_partition


def found() -> dict[str, Callable[..., Partition]]:
    """Partitions of samples; those of files and of other people's partitioners take no samples."""
    kinds = {"labels", "samples", "client_ids", "inputs"}
    functions = [getattr(data, name) for name in data.__all__ if name.endswith("_partition")]
    return {f.__name__: f for f in functions if first_parameter(f) in kinds}


def first_parameter(function: Callable[..., Any]) -> str:
    return next(iter(inspect.signature(function).parameters))


def options_of(function: Callable[..., Partition]) -> set[str]:
    return {
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    }


SPLITS = found()
every_split = pytest.mark.parametrize("split", SPLITS.values(), ids=SPLITS)
drawn = [f for f in SPLITS.values() if "seed" in options_of(f)]
every_drawn_split = pytest.mark.parametrize("split", drawn, ids=lambda f: f.__name__)
COUNTS = [
    (function, name)
    for function in SPLITS.values()
    for name in ("num_clients", "samples_per_client", "min_samples", "shards_per_client", "bins")
    if name in options_of(function)
]

# labels, number of clients, alpha, seed; two samples for each client at least, for two shards each
cases = st.tuples(
    st.lists(st.integers(0, 4), min_size=2, max_size=80),
    st.integers(1, 12),
    st.sampled_from([1e-3, 0.05, 0.3, 1.0, 100.0]),
    st.integers(0, 2**32 - 1),
).filter(lambda case: 2 * case[1] <= len(case[0]))
CASE = ([0, 1, 2, 1, 0] * 12, 6, 0.3, 5)


def call(split: Callable[..., Partition], case: Any, **changes: Any) -> Partition:
    labels, num_clients, alpha, seed = case
    if split is data.strata_partition and "alpha" not in changes:
        alpha = max(alpha, 0.05)  # below, the legacy generator may underflow: C08
    size = len(labels) // num_clients
    values = {
        "num_clients": num_clients,
        "samples_per_client": size,
        "min_samples": size,
        "max_tries": 3,
        "alpha": alpha,
        "seed": seed,
        **changes,
    }
    takes = options_of(split)
    given = {name: value for name, value in values.items() if name in takes}
    if first_parameter(split) == "inputs":
        return split(np.stack([np.arange(len(labels)), labels], axis=1), **given)
    return split(labels, **given)


def as_lists(parts: Partition) -> list[list[int]]:
    return [part.tolist() for part in parts]


def test_the_partitions_of_the_guide_are_found():
    assert set(SPLITS) == {
        "class_dirichlet_partition",
        "client_dirichlet_partition",
        "feature_partition",
        "iid_partition",
        "natural_partition",
        "quantity_partition",
        "shards_partition",
        "strata_partition",
    }


@every_split
@settings(max_examples=25)
@given(case=cases)
def test_every_sample_is_held_or_reported(split: Callable[..., Partition], case: Any):
    parts = call(split, case)
    held = [i for part in as_lists(parts) for i in part]
    everything = set(range(len(case[0])))
    assert set(held) | set(parts.unassigned.tolist()) == everything
    assert not set(held) & set(parts.unassigned.tolist())
    assert parts.repeated.tolist() == sorted({i for i in held if held.count(i) > 1})


@every_split
@settings(max_examples=25)
@given(case=cases)
def test_nobody_holds_a_sample_twice(split: Callable[..., Partition], case: Any):
    assert all(len(set(part)) == len(part) for part in as_lists(call(split, case)))


@every_split
@settings(max_examples=25)
@given(case=cases)
def test_only_strata_give_a_sample_to_several(split: Callable[..., Partition], case: Any):
    if split is not data.strata_partition:  # it recycles, and says so
        assert len(call(split, case).repeated) == 0


@every_split
@settings(max_examples=25)
@given(case=cases)
def test_only_splits_of_a_fixed_size_leave_samples_over(split: Callable[..., Partition], case: Any):
    if "samples_per_client" not in options_of(split):
        assert len(call(split, case).unassigned) == 0


@every_split
@settings(max_examples=25)
@given(case=cases)
def test_there_are_as_many_clients_as_asked_for(split: Callable[..., Partition], case: Any):
    wanted = case[1] if "num_clients" in options_of(split) else len(set(case[0]))
    assert len(call(split, case)) == wanted


@every_split
@settings(max_examples=25)
@given(case=cases)
def test_sizes_are_what_was_asked_for(split: Callable[..., Partition], case: Any):
    parts, size = call(split, case), len(case[0]) // case[1]
    if "samples_per_client" in options_of(split):
        assert set(parts.sizes) == {size}
    if "min_samples" in options_of(split):
        assert min(parts.sizes) >= size


@every_split
@settings(max_examples=25)
@given(case=cases)
def test_a_file_gives_back_every_split(
    tmp_path_factory: pytest.TempPathFactory, split: Callable[..., Partition], case: Any
):
    parts = call(split, case)
    path = tmp_path_factory.mktemp("split") / "split.json"
    save_partition(path, parts)
    read = load_partition(path)
    assert as_lists(read) == as_lists(parts)
    assert (read.name, read.seed, read.parameters) == (parts.name, parts.seed, parts.parameters)


@every_split
@settings(max_examples=25)
@given(case=cases)
def test_the_same_seed_gives_the_same_split(split: Callable[..., Partition], case: Any):
    assert as_lists(call(split, case)) == as_lists(call(split, case))


@every_drawn_split
def test_another_seed_gives_another_split(split: Callable[..., Partition]):
    assert call(split, CASE, seed=1).digest() != call(split, CASE, seed=2).digest()


@every_split
def test_numbers_of_numpy_are_numbers(split: Callable[..., Partition]):
    labels, num_clients, alpha, seed = CASE
    numpy_case = (labels, np.int32(num_clients), np.float64(alpha), np.uint64(seed))
    parts = call(split, numpy_case, samples_per_client=np.int64(10), min_samples=np.int8(10))
    assert parts.digest() == call(split, CASE).digest()
    # plain numbers for records: JSON takes no others
    values = [parts.seed, *parts.parameters.values()]
    assert all(type(value) in (int, float, str, type(None)) for value in values)


@every_split
def test_the_split_says_its_name_and_seed(split: Callable[..., Partition]):
    parts = call(split, CASE)
    assert f"{parts.name}_partition" == split.__name__
    assert parts.seed == (5 if "seed" in options_of(split) else None)


@every_drawn_split
@pytest.mark.parametrize("seed", [-1, 2**80])
def test_any_seed_has_a_split_of_its_own(split: Callable[..., Partition], seed: int):
    if split is data.strata_partition:  # bound to the legacy generator's seeds
        with pytest.raises(ValueError, match="`seed` must be in"):
            call(split, CASE, seed=seed)
        return
    parts = call(split, CASE, seed=seed)
    assert parts.seed == seed
    assert len({call(split, CASE, seed=s).digest() for s in (seed, -seed, 5)}) == 3


@every_drawn_split
@pytest.mark.parametrize("seed", [0.5, "1", None, True])
def test_a_seed_is_a_whole_number(split: Callable[..., Partition], seed: Any):
    with pytest.raises(ValueError, match="`seed` must be a whole number"):
        call(split, CASE, seed=seed)


@pytest.mark.parametrize(("split", "name"), COUNTS, ids=lambda v: getattr(v, "__name__", v))
@pytest.mark.parametrize("value", [2.5, 2.0, "2", True, np.float32(2), None])
def test_a_count_is_a_whole_number(split: Callable[..., Partition], name: str, value: Any):
    with pytest.raises(ValueError, match=f"`{name}` must be a whole number. Got"):
        call(split, CASE, **{name: value})


@pytest.mark.parametrize(("split", "name"), COUNTS, ids=lambda v: getattr(v, "__name__", v))
def test_a_count_has_a_least_value(split: Callable[..., Partition], name: str):
    with pytest.raises(ValueError, match=rf"`{name}` must be at least \d\. Got -1\."):
        call(split, CASE, **{name: -1})


@pytest.mark.parametrize(
    ("split", "name"),
    [count for count in COUNTS if count[1] != "bins"],  # there may be fewer than asked for
    ids=lambda v: getattr(v, "__name__", v),
)
def test_what_the_samples_do_not_suffice_for_is_refused_in_a_short_text(
    split: Callable[..., Partition], name: str
):
    with pytest.raises(ValueError, match=r"at most|ran out") as caught:
        call(split, CASE, **{name: 10**12})
    assert len(str(caught.value)) < 250


@every_split
@pytest.mark.parametrize("alpha", [0, -1, float("nan"), float("inf"), "1", None, True])
def test_alpha_is_a_positive_number(split: Callable[..., Partition], alpha: Any):
    if "alpha" in options_of(split):
        with pytest.raises(ValueError, match="`alpha` must be positive and finite. Got"):
            call(split, CASE, alpha=alpha)


@every_split
def test_labels_and_global_generators_are_left_alone(split: Callable[..., Partition]):
    labels = np.array(CASE[0])
    before, state = labels.copy(), np.random.get_state()[1].copy()  # noqa: NPY002
    torch_state = torch.get_rng_state()
    call(split, (labels, *CASE[1:]))
    assert np.array_equal(labels, before)
    assert np.array_equal(np.random.get_state()[1], state)  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), torch_state)


@pytest.mark.parametrize(
    "split",
    [f for f in SPLITS.values() if first_parameter(f) in ("labels", "client_ids")],
    ids=lambda f: f.__name__,
)
@pytest.mark.parametrize(
    "disguise",
    [
        lambda labels: [f"class {label}" for label in labels],
        lambda labels: [(label, "x") for label in labels],
        lambda labels: np.array(labels, dtype="M8[D]"),
        lambda labels: torch.tensor(labels, dtype=torch.bfloat16),
        lambda labels: np.array(labels, dtype=object),
        lambda labels: [frozenset({str(label), "x"}) for label in labels],
        lambda labels: [label / 2 if label % 2 else label // 2 for label in labels],
    ],
    ids=["text", "tuples", "dates", "bfloat16", "objects", "sets", "mixed numbers"],
)
def test_the_kind_of_label_does_not_matter(
    split: Callable[..., Partition], disguise: Callable[[list[int]], Any]
):
    labels = [2 * label for label in CASE[0]]  # 0, 2, 4 become 0, 1, 2 and keep their order
    assert (
        call(split, (disguise(labels), *CASE[1:])).digest()
        == call(split, (labels, *CASE[1:])).digest()
    )


@pytest.mark.parametrize(
    "split",
    [f for f in SPLITS.values() if first_parameter(f) == "samples"],
    ids=lambda f: f.__name__,
)
def test_samples_may_be_counted_or_given(split: Callable[..., Partition]):
    counted = split(
        np.int64(60), num_clients=6, **{"alpha": 1.0} if split is not data.iid_partition else {}
    )
    assert counted.digest() == call(split, CASE, alpha=1.0, seed=0, min_samples=10).digest()


@pytest.mark.parametrize("samples", [2.5, None, True, np.array(3.5)])
def test_a_number_of_samples_is_a_whole_number(samples: Any):
    with pytest.raises(ValueError, match="`samples` must be a whole number"):
        data.iid_partition(samples, num_clients=1)


def test_what_was_given_for_a_number_is_not_shown_in_full():
    with pytest.raises(ValueError, match="`num_clients` must be a whole number") as caught:
        data.iid_partition(3, num_clients=list(range(10_000)))
    assert len(str(caught.value)) < 200


def test_counts_follow_grammar():
    with pytest.raises(ValueError, match=r"^2 clients need at least 2 samples\. Got 1\. Use at "):
        data.iid_partition(1, num_clients=2)
    with pytest.raises(ValueError, match=r"^1 client needs at least 1 sample\. Got 0\. Use more"):
        data.iid_partition(0, num_clients=1)
    with pytest.raises(ValueError, match=r"1 sample each need 3 samples.*or at most 2 clients\.$"):
        data.quantity_partition(2, num_clients=3, alpha=1, min_samples=1)


@pytest.mark.slow
@pytest.mark.parametrize("num_clients", [100, 1000])
@every_split
def test_a_hundred_thousand_samples_take_no_more_than_seconds(
    split: Callable[..., Partition], num_clients: int
):
    # a second on a quiet machine; what is meant here is that nothing is quadratic
    labels = np.random.default_rng(0).integers(0, 10, 100_000)
    begin = time.perf_counter()
    call(split, (labels, num_clients, 0.1, 0), min_samples=10)
    assert time.perf_counter() - begin < 5
