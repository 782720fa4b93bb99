"""What is measured in a run, against slow independent versions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from fedaccord.experiments import Setup, from_table, override, preset, set_up
from fedaccord.federation import build


def setup(dataset: str, **changes: Any) -> Setup:
    table = {**preset(dataset), "rule": {"name": "fedavg"}}
    return set_up(from_table(override(table, {"sampler.count": 2, **changes})))


def test_a_hospitals_accuracy_is_that_on_its_own_test_rows():
    heart = setup("heart")
    model = build(heart.federation.model, 3)
    measured = heart.evaluator(model, rounds=1)["clients"]
    data = heart.dataset
    assert data.test_client_ids is not None
    right = model(data.test.inputs).argmax(1) == data.test.targets
    expected = [right[data.test_client_ids == hospital].double().mean() for hospital in range(4)]
    assert measured["accuracies"].tolist() == pytest.approx([float(each) for each in expected])
    assert measured["test_rows"] == [104, 89, 16, 45]  # FLamby's split
    assert measured["names"] == ("cleveland", "hungarian", "switzerland", "va")


def test_a_clients_accuracy_weighs_class_accuracies_by_its_training_shares():
    fashion = setup("fashion-mini", **{"partition.num_clients": 5})
    model = build(fashion.federation.model, 3)
    measured = fashion.evaluator(model, rounds=1)["clients"]["accuracies"]
    right = (model(fashion.dataset.test.inputs).argmax(1) == fashion.dataset.test.targets).numpy()
    labels, truth = fashion.dataset.labels, fashion.dataset.test.targets.numpy()
    for client, part in enumerate(fashion.partition):
        # the mean, over the client's training samples, of the accuracy on the sample's class
        expected = np.mean([right[truth == labels[sample]].mean() for sample in part])
        assert float(measured[client]) == pytest.approx(expected)


def test_tasks_are_measured_without_clients_where_there_are_several():
    pair = setup("digits-fashion-mini", **{"partition.num_clients": 3})
    model = build(pair.federation.model, 3).eval()
    measured = pair.evaluator(model, rounds=1)
    assert "clients" not in measured
    tasks = measured["tasks"]
    with torch.no_grad():
        outputs = model(pair.dataset.test.inputs)
    for task, output in enumerate(outputs):
        right = output.argmax(1) == pair.dataset.test.targets[:, task]
        assert tasks.accuracies[task] == pytest.approx(float(right.double().mean()))
    assert tasks.hypervolume == pytest.approx(math.prod(3 - loss for loss in tasks.losses))


def test_every_number_says_what_it_is_about():
    heart = setup("heart")
    measured = heart.evaluator(build(heart.federation.model, 3), rounds=7)
    assert str(measured["tasks"].label) == (
        "global model, after 7 rounds, whole test set, each example counted once"
    )
    assert str(measured["clients"]["summary"].label) == (
        "global model, after 7 rounds, all clients, on their own test rows, "
        "each client counted once"
    )
    assert measured["clients"]["accuracy_is"] == "accuracy on the client's own test rows"


def test_hospitals_split_at_random_are_measured_by_class():
    mixed = setup("heart", **{"partition.name": "iid", "partition.num_clients": 4})
    assert not mixed.evaluator.by_own_rows


def test_measuring_does_not_depend_on_the_number_of_threads():
    heart = setup("heart")
    model = build(heart.federation.model, 3)
    before = torch.get_num_threads()
    try:
        results = []
        for threads in (1, 2):
            torch.set_num_threads(threads)
            results.append(heart.evaluator(model, rounds=1)["tasks"])
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert results[0] == results[1]


def test_the_model_is_evaluated_every_so_many_rounds_and_at_the_end():
    experiment = setup("heart", rounds=7, evaluate_every=3).experiment
    assert [r for r in range(1, 8) if experiment.evaluates_after(r)] == [3, 6, 7]


def test_without_a_period_the_model_is_evaluated_at_the_end_only():
    experiment = setup("heart", rounds=7, evaluate_every=0).experiment
    assert [r for r in range(1, 8) if experiment.evaluates_after(r)] == [7]
