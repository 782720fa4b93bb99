"""Facts about shards, quantity skew and feature skew."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fedaccord.data import (
    ArrayData,
    client_dirichlet_partition,
    feature_partition,
    noisy_clients,
    quantity_partition,
    shards_partition,
)
from fedaccord.data._feature import _along_first_component

# --- shards


def test_shards_of_mcmahan_hold_two_classes_at_most_each():
    # their setting: 60,000 samples of 10 equal classes, 200 shards of 300, none over two classes
    labels = np.arange(60_000) % 10
    parts = shards_partition(labels, num_clients=100)
    assert set(parts.sizes) == {600}
    assert max(len(np.unique(labels[part])) for part in parts) == 2
    assert len(parts.unassigned) == 0


def test_a_shard_is_a_run_of_the_samples_in_the_order_of_labels():
    labels = np.repeat([0, 1, 2], [10, 25, 13])
    parts = shards_partition(labels, num_clients=6, shards_per_client=1)
    # 48 / 6 = 8 each: the sorted labels, cut every 8
    runs = sorted(sorted(labels[part].tolist()) for part in parts)
    assert runs == np.sort(labels).reshape(6, 8).tolist()


def test_what_does_not_divide_makes_some_shards_one_larger():
    parts = shards_partition(np.zeros(23, dtype=int), num_clients=5, shards_per_client=2)
    # 23 = 3 x 3 + 7 x 2
    assert len(parts.unassigned) == 0
    assert all(4 <= size <= 6 for size in parts.sizes)
    assert sum(parts.sizes) == 23


def test_the_order_within_a_class_is_random():
    parts = shards_partition(np.zeros(1000, dtype=int), num_clients=10, shards_per_client=1)
    # a run of a hundred would span 99; a hundred of a thousand at random span nearly all
    assert all(np.ptp(part) > 500 for part in parts)


def test_more_shards_than_samples_name_what_is_possible():
    with pytest.raises(ValueError, match="need at least 12 samples. Got 10. Use") as caught:
        shards_partition(range(10), num_clients=3, shards_per_client=4)
    assert "`shards_per_client` of at most 3 or at most 2 clients." in str(caught.value)
    assert len(shards_partition(range(10), num_clients=3, shards_per_client=3)) == 3
    assert len(shards_partition(range(10), num_clients=2, shards_per_client=4)) == 2


# --- quantity


def test_sizes_follow_the_dirichlet_distribution():
    # Dir(2 on five): Var p = .2 * .8 / 11
    sizes = np.array(
        [
            quantity_partition(10_000, num_clients=5, alpha=2.0, min_samples=0, seed=seed).sizes
            for seed in range(1000)
        ]
    )
    assert abs((sizes / 10_000).var() / (0.16 / 11) - 1) < 0.1


def test_the_minimum_comes_first_and_the_rest_is_drawn():
    with_minimum = quantity_partition(1000, num_clients=4, alpha=0.5, min_samples=100, seed=2)
    rest = quantity_partition(600, num_clients=4, alpha=0.5, min_samples=0, seed=2)
    assert [size - 100 for size in with_minimum.sizes] == list(rest.sizes)


def test_what_clients_hold_does_not_depend_on_how_much():
    # a hypergeometric draw: 500 of 1000 with every second one labelled, standard deviation 7.9
    parts = quantity_partition(np.arange(1000) % 2, num_clients=2, alpha=1e9)
    assert abs((parts[0] % 2).sum() - 250) < 5 * 7.9


# --- features


def test_bins_are_the_quantiles_of_the_feature():
    inputs = np.random.default_rng(0).normal(size=(1000, 3))
    parts = feature_partition(
        inputs, num_clients=5, samples_per_client=150, alpha=0.1, feature=1, bins=4, seed=7
    )
    # ranks cut into four equal parts are the classes
    codes = np.argsort(np.argsort(inputs[:, 1])) // 250
    expected = client_dirichlet_partition(
        codes, num_clients=5, samples_per_client=150, alpha=0.1, seed=7
    )
    assert [part.tolist() for part in parts] == [part.tolist() for part in expected]
    assert parts.parameters["feature"] == "1"


@pytest.mark.parametrize("shape", [(400, 6), (400, 2, 3), (60, 90)], ids=["flat", "grid", "wide"])
def test_the_first_principal_component_decides(shape: tuple[int, ...]):
    inputs = np.random.default_rng(1).normal(size=shape) * np.linspace(1, 2, shape[-1])
    parts = feature_partition(inputs, num_clients=4, samples_per_client=12, alpha=0.2, seed=1)
    # by the singular value decomposition of the centred inputs; its sign is taken from the
    # largest entry
    flat = inputs.reshape(len(inputs), -1)
    direction = np.linalg.svd(flat - flat.mean(axis=0))[2][0]
    direction = direction * np.sign(direction[np.abs(direction).argmax()])
    order = np.argsort(np.argsort(flat @ direction))
    expected = client_dirichlet_partition(
        order * 10 // len(flat), num_clients=4, samples_per_client=12, alpha=0.2, seed=1
    )
    assert [part.tolist() for part in parts] == [part.tolist() for part in expected]


def test_the_component_of_many_samples_is_that_of_some():
    rng = np.random.default_rng(2)
    inputs = rng.normal(size=(20_000, 3)) * [1, 10, 1]
    parts = feature_partition(inputs, num_clients=20, samples_per_client=500, alpha=1e-3)
    # the second feature is the component, up to some per cent: hardly any client sees two signs
    spread = np.mean([inputs[part, 1].std() for part in parts])
    assert spread < 0.3 * inputs[:, 1].std()


@pytest.mark.parametrize("dim", [2, 3, 50, 784])
def test_equal_samples_have_equal_values_wherever_they_are(dim: int):
    # the last of 8,193 rows is multiplied on its own, and rounded differently
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(2, dim)).astype(np.float32)[np.arange(8193) % 2]
    assert len(np.unique(_along_first_component(rows, rng))) == 2


def test_tensors_and_arrays_are_split_alike():
    inputs = np.random.default_rng(4).normal(size=(100, 2))
    options = {"num_clients": 4, "samples_per_client": 25, "alpha": 0.3}
    expected = feature_partition(inputs, **options).digest()
    assert feature_partition(torch.tensor(inputs), **options).digest() == expected
    assert feature_partition(inputs.tolist(), **options).digest() == expected


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (np.arange(10), r"real numbers \[n, ...\].*Got shape \(10,\)"),
        (np.array([["a"], ["b"]]), "must be real numbers"),
        (np.empty((0, 3)), "at least one feature and sample"),
        (np.array([[0.0], [np.nan]]), "Those of sample 1 are not"),
        (np.ones((10, 2)), "only differ in a feature that varies"),
    ],
)
def test_inputs_without_a_feature_are_refused(inputs: np.ndarray, message: str):
    with pytest.raises(ValueError, match=message):
        feature_partition(inputs, num_clients=1, samples_per_client=1, alpha=1)


def test_a_feature_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match=r"`feature` must be in \[0, 6\). Got 6."):
        feature_partition(
            np.zeros((4, 2, 3)), num_clients=1, samples_per_client=1, alpha=1, feature=6
        )


# --- noise


def clients(count: int = 4, size: int = 50) -> list[ArrayData]:
    data = [np.full((size, 3, 2), float(client)) for client in range(count)]
    return [ArrayData.of(x, np.arange(size)) for x in data]


def test_the_variance_grows_from_client_to_client():
    noisy = noisy_clients(clients(size=5000), variance=2.0)
    # client i of 4 has 2 i / 4; 30,000 draws have a relative standard error of .8 %
    found = [data.inputs.double().var().item() for data in noisy]
    assert found == pytest.approx([0.5, 1.0, 1.5, 2.0], rel=0.05)
    means = [data.inputs.double().mean().item() for data in noisy]
    assert means == pytest.approx([0, 1, 2, 3], abs=0.05)


def test_a_samples_noise_is_the_same_wherever_it_is_seen():
    data = noisy_clients(clients(), variance=1.0)[2]
    whole = data.inputs
    some = torch.tensor([7, 3, 7])
    assert torch.equal(data.batch(some)[0], whole[some])
    part = data.subset([9, 3]).subset([1])
    assert torch.equal(part.inputs, whole[[3]])
    assert part.targets.tolist() == [3]
    assert len(part) == 1


def test_clients_seeds_and_samples_differ_in_their_noise():
    one, other = (noisy_clients(clients(), variance=1.0, seed=seed) for seed in (0, 1))
    noise = [data.inputs - client for client, data in enumerate(one)]
    scaled = [draw / data.scale for draw, data in zip(noise, one, strict=True)]
    assert not torch.allclose(scaled[0], scaled[1])
    assert not torch.equal(one[0].inputs, other[0].inputs)
    assert len(noise[0].flatten().unique()) == noise[0].numel()


def test_targets_stay():
    data = noisy_clients(clients(), variance=1.0)[0]
    assert data.batch(torch.tensor([4, 2]))[1].tolist() == [4, 2]


def test_no_variance_is_no_noise():
    data = noisy_clients(clients(), variance=0.0)[3]
    assert torch.equal(data.inputs, torch.full((50, 3, 2), 3.0))


def test_noise_leaves_the_data_and_global_generators_alone():
    original = clients()
    state = torch.get_rng_state()
    assert noisy_clients(original, variance=1.0)[1].inputs.std() > 0
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(original[1].inputs, torch.full((50, 3, 2), 1.0))


def test_noise_keeps_the_type_of_the_inputs():
    data = ArrayData.of(np.zeros((4, 2)), np.zeros(4, dtype=int), dtype=torch.float64)
    assert noisy_clients([data], variance=1.0)[0].inputs.dtype == torch.float64


def test_token_numbers_cannot_have_noise():
    data = ArrayData.of(np.zeros((4, 2), dtype=int), np.zeros(4, dtype=int))
    with pytest.raises(ValueError, match="Only floating-point inputs can have noise"):
        noisy_clients([data], variance=1.0)[0].batch(torch.tensor([0]))


@pytest.mark.parametrize("variance", [-1.0, float("nan"), float("inf")])
def test_a_variance_is_finite_and_not_negative(variance: float):
    with pytest.raises(ValueError, match="`variance` must be finite and at least 0"):
        noisy_clients(clients(), variance=variance)
