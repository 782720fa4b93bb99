"""Ditto and local-only training: models that clients keep to themselves."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from cases._statistics import normalised_federation
from common import Rows, classification_federation
from fedaccord import (
    SCAFFOLD,
    Ditto,
    FedAvg,
    FedDyn,
    Federation,
    FedPCD,
    FedProx,
    LocalOnly,
    LocalSGD,
    NonFiniteError,
    Policy,
    PropFair,
    Rule,
    ServerAdam,
    Threads,
    TrainingState,
    UniformSampler,
    load,
    save,
    simulate,
)
from rules.quadratics import quadratics, rounds_of

CLIENTS = [{"a": 1.0, "c": [4.0, 0.0]}, {"a": 2.0, "c": [0.0, 2.0]}]
FEDERATION = quadratics(CLIENTS)
BOTH = [[0, 1]]
LOCAL = LocalSGD(lr=0.25, steps=2)


def vector(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def own(training: TrainingState, client: int) -> Tensor:
    return training.client_states[client]["personal"]


def test_two_clients_in_two_dimensions():
    # lam = 2 and rate 1/4 from 0. Client 0: 1, then 1 + (3 - 2) / 4 = 1.25;
    # client 1: 1, then 1 + (2 - 2) / 4 = 1. Shared: 1.75 and 1.5, as without Ditto
    (result,) = rounds_of(Ditto(2.0), FEDERATION, BOTH, LOCAL)
    assert_close(own(result.training, 0), vector(1.25, 0.0))
    assert_close(own(result.training, 1), vector(0.0, 1.0))
    assert_close(result.training.params, vector(0.875, 0.75))


def test_own_models_are_tied_to_the_received_model_not_to_where_they_began():
    # round 1 of client 0 from v = 1.25, received .875: v + ((4 - v) - 2 (v - .875)) / 4, twice
    results = rounds_of(Ditto(2.0), FEDERATION, BOTH * 2, LOCAL)
    v = 1.25
    for _ in range(2):
        v += ((4 - v) - 2 * (v - 0.875)) / 4
    assert_close(own(results[1].training, 0)[0], vector(v)[0])


def test_the_shared_model_is_that_without_ditto_to_the_last_bit():
    federation, local = classification_federation(5, dropout=0.3), LocalSGD(lr=0.2, batch_size=5)
    for server in (FedAvg(), FedPCD()):
        tied, alone = (
            list(simulate(r, federation, rounds=4, local=local))[-1].training.params
            for r in (Ditto(0.5, server=server), server)
        )
        assert torch.equal(tied, alone)


def test_untied_models_are_those_of_clients_alone():
    federation, local = classification_federation(4, dropout=0.3), LocalSGD(lr=0.2, batch_size=5)
    ends = [
        list(simulate(rule, federation, rounds=3, local=local))[-1].training
        for rule in (Ditto(0.0), LocalOnly())
    ]
    for client in range(4):
        assert_close(own(ends[0], client), own(ends[1], client))


def test_firmly_tied_models_follow_the_shared_one():
    # the optimum of F + lam/2 |v - theta|^2 is within |grad F| / lam of theta
    local = LocalSGD(lr=1e-4, steps=200)
    (result,) = rounds_of(Ditto(5000.0), FEDERATION, BOTH, local)
    assert own(result.training, 0).norm() < 4 / 5000 + 1e-6


def test_both_models_see_the_same_minibatches():
    seen: list[Tensor] = []

    def losses(model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
        seen.append(batch[0][:, 0].clone())
        return ((model(batch[0]) - batch[0][:, :1]) ** 2).mean().reshape(1)

    x = torch.arange(12.0).reshape(6, 2)
    federation = Federation(lambda: nn.Linear(2, 1), losses, [Rows(x)])
    rounds_of(Ditto(1.0), federation, [[0]], LocalSGD(lr=1e-3, batch_size=2))
    own_model, shared = seen[:3], seen[3:]
    assert all(torch.equal(a, b) for a, b in zip(own_model, shared, strict=True))


def test_an_absent_clients_own_model_stays_and_goes_on():
    results = rounds_of(Ditto(2.0), FEDERATION, [[0, 1], [1], [1], [0]], LOCAL)
    away = [own(result.training, 0) for result in results]
    assert torch.equal(away[0], away[1])
    assert torch.equal(away[0], away[2])
    received, v = results[2].training.params, away[0]
    for _ in range(2):
        v = v + ((vector(4.0, 0.0) - v) - 2 * (v - received)) / 4
    assert_close(away[3], v)


def test_a_client_that_comes_late_starts_from_the_model_it_receives():
    results = rounds_of(Ditto(1.0), FEDERATION, [[0], [1]], LOCAL)
    assert 1 not in results[0].training.client_states
    start = v = results[0].training.params
    for _ in range(2):
        v = v + (2 * (vector(0.0, 2.0) - v) - (v - start)) / 4
    assert_close(own(results[1].training, 1), v)


def test_a_client_that_comes_late_can_start_from_the_initial_model():
    results = rounds_of(Ditto(1.0, start="initial"), FEDERATION, [[0], [1], [0]], LOCAL)
    received, v = results[0].training.params, vector(0.0, 0.0)
    for _ in range(2):
        v = v + (2 * (vector(0.0, 2.0) - v) - (v - received)) / 4
    assert_close(own(results[1].training, 1), v)
    # others, and clients of round 0, do not differ
    usual = rounds_of(Ditto(1.0), FEDERATION, [[0], [1], [0]], LOCAL)[-1].training
    assert torch.equal(results[-1].training.params, usual.params)
    assert torch.equal(own(results[-1].training, 0), own(usual, 0))


def test_local_only_is_gradient_descent_of_every_client_alone():
    # client 0 from 0 by factor 3/4 a step towards 4: 4 (1 - (3/4)^4) after two rounds of two steps
    results = rounds_of(LocalOnly(), FEDERATION, BOTH * 2, LOCAL)
    assert_close(own(results[1].training, 0), vector(4 * (1 - 0.75**4), 0.0))
    assert_close(own(results[1].training, 1), vector(0.0, 2 * (1 - 0.5**4)))


def test_local_only_leaves_the_shared_model_and_its_statistics():
    federation = normalised_federation([6, 8])
    results = list(simulate(LocalOnly(), federation, rounds=2, local=LocalSGD(lr=0.1)))
    first, last = results[0].training, results[-1].training
    assert all(result.step_norm == 0 for result in results)
    assert all(result.diagnostics["outcome"] == "local" for result in results)
    assert torch.equal(first.params, last.params)
    assert not last.buffers["norm.running_mean"].any()  # as they began
    assert last.client_states[0]["personal buffer: norm.running_mean"].any()  # the own model's


@pytest.mark.parametrize("rule", [Ditto(0.5), LocalOnly()], ids=["Ditto", "LocalOnly"])
def test_own_models_keep_their_running_statistics(rule: Rule[Any]):
    # one batch a round with momentum .1: a client's own mean of inputs' first layer moves on from
    # its own last value, so that after two rounds 19 % of the way is made from zero
    federation = normalised_federation([8, 8])
    results = list(simulate(rule, federation, rounds=2, local=LocalSGD(lr=1e-9, batch_size=8)))
    one, two = (r.training.client_states[0]["personal buffer: norm.running_mean"] for r in results)
    assert_close(two, one * 1.9, rtol=1e-4, atol=1e-6)


class Named(nn.Module):
    """A model whose buffers are called like what clients keep."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.zeros(2, dtype=torch.float64))
        for name in ("personal", "control", "dual"):
            self.register_buffer(name, torch.full((3,), 7.0, dtype=torch.float64))


