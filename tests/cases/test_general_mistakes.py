"""The general condition of all cases: a foreseeable mistake is told by what it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from common import flat_layout
from fedaccord import (
    Cohort,
    FedAvg,
    FedPCD,
    MalformedReplyError,
    Reply,
    Rule,
    SizeProportionalSampler,
    UniformSampler,
    run_round,
    start,
)
from fedaccord.data import ArrayData
from fedaccord.metrics import evaluate
from fedaccord.models import logistic

from ._shared import LOCAL, RULES, aggregate, assert_follows, every_rule, federation_of

NAMED = (MalformedReplyError, ValueError)
UPDATE = torch.tensor([1.0, 2.0])
TASKS = torch.tensor([0.3, 0.4])
LOSS = torch.tensor(0.5)


def reply(client: int, num_examples: Any = 1, **fields: Any) -> Reply:
    return Reply(client, num_examples, {"update": UPDATE, "task_loss": TASKS, **fields})


@pytest.mark.parametrize("count", [0.4, 1.5, float("nan")])
def test_a_number_of_examples_that_is_not_whole_is_refused(count: float):
    # cut off, 0.4 would be a client without any
    with pytest.raises(NAMED, match="num_examples"):
        Cohort.stack([reply(0, count), reply(1, count)])


@pytest.mark.parametrize("count", [np.int64(3), np.int32(3), torch.tensor(3)], ids=repr)
def test_whole_numbers_of_any_kind_are_numbers_of_examples(count: Any):
    cohort = Cohort.stack([reply(0, count), reply(1, 1)])
    assert_close(cohort.shares, torch.tensor([0.75, 0.25]).double())


@every_rule
@pytest.mark.parametrize("power", [31, 53, 62])
def test_very_large_numbers_of_examples_do_not_overflow(rule: Rule[Any], power: int):
    same = {
        "loss": LOSS,
        "train_loss": LOSS,
        "client_lr": torch.tensor(0.1),
        "control_update": UPDATE,
    }  # from all
    cohort = Cohort.stack([reply(i, 2**power, **same) for i in range(4)], layout=flat_layout(2))
    assert_follows(rule, aggregate(rule, cohort).step, UPDATE)


@pytest.mark.parametrize("value", [0.7, 1, np.float64(0.7), None, [0.7]], ids=repr)
def test_a_loss_that_is_no_tensor_names_field_and_client(value: Any):
    with pytest.raises(NAMED, match=r"(?s)`loss`.*client 1"):
        Cohort.stack([reply(0, loss=torch.tensor(0.5)), reply(1, loss=value)])


def test_an_update_that_is_no_tensor_names_field_and_client():
    with pytest.raises(NAMED, match=r"(?s)`update`.*client 1"):
        Cohort.stack([reply(0), reply(1, update=np.ones(2))])


@pytest.mark.parametrize(
    "update",
    [torch.ones(2, dtype=torch.int64), torch.ones(2, dtype=torch.bool), torch.ones(2, 1)],
    ids=["integers", "flags", "a column"],
)
@pytest.mark.parametrize("name", ["FedAvg", "FedPCD", "Uniform"])
def test_an_update_of_another_kind_names_the_field(name: str, update: Tensor):
    with pytest.raises(NAMED, match="`update`"):
        aggregate(RULES[name], Cohort.stack([reply(i, update=update) for i in range(2)]))


@pytest.mark.parametrize("rate", [0.0, -1.0])
@pytest.mark.parametrize("rule", [FedPCD(), FedPCD(normalize=False)], ids=["FedPCD", "unscaled"])
def test_a_client_learning_rate_that_is_not_positive_names_field_and_client(
    rule: Rule[Any], rate: float
):
    fields = [{"client_lr": torch.tensor(1.0)}, {"client_lr": torch.tensor(rate)}]
    with pytest.raises(NAMED, match=r"(?s)`client_lr`.*client 1"):
        aggregate(rule, Cohort.stack([reply(i, **each) for i, each in enumerate(fields)]))


def test_updates_that_carry_a_graph_leave_none_in_the_step():
    grown = UPDATE.clone().requires_grad_()
    for rule in (FedAvg(), FedPCD()):
        assert not aggregate(rule, Cohort.stack([reply(0, update=grown)])).step.requires_grad


@pytest.mark.parametrize("ids", [[0.5], [1.9], [None]], ids=str)
def test_client_ids_that_are_not_whole_numbers_are_refused(ids: Any):
    federation = federation_of([[1.0, 0.0]] * 3)
    training = start(FedAvg(), federation)
    with pytest.raises(ValueError, match="ids must be"):
        run_round(FedAvg(), federation, training, client_ids=ids, local=LOCAL)


@pytest.mark.parametrize("fraction", ["0.3", True, None], ids=repr)
def test_a_fraction_that_is_no_number_is_refused(fraction: Any):
    with pytest.raises(ValueError, match="fraction"):
        UniformSampler(fraction=fraction)
    with pytest.raises(ValueError, match="fraction"):
        SizeProportionalSampler([1, 1], fraction=fraction)


def test_one_number_of_classes_stands_for_one_task():
    data = ArrayData((torch.zeros(2, 3), torch.zeros(2, dtype=torch.int64)))
    model = logistic(3)
    one, several = (evaluate(model, data, num_classes=given) for given in (2, [2]))
    assert torch.equal(one.losses, several.losses)
    assert torch.equal(one.class_counts[0], several.class_counts[0])
