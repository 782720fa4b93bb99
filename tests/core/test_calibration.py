"""Calibration under a policy."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from fedaccord import EmptyRoundError, Federation, LocalSGD, NonFiniteError, Policy, calibrate
from fedaccord.clients import Batch
from fedaccord.data import ArrayData

LOCAL = LocalSGD(lr=0.1, batch_size=1, steps=1)


def losses(model: nn.Module, batch: Batch) -> Tensor:
    """The data itself, so that a client's report is its number, whatever the model."""
    zero = sum(parameter.sum() for parameter in model.parameters()) * 0
    return batch[0].mean().reshape(1) + zero


def federation(*numbers: float) -> Federation:
    clients = [ArrayData((torch.tensor([[number]]), torch.zeros(1))) for number in numbers]
    return Federation(model=lambda: nn.Linear(1, 1), losses=losses, clients=clients)


def test_a_contribution_that_is_dropped_has_no_part_in_the_reference():
    policy = Policy(on_invalid="drop")
    reference = calibrate(
        federation(2.0, float("nan"), 4.0), local=LOCAL, rounds=2, margin=0.5, policy=policy
    )
    assert reference == pytest.approx((3.5,))  # the mean of 2 and 4, and the margin


def test_without_a_policy_an_unusable_contribution_is_an_error():
    with pytest.raises(NonFiniteError):
        calibrate(federation(2.0, float("nan")), local=LOCAL, rounds=1)


def test_if_every_round_is_empty_there_is_no_reference():
    policy = Policy(on_invalid="drop", on_empty="skip")
    with pytest.raises(EmptyRoundError, match="Calibration needs a round with contributions. All"):
        calibrate(federation(float("nan")), local=LOCAL, rounds=3, policy=policy)
