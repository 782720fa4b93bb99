"""C02: a rule that uses losses gets each client's own, or an error; never a default."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from common import Point, Rows, make_cohort
from fedaccord import (
    ClientResult,
    Cohort,
    Federation,
    FedHV,
    FedPCD,
    LocalSGD,
    MissingFieldError,
    QFedAvg,
    Reply,
    Rule,
    Uniform,
    run_round,
    simulate,
    start,
)

from ._shared import Tampered, aggregate, every_executor

UPDATES, LOSSES = [[-0.1, 0.0], [0.0, -0.1]], [1.0, 4.0]
WANTED = {0: [-0.05, -0.05], 1: [-0.0192308, -0.0769231]}  # the values of the case
every_q = pytest.mark.parametrize("q", [0, 1])


def linear(model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
    """A loss of known slope and of known value at zero: `[1]`."""
    slope, offset = batch
    return (slope @ model.w + offset).mean().reshape(1)


def linear_federation() -> Federation:
    clients = [
        Rows(torch.tensor([[1.0, 0.0]]).double(), torch.tensor([1.0]).double()),
        Rows(torch.tensor([[0.0, 1.0]]).double(), torch.tensor([4.0]).double()),
    ]
    return Federation(Point, linear, clients)


def without(name: str) -> Tampered:
    """The second client does not send one field."""

    def forget(result: ClientResult) -> ClientResult:
        return replace(result, fields={k: v for k, v in result.fields.items() if k != name})

    return Tampered(forget, clients=(1,), inner=LocalSGD())


@every_q
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_each_clients_own_loss_counts_in_the_library(q: int, dtype: torch.dtype):
    cohort = make_cohort(UPDATES, dtype=dtype, loss=LOSSES, client_lr=[0.1, 0.1])
    cohort = replace(cohort, fields={k: v.to(dtype) for k, v in cohort.fields.items()})
    step = QFedAvg(q).aggregate(None, cohort).step
    assert_close(step.double(), torch.tensor(WANTED[q]).double(), atol=1e-6, rtol=0)


@every_q
@every_executor
def test_each_clients_own_loss_counts_in_the_simulator(q: int, executor: Any):
    local = LocalSGD(lr=0.1)  # it is told to report the loss because the rule needs it
    (result,) = simulate(QFedAvg(q), linear_federation(), rounds=1, local=local, executor=executor)
    wanted = torch.tensor(WANTED[q]).double()
    assert_close(result.training.params, wanted, atol=1e-6, rtol=0)
    a, b = result.training.params.tolist()
    assert b / a == pytest.approx(4.0**q)  # 1:4 with q = 1


@pytest.mark.parametrize(
    ("rule", "field"),
    [
        (QFedAvg(1), "loss"),
        (FedHV((3.0, 2.0)), "task_loss"),
        (FedHV((3.0, 2.0), server=FedPCD()), "task_loss"),
        (Uniform(report="all"), "task_loss"),
    ],
    ids=["QFedAvg", "FedHV", "FedHV over FedPCD", "Uniform"],
)
def test_losses_left_out_in_the_library_name_the_input_and_the_clients(rule: Rule[Any], field: str):
    cohort = make_cohort(UPDATES, client_ids=[3, 8], client_lr=[0.1, 0.1])
    with pytest.raises(MissingFieldError, match=rf"`{field}`.*\[3, 8\]"):
        aggregate(rule, cohort)


def test_one_loss_left_out_in_the_library_names_the_client():
    full = {"update": torch.zeros(2), "loss": torch.tensor(1.0)}
    with pytest.raises(Exception, match=r"(?s)client 8.*") as caught:
        Cohort.stack([Reply(3, 1, full), Reply(8, 1, {"update": torch.zeros(2)})])
    assert "loss" in str(caught.value)


@pytest.mark.parametrize(
    ("rule", "field"),
    [(QFedAvg(0), "loss"), (FedHV((9.0,)), "task_loss")],
    ids=["QFedAvg", "FedHV"],
)
def test_one_loss_left_out_in_the_simulator_names_the_input_and_the_client(
    rule: Rule[Any], field: str
):
    federation = linear_federation()
    training = start(rule, federation)
    with pytest.raises(MissingFieldError, match=rf"client 1 did not report \['{field}'\]"):
        run_round(rule, federation, training, client_ids=[0, 1], local=without(field))
    assert not training.params.any()


def test_training_that_cannot_report_losses_is_found_before_any_client_trains():
    class Silent(Tampered):
        def reporting(self, budget: Any, /) -> Silent:
            return self

        def __call__(self, job: Any, model: nn.Module, /) -> ClientResult:
            raise AssertionError("trained")

    with pytest.raises(MissingFieldError, match=r"QFedAvg needs \['loss'\].*Silent reports"):
        simulate(
            QFedAvg(1), linear_federation(), rounds=1, local=Silent(lambda r: r, (), LocalSGD())
        )
