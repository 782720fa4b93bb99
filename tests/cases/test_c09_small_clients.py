"""C09: clients smaller than a minibatch, with batch-norm."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

from fedaccord import FedAvg, LocalSGD, Rule, Uniform, run_round, simulate, start
from fedaccord.clients import Job
from fedaccord.random import derive

from ._shared import every_executor, every_rule, same
from ._statistics import Normalised, NormalisedImages, normalised_federation

SIZES = [0, 1, 3, 200]
LOCAL = LocalSGD(lr=0.05, batch_size=32, epochs=1, report="all")
both_ways = pytest.mark.parametrize("drop_last", [False, True], ids=["keep last", "drop last"])
both_models = pytest.mark.parametrize("model", [Normalised, NormalisedImages])


def run(rule: Rule[Any], *, sizes: list[int] = SIZES, model: Any = Normalised, **options: Any):
    federation = normalised_federation(sizes, model=model)
    return federation, list(simulate(rule, federation, rounds=2, **options))


@every_rule
@both_ways
def test_the_run_completes_and_stays_finite(rule: Rule[Any], drop_last: bool):
    _, results = run(rule, local=replace(LOCAL, drop_last=drop_last))
    after = results[-1].training
    assert torch.isfinite(after.params).all()
    assert all(torch.isfinite(buffer).all() for buffer in after.buffers.values())


@every_rule
@every_executor
def test_the_client_without_samples_sends_nothing_and_is_listed(rule: Rule[Any], executor: Any):
    federation, results = run(rule, local=LOCAL, executor=executor)
    assert [result.without_examples for result in results] == [(0,), (0,)]
    assert not any(result.failures for result in results)
    training = start(rule, federation)
    without = run_round(rule, federation, training, client_ids=[1, 2, 3], local=LOCAL)
    assert same(results[0].training, without.training)


@every_rule
def test_the_counts_are_in_the_record(rule: Rule[Any]):
    _, results = run(rule, local=LOCAL)
    assert [dict(result.num_examples) for result in results] == [{0: 0, 1: 1, 2: 3, 3: 200}] * 2


@both_ways
@both_models
@pytest.mark.parametrize("client", [1, 2, 3])
def test_small_clients_train_on_what_they_have(drop_last: bool, model: Any, client: int):
    federation = normalised_federation(SIZES, model=model)
    training = start(FedAvg(), federation)
    local = replace(LOCAL, drop_last=drop_last)
    result = run_round(FedAvg(), federation, training, client_ids=[client], local=local)
    step = federation.spec.layout.unflatten(result.training.params - training.params)
    assert all(torch.isfinite(part).all() for part in step.values())
    assert step["head.weight"].any()
    assert step["head.bias"].any()


@both_ways
@pytest.mark.parametrize("client", [1, 2, 3])
def test_no_client_reports_a_loss_of_zero(drop_last: bool, client: int):
    federation = normalised_federation(SIZES)
    training = start(FedAvg(), federation)
    job = Job(
        client_id=client,
        layout=federation.spec.layout,
        losses=federation.losses,
        data=federation.clients[client],
        params=training.params,
        payload={},
        seed=derive(0, "client"),
        buffers=training.buffers,
        num_tasks=2,
    )
    fields = replace(LOCAL, drop_last=drop_last)(job, Normalised()).fields
    # two opposite labels: the mean of both cross-entropies is at least log 2
    for name in ("loss", "train_loss"):
        assert torch.isfinite(fields[name])
        assert fields[name] >= torch.tensor(2.0).double().log() - 1e-6


@both_ways
@pytest.mark.parametrize("report", ["all", 1, 5])
def test_the_reported_losses_are_means_over_what_clients_have(report: Any, drop_last: bool):
    # clients of one minibatch report on all of it, whatever the budget
    federation = normalised_federation([0, 1, 3])
    training = start(FedAvg(), federation)
    module = federation.module(training)
    with torch.no_grad():
        wanted = torch.stack(
            [
                federation.losses(module, client.batch(torch.arange(len(client))))
                for client in federation.clients[1:]
            ]
        ).mean(0)
    local = replace(LOCAL, drop_last=drop_last)
    rule = Uniform(report=report)
    result = run_round(rule, federation, training, client_ids=[0, 1, 2], local=local)
    seen = result.diagnostics["task_losses"]
    torch.testing.assert_close(seen, wanted.double(), rtol=1e-6, atol=0)


@both_ways
@both_models
@pytest.mark.parametrize("size", [1, 2, 31, 32, 33, 65])
@pytest.mark.parametrize("amount", [{"epochs": 2}, {"steps": 3}], ids=str)
def test_a_last_minibatch_of_any_size_is_no_trouble(
    drop_last: bool, model: Any, size: int, amount: dict[str, int]
):
    local = LocalSGD(lr=0.05, batch_size=32, drop_last=drop_last, **amount)
    _, results = run(FedAvg(), sizes=[size, size], model=model, local=local)
    assert torch.isfinite(results[-1].training.params).all()
    assert all(result.step_norm > 0 for result in results)


class Grouped(nn.Module):
    """Group normalisation, which looks at one sample at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 4)
        self.norm = nn.GroupNorm(2, 4)
        self.head = nn.Linear(4, 2)

    forward = Normalised.forward


def test_other_normalisations_train_on_single_samples_too():
    _, results = run(FedAvg(), sizes=[1, 1], model=Grouped, local=LOCAL)
    assert torch.isfinite(results[-1].training.params).all()
