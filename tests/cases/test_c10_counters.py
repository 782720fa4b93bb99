"""C10: integer counters and 0-d tensors in a model's state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from common import Rows
from fedaccord import (
    FedAvg,
    Federation,
    LocalSGD,
    Rule,
    TrainingState,
    load,
    run_round,
    save,
    save_model,
    simulate,
    start,
)

from ._shared import every_executor, every_rule, every_sharing_rule, same

LOCAL = LocalSGD(lr=0.1, batch_size=1)  # one minibatch a sample: 5 and 7 of them


class Counting(nn.Module):
    """A weight `[2]`, a running mean, a counter of minibatches, and a few odd tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.zeros(2))
        self.scalar = nn.Parameter(torch.tensor(1.0))
        self.frozen = nn.Parameter(torch.tensor([3.0, 4.0]), requires_grad=False)
        self.register_buffer("mean", torch.zeros(2))
        self.register_buffer("level", torch.tensor(0.0, dtype=torch.float64))
        self.register_buffer("counter", torch.tensor(0))
        self.register_buffer("counters", torch.tensor([2**53 + 1, 0, -1]))
        self.register_buffer("nothing", torch.zeros(0, 3))


def losses(model: Counting, batch: tuple[Tensor, ...]) -> Tensor:
    (x,) = batch
    if model.training:
        model.counter += 1
        model.counters[1:] += 1
        model.mean.copy_(x.mean(0))
        model.level.copy_(x.mean())
    return torch.stack([((model.scalar * model.w - x) ** 2).sum(1).mean()] * 2)


def counting(**options: Any) -> Federation:
    clients = [Rows(torch.full((size, 2), value)) for size, value in ((5, 1.0), (7, 2.0))]
    return Federation(Counting, losses, clients, num_tasks=2, **options)


@pytest.fixture
def federation() -> Federation:
    return counting()


def shapes(state: dict[str, Tensor]) -> dict[str, tuple[torch.dtype, torch.Size]]:
    return {name: (value.dtype, value.shape) for name, value in state.items()}


def module(federation: Federation, training: TrainingState) -> nn.Module:
    return federation.module(training)


@every_sharing_rule
@every_executor
def test_the_counter_takes_the_maximum_and_stays_an_integer(
    rule: Rule[Any], federation: Federation, executor: Any
):
    (result,) = simulate(rule, federation, rounds=1, local=LOCAL, executor=executor)
    counter = result.training.buffers["counter"]
    assert torch.equal(counter, torch.tensor(7))  # `equal` is about shapes, not about dtypes
    assert counter.dtype == torch.int64


@every_sharing_rule
def test_other_integers_take_the_maximum_exactly(rule: Rule[Any], federation: Federation):
    (result,) = simulate(rule, federation, rounds=1, local=LOCAL)
    buffers = result.training.buffers
    assert buffers["counters"].tolist() == [2**53 + 1, 7, 6]  # 2**53 + 1 is no float64


@every_sharing_rule
def test_running_statistics_are_averaged_by_examples(rule: Rule[Any], federation: Federation):
    (result,) = simulate(rule, federation, rounds=1, local=LOCAL)
    wanted = (5 * 1.0 + 7 * 2.0) / 12
    buffers = result.training.buffers
    torch.testing.assert_close(buffers["mean"], torch.full((2,), wanted))
    torch.testing.assert_close(buffers["level"], torch.tensor(wanted, dtype=torch.float64))


@every_rule
def test_dtype_and_shape_of_every_tensor_survive_rounds(rule: Rule[Any], federation: Federation):
    results = list(simulate(rule, federation, rounds=2, local=LOCAL))
    state = module(federation, results[-1].training).state_dict()
    assert shapes(state) == shapes(Counting().state_dict())
    Counting().load_state_dict(state)
    assert torch.equal(state["frozen"], torch.tensor([3.0, 4.0]))


@every_rule
def test_counters_enter_neither_the_vector_nor_the_step(rule: Rule[Any], federation: Federation):
    assert federation.spec.layout.names == ("w", "scalar")
    training = start(rule, federation)
    result = run_round(rule, federation, training, client_ids=[0, 1], local=LOCAL)
    step = result.training.params - training.params
    # the parameters are near 1 in float32, so that their difference is known to a few 1e-8
    assert result.step_norm == pytest.approx(step.double().norm().item(), rel=1e-6, abs=2e-7)


@every_rule
def test_a_round_trip_through_the_framework_changes_nothing(
    rule: Rule[Any], federation: Federation
):
    (result,) = simulate(rule, federation, rounds=1, local=LOCAL)
    state = module(federation, result.training).state_dict()
    again = start(rule, federation, state_dict=state)
    assert torch.equal(again.params, result.training.params)
    assert same(again.buffers, result.training.buffers)


def test_a_round_trip_through_files_changes_nothing(federation: Federation, tmp_path: Path):
    (result,) = simulate(FedAvg(), federation, rounds=1, local=LOCAL)
    save(tmp_path / "training", result.training)
    assert same(load(tmp_path / "training", FedAvg()), result.training)
    state = dict(module(federation, result.training).state_dict())
    save_model(tmp_path / "model.safetensors", state)
    read = load_file(tmp_path / "model.safetensors")
    assert shapes(read) == shapes(state)
    assert same(read, state)


def test_local_counters_stay_with_their_clients():
    federation = counting(buffers="local")
    results = list(simulate(FedAvg(), federation, rounds=2, local=LOCAL))
    after = results[-1].training
    assert {c: kept["counter"].item() for c, kept in after.client_buffers.items()} == {0: 10, 1: 14}
    assert torch.equal(after.buffers["counter"], torch.tensor(0))
