"""FedProx: clients held near the received model."""

from __future__ import annotations

import math

import pytest
import torch
from torch.testing import assert_close

from common import Rows, classification_federation, squared_distance
from core.test_clients import job
from fedaccord import FedAvg, Federation, FedPCD, FedProx, LocalSGD, simulate
from rules.quadratics import quadratics, rounds_of

FEDERATION = quadratics([{"a": 1.0, "c": [4.0, 0.0]}, {"a": 2.0, "c": [0.0, 2.0]}])
BOTH = [[0, 1]]


def test_two_clients_in_two_dimensions():
    # from 0, rate 1/4, mu = 2. Client 0: 1, then 1 + (3 - 2) / 4 = 1.25.
    # Client 1: 2 * 2 / 4 = 1, then 1 + (2 * 1 - 2) / 4 = 1
    (result,) = rounds_of(FedProx(2.0), FEDERATION, BOTH, LocalSGD(lr=0.25, steps=2))
    assert_close(result.training.params, torch.tensor([0.625, 0.5]).double())


def test_the_first_local_step_is_fedavgs():
    local = LocalSGD(lr=0.25, steps=1)
    (with_it,), (without,) = (
        rounds_of(rule, FEDERATION, BOTH, local) for rule in (FedProx(100.0), FedAvg())
    )
    assert torch.equal(with_it.training.params, without.training.params)


def test_not_holding_is_the_rule_alone_to_the_last_bit():
    federation, local = classification_federation(4), LocalSGD(lr=0.2, batch_size=5, epochs=2)
    for rule in (FedAvg(), FedPCD()):
        held, alone = (
            list(simulate(r, federation, rounds=3, local=local))[-1].training.params
            for r in (FedProx(0.0, server=rule), rule)
        )
        assert torch.equal(held, alone)


def test_many_steps_end_where_the_proximal_problem_does():
    # min a/2 |w - c|^2 + mu/2 |w|^2 at a c / (a + mu): 4/3 and 4/4
    local = LocalSGD(lr=0.1, steps=500)
    for client, wanted in enumerate([[4 / 3, 0.0], [0.0, 1.0]]):
        (result,) = rounds_of(FedProx(2.0), FEDERATION, [[client]], local)
        assert_close(result.training.params, torch.tensor(wanted, dtype=torch.float64))


def test_the_reported_training_loss_leaves_the_pull_out():
    # losses on the way: 8 at 0, then 9/2 at (1, 0), whatever mu is
    algorithm = FedProx(2.0).client_algorithms(LocalSGD(lr=0.25, steps=2))["train"]
    fields = algorithm(job(torch.tensor([[4.0, 0.0]]).double()), FEDERATION.model()).fields
    assert fields["train_loss"].item() == pytest.approx((8 + 4.5) / 2)


def test_it_composes_with_fedpcds_server():
    local = LocalSGD(lr=0.25, steps=2)
    opposed = quadratics([{"a": 1.0, "c": [4.0, 1.0]}, {"a": 1.0, "c": [-1.0, 0.5]}])
    (result,) = rounds_of(FedProx(1.0, server=FedPCD(tau=0.1, eps=0.0)), opposed, BOTH, local)
    seen = result.diagnostics
    assert seen["outcome"] == "projected"
    assert min(seen["progress_step"].values()) >= 0.1 - 1e-9
    # local models from 0 after two steps held by mu = 1: 7/16 - 1/16 = 3/8 of the centre
    average = 0.375 * torch.tensor([1.5, 0.75]).double()
    assert result.step_norm == pytest.approx(average.norm().item())


def test_parameters_without_a_gradient_are_pulled_too():
    class Idle(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = torch.nn.Parameter(torch.zeros(2, dtype=torch.float64))
            self.idle = torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))

    federation = Federation(Idle, squared_distance, [Rows(torch.ones(1, 2).double())])
    (result,) = rounds_of(FedProx(1.0), federation, [[0]], LocalSGD(lr=0.5, steps=2))
    assert result.training.params[2] == 0  # pulled to where it is


@pytest.mark.parametrize("mu", [-1.0, math.inf, math.nan])
def test_impossible_settings_are_refused(mu: float):
    with pytest.raises(ValueError, match="`mu` must be at least 0"):
        FedProx(mu)
