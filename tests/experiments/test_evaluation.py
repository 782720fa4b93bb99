"""What is measured in a run, against slow independent versions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from fedaccord import TrainingState
from fedaccord.data import ArrayData
from fedaccord.experiments import Setup, from_table, override, preset, set_up


def setup(dataset: str, **changes: Any) -> Setup:
    table = {**preset(dataset), "rule": {"name": "fedavg"}}
    return set_up(from_table(override(table, {"sampler.count": 2, **changes})))


def measure(
    setup: Setup,
    *,
    rounds: int = 1,
    sampled: Sequence[Sequence[int]] = (),
    states: Mapping[int, Mapping[str, Tensor]] | None = None,
    last: bool = False,
) -> dict[str, Any]:
    """What the model with seed 3 is found to reach."""
    params, buffers = setup.federation.initial(3)
    training = TrainingState(rounds, params, None, client_states=states or {}, buffers=buffers)
    model = setup.federation.module(training)
    return setup.evaluator(model, training, sampled=sampled, last=last)


def model_of(setup: Setup) -> nn.Module:
    params, buffers = setup.federation.initial(3)
    return setup.federation.module(TrainingState(0, params, None, buffers=buffers))


def also(measured: Mapping[str, Any], *, model: str = "global", **wanted: str) -> Any:
    """The one block beside the main one that fits."""
    (found,) = [
        block
        for block in measured["also"]
        if block["summary"].label.model == model
        and all(getattr(block["summary"].label, key) == value for key, value in wanted.items())
        and block["quantity"] == "accuracy"
    ]
    return found


def right(setup: Setup, data: ArrayData, model: nn.Module | None = None) -> Tensor:
    """Whether the model is right about each sample."""
    return (model or model_of(setup))(data.inputs).argmax(1) == data.targets


def test_a_hospitals_accuracy_is_that_on_its_own_test_rows():
    heart = setup("heart")
    measured = measure(heart)["clients"]
    data = heart.dataset
    assert data.test_client_ids is not None
    good = right(heart, data.test)
    expected = [good[data.test_client_ids == hospital].double().mean() for hospital in range(4)]
    assert measured["values"].tolist() == pytest.approx([float(each) for each in expected])
    assert measured["rows"].tolist() == [104, 89, 16, 45]  # FLamby's split
    assert measured["names"] == ["cleveland", "hungarian", "switzerland", "va"]
    # the binomial standard error
    a, n = measured["values"], measured["rows"]
    assert measured["standard_errors"].tolist() == pytest.approx((a * (1 - a) / n).sqrt().tolist())


def test_a_clients_accuracy_weighs_class_accuracies_by_its_training_shares():
    fashion = setup("fashion-mini", **{"partition.num_clients": 5})
    measured = measure(fashion)["clients"]["values"]
    good = right(fashion, fashion.dataset.test).numpy()
    labels, truth = fashion.dataset.labels, fashion.dataset.test.targets.numpy()
    for client, part in enumerate(fashion.partition):
        # the mean, over the client's training samples, of the accuracy on the sample's class
        expected = np.mean([good[truth == labels[sample]].mean() for sample in part])
        assert float(measured[client]) == pytest.approx(expected)


def test_tasks_are_measured_without_clients_where_there_are_several():
    pair = setup("digits-fashion-mini", **{"partition.num_clients": 3})
    model, measured = model_of(pair), measure(pair)
    assert "clients" not in measured
    tasks = measured["tasks"]
    with torch.no_grad():
        outputs = model(pair.dataset.test.inputs)
    for task, output in enumerate(outputs):
        good = output.argmax(1) == pair.dataset.test.targets[:, task]
        assert tasks.accuracies[task] == pytest.approx(float(good.double().mean()))
    assert tasks.hypervolume == pytest.approx(math.prod(3 - loss for loss in tasks.losses))


def test_every_number_says_what_it_is_about():
    heart = setup("heart")
    measured = measure(heart, rounds=7)
    assert str(measured["tasks"].label) == (
        "global model, after 7 rounds, whole test set, each example counted once"
    )
    assert str(measured["clients"]["summary"].label) == (
        "global model, after 7 rounds, all clients, each client counted once"
    )
    assert measured["clients"]["measured"] == "accuracy on the client's own test rows"


def test_hospitals_split_at_random_are_measured_by_class():
    mixed = setup("heart", **{"partition.name": "iid", "partition.num_clients": 4})
    assert measure(mixed)["clients"]["measured"].startswith("training share of each class")


def test_measuring_does_not_depend_on_the_number_of_threads():
    heart = setup("heart")
    before = torch.get_num_threads()
    try:
        results = []
        for threads in (1, 2):
            torch.set_num_threads(threads)
            results.append(measure(heart)["tasks"])
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


HELD = {
    "partition.num_clients": 8,
    "holdout.test": 0.25,
    "holdout.validation": 0.25,
    "holdout.clients": 0.25,
}


def test_held_back_rows_are_measured_client_by_client_and_never_trained_on():
    fashion = setup("fashion-mini", **HELD)
    measured = measure(fashion)["clients"]
    held = fashion.holdout
    assert measured["clients"] == [0, 1, 2, 3, 4, 5]
    assert measured["names"] == list(held.seen)  # the numbers in the whole split
    for position, client in enumerate(held.seen):
        rows = held.test[client]
        assert not set(rows.tolist()) & set(held.train[client].tolist())
        good = right(fashion, fashion.dataset.train.subset(rows))
        assert float(measured["values"][position]) == pytest.approx(float(good.double().mean()))
    # 48 samples a client: 12 to test, 12 of the rest to validate
    assert measured["rows"].tolist() == [12] * 6
    assert [len(data) for data in fashion.federation.clients] == [24] * 6


def test_clients_held_out_of_training_are_a_population_of_their_own():
    fashion = setup("fashion-mini", **HELD)
    block = also(measure(fashion), population="clients held out of training")
    assert block["clients"] == [6, 7]
    assert block["names"] == list(fashion.holdout.unseen)
    for value, client in zip(block["values"], fashion.holdout.unseen, strict=True):
        good = right(fashion, fashion.dataset.train.subset(fashion.holdout.test[client]))
        assert float(value) == pytest.approx(float(good.double().mean()))


def test_validation_rows_take_the_place_of_the_test_set():
    fashion = setup("fashion-mini", **HELD, evaluate_on="validation")
    measured = measure(fashion)
    rows = np.concatenate([fashion.holdout.validation[client] for client in fashion.holdout.seen])
    good = right(fashion, fashion.dataset.train.subset(np.sort(rows)))
    assert measured["examples"] == len(rows)
    assert measured["tasks"].accuracies[0] == pytest.approx(float(good.double().mean()))
    assert measured["tasks"].label.population == "validation rows of all clients"
    assert measured["clients"]["measured"] == "accuracy on the client's own validation rows"


def test_validation_needs_rows_for_it():
    with pytest.raises(ValueError, match=r"Give `holdout\.validation`"):
        setup("fashion-mini", evaluate_on="validation")


def test_parts_too_small_for_a_row_are_refused():
    with pytest.raises(ValueError, match=r"`holdout\.test` leaves no client a row"):
        setup("fashion-mini", **{"holdout.test": 0.001})


def test_sampled_and_never_sampled_clients_are_told_apart():
    heart = setup("heart")
    measured = measure(heart, rounds=2, sampled=[(0, 1), (1, 2)])
    values = measured["clients"]["values"]
    sampled = also(measured, population="clients sampled in this round")
    never = also(measured, population="never-sampled clients")
    assert sampled["summary"].mean == pytest.approx(float(values[[1, 2]].mean()))
    assert never["clients"] == [3]
    assert never["summary"].mean == pytest.approx(float(values[3]))
    assert "values" not in sampled  # they stand among all clients' already


def test_losses_on_own_rows_have_their_own_label_and_direction():
    heart = setup("heart")
    (block,) = [b for b in measure(heart)["also"] if b["quantity"] == "loss"]
    owner = heart.dataset.test_client_ids
    assert owner is not None
    data = heart.dataset.test
    losses = nn.functional.cross_entropy(
        model_of(heart)(data.inputs), data.targets, reduction="none"
    ).detach()
    expected = [float(losses[owner == hospital].double().mean()) for hospital in range(4)]
    assert block["values"].tolist() == pytest.approx(expected)
    assert block["summary"].worst == pytest.approx(max(expected))  # of four, a tenth is one


def test_personal_models_are_measured_beside_the_global_one():
    heart = setup("heart")
    params, _ = heart.federation.initial(3)
    states = {1: {"personal": params + 1.0}, 2: {"personal": -params}}
    measured = measure(heart, states=states)
    block = also(measured, model="personal")
    owner = heart.dataset.test_client_ids
    assert owner is not None
    own = TrainingState(1, states[2]["personal"], None)
    good = right(heart, heart.dataset.test, heart.federation.module(own))
    assert float(block["values"][2]) == pytest.approx(float(good[owner == 2].double().mean()))
    # clients without a personal model are counted as missing, never as zero
    assert block["summary"].num_clients == 2
    assert block["summary"].num_missing == 2
    assert math.isnan(block["values"][0])


def test_personal_models_without_rows_of_their_own_wait_for_the_last_round():
    fashion = setup("fashion-mini", **{"partition.num_clients": 3})
    params, _ = fashion.federation.initial(3)
    states = {client: {"personal": params} for client in range(3)}
    assert not measure(fashion, states=states)["also"]
    measured = measure(fashion, states=states, last=True)
    block = also(measured, model="personal")
    # personal models equal to the global one reach what it reaches
    assert torch.equal(block["values"], measured["clients"]["values"])


def test_models_after_local_steps_are_measured_at_the_end_where_asked():
    heart = setup("heart", after_local_steps=True)
    assert all("local steps" not in b["summary"].label.moment for b in measure(heart)["also"])
    measured = measure(heart, last=True)
    block = also(measured, moment="after 1 round, after local steps", population="all clients")
    assert block["summary"].num_clients == 4
    assert not torch.equal(block["values"], measured["clients"]["values"])


def test_the_noise_of_few_rows_is_part_of_the_record():
    heart = setup("heart")
    block = measure(heart)["clients"]
    a, n = block["values"], block["rows"]
    # the mean binomial variance with n - 1, times 1 - 1/N
    expected = float((a * (1 - a) / (n - 1)).mean()) * 3 / 4
    assert block["variance"].sampling == pytest.approx(expected)