@pytest.mark.parametrize("rule", [Ditto(0.5), LocalOnly()], ids=["Ditto", "LocalOnly"])
def test_a_buffer_of_any_name_leaves_what_clients_keep_alone(rule: Rule[Any]):
    points = [torch.tensor([[4.0, 0.0]], dtype=torch.float64)] * 2

    def losses(model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
        return ((model.w - batch[0]) ** 2).sum(1).mean().reshape(1) / 2

    federation = Federation(Named, losses, [Rows(each) for each in points])
    *_, last = simulate(rule, federation, rounds=1, local=LocalSGD(lr=0.5))
    kept = last.training.client_states[0]
    # one step from zero, half of the way to (4, 0)
    assert_close(kept["personal"], torch.tensor([2.0, 0.0], dtype=torch.float64))
    assert_close(kept["personal buffer: control"], torch.full((3,), 7.0, dtype=torch.float64))


def test_a_client_kept_from_training_by_its_policy_keeps_its_own_model():
    # lam lr = 1e5 makes an own model grow by that factor a step, unless it is where it should be
    rule, local = Ditto(1e6), LocalSGD(lr=0.1, steps=70)
    federation = quadratics([{"a": 0.0, "c": [0.0]}, {"a": 0.0, "c": [0.0]}])
    results = rounds_of(rule, federation, [[0, 1]], local)
    assert not own(results[0].training, 0).any()
    moving = quadratics([{"a": 0.1, "c": [1.0]}, {"a": 0.0, "c": [0.0]}])
    with pytest.raises(NonFiniteError, match=r"keeps must stay finite.*`personal`.*client 0"):
        rounds_of(rule, moving, [[0, 1]], local)
    (result,) = rounds_of(rule, moving, [[0, 1]], local, policy=Policy(on_invalid="drop"))
    assert list(result.failures) == [0]
    assert list(result.training.client_states) == [1]


KEEPING: dict[str, Rule[Any]] = {
    "Ditto": Ditto(0.5),
    "Ditto, initial": Ditto(0.5, start="initial"),
    "Ditto over FedPCD": Ditto(0.5, server=FedPCD(history=2)),
    "Ditto over SCAFFOLD": Ditto(0.5, server=SCAFFOLD()),
    "Ditto over FedDyn": Ditto(0.5, server=FedDyn(0.1)),
    "Ditto over FedProx": Ditto(0.5, server=FedProx(0.1)),
    "Ditto over PropFair": Ditto(0.5, server=PropFair(5.0)),
    "LocalOnly": LocalOnly(),
    "SCAFFOLD": SCAFFOLD(),
    "SCAFFOLD over FedPCD": SCAFFOLD(server=FedPCD(history=2)),
    "FedDyn": FedDyn(0.1),
    "ServerAdam over Ditto": ServerAdam(Ditto(0.5)),
}
every_keeping_rule = pytest.mark.parametrize("rule", KEEPING.values(), ids=KEEPING)
PLACE = classification_federation(8, dropout=0.3)


def run(rule: Rule[Any], *, rounds: int = 6, **options: Any) -> TrainingState:
    local = LocalSGD(lr=0.2, batch_size=5, lr_decay=0.9)
    results = simulate(
        rule, PLACE, rounds=rounds, local=local, sampler=UniformSampler(3), seed=7, **options
    )
    return list(results)[-1].training


@every_keeping_rule
def test_what_clients_keep_survives_a_checkpoint_half_way(rule: Rule[Any], tmp_path: Path):
    save(tmp_path / "half", run(rule, rounds=3))
    resumed = run(rule, training=load(tmp_path / "half", rule))
    save(tmp_path / "resumed", resumed)
    save(tmp_path / "whole", run(rule))
    assert (tmp_path / "resumed").read_bytes() == (tmp_path / "whole").read_bytes()
    assert len(resumed.client_states) > 3  # some of them were absent from the last round


@every_keeping_rule
def test_threads_keep_the_same_bytes(rule: Rule[Any], tmp_path: Path):
    save(tmp_path / "threads", run(rule, executor=Threads(3)))
    save(tmp_path / "serial", run(rule))
    assert (tmp_path / "threads").read_bytes() == (tmp_path / "serial").read_bytes()


def test_other_rules_leave_what_clients_kept_from_before():
    training = run(Ditto(0.5), rounds=2)
    kept = {client: own(training, client) for client in training.client_states}
    plain = TrainingState(2, training.params, None, client_states=training.client_states)
    after = run(FedAvg(), rounds=4, training=plain)
    assert all(torch.equal(own(after, client), model) for client, model in kept.items())


def test_another_start_is_refused():
    with pytest.raises(ValueError, match="`start` must be 'received' or 'initial'"):
        Ditto(1.0, start="zero")


@pytest.mark.parametrize("lam", [-1.0, math.inf, math.nan])
def test_impossible_settings_are_refused(lam: float):
    with pytest.raises(ValueError, match="`lam` must be at least 0"):
        Ditto(lam)
