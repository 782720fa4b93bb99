"""C03: a client whose update is zero, in rules that divide by lengths."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from common import Point, Rows
from fedaccord import Federation, FedHV, FedPCD, LocalSGD, Rule, simulate
from fedaccord.linalg import gramian, min_norm_weights

from ._shared import (
    LOCAL,
    PROJECTING,
    SHARING,
    aggregate,
    assert_follows,
    cohort_of,
    every_executor,
    every_projecting_rule,
    every_rule,
    federation_of,
    rows,
)

IDLE = [[0.0, 0.0], [1.0, 0.0]]


@pytest.mark.parametrize(
    ("radius", "weights"), [(0.0, [0.5, 0.5]), (0.1, [0.6, 0.4]), (1.0, [1.0, 0.0])]
)
def test_minimum_norm_weights_are_finite_at_every_radius(radius: float, weights: list[float]):
    # |w_0 * 0 + w_1 * e_1| = w_1, so w_1 is as small as the box |w - 1/2| <= radius allows
    found = min_norm_weights(gramian(rows(IDLE)), lower=0.5 - radius, upper=0.5 + radius)
    assert_close(found, rows([weights])[0], atol=1e-12, rtol=0)


@every_rule
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_the_step_is_half_of_the_moving_clients_update(rule: Rule[Any], dtype: torch.dtype):
    # nobody is against the average [1/2, 0], so every rule takes it or its direction
    cohort = cohort_of(rows(IDLE), dtype=dtype, loss=[0.7, 0.7])
    step, _, seen = aggregate(rule, cohort)
    if getattr(rule, "keep_zero", False):  # then zero is the shortest combination, and it is said
        assert not step.any()
        assert seen["outcome"] == "held-by-zero-updates"
    else:
        assert_follows(rule, step, rows([[0.5, 0.0]])[0], alike=False)


@every_projecting_rule
@pytest.mark.parametrize("idle", [0.0, 1e-200, -0.0], ids=["zero", "below rounding", "minus zero"])
def test_the_idle_client_is_named_in_the_record(rule: Rule[Any], idle: float):
    _, _, seen = aggregate(rule, cohort_of(rows([[idle, idle], [1.0, 0.0], [0.5, 1.0]])))
    assert seen["zero_updates"] == (0,)
    assert seen["constrained_now"] == 2


@every_projecting_rule
def test_the_idle_client_does_not_stop_the_others(rule: Rule[Any]):
    # two conflicting clients, with and without a third that is finished
    conflict = [[1.0, 0.0], [-0.9, 0.1]]
    with_it = aggregate(rule, cohort_of(rows([*conflict, [0.0, 0.0]])))
    without = aggregate(rule, cohort_of(rows(conflict)))
    assert with_it.diagnostics["outcome"] == without.diagnostics["outcome"]
    # its share shortens the average by 2/3 and changes nothing else; eps is 1e-8 of a length
    assert_close(with_it.step, without.step * 2 / 3, rtol=1e-6, atol=0)


@every_rule
@every_executor
def test_the_simulator_gives_the_same_step(rule: Rule[Any], executor: Any):
    (result,) = simulate(rule, federation_of(IDLE), rounds=1, local=LOCAL, executor=executor)
    if not getattr(rule, "keep_zero", False):
        weighs_losses = "loss" in rule.needs["train"]  # these are not equal here
        if not weighs_losses:
            assert_follows(rule, result.training.params, rows([[0.5, 0.0]])[0], alike=False)
        assert (result.training.params[0] > 0) == (rule in SHARING.values())
        assert result.training.params[1] == 0
    if rule in PROJECTING.values():
        assert result.diagnostics["zero_updates"] == (0,)


class Finished(Rows):
    """A client whose loss does not depend on the model any more."""

    def batch(self, index: Tensor) -> tuple[Tensor, ...]:
        points, gain = super().batch(index)
        return points, gain * 0


def gained_distances(model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
    points, gain = batch
    loss = (gain * ((model.w - points) ** 2).sum(1)).mean() / 2
    return torch.stack([loss, loss])


@pytest.mark.parametrize(
    "rule",
    [FedPCD(), FedPCD(infeasible="protect"), FedHV((9.0, 9.0), server=FedPCD())],
    ids=["FedPCD", "FedPCD, protect", "FedHV over FedPCD"],
)
def test_one_finished_client_does_not_stop_or_spoil_a_long_run(rule: Rule[Any]):
    centres = [[1.0, 0.0], [0.0, 2.0], [5.0, 5.0]]
    kinds = (Rows, Rows, Finished)
    clients = [
        kind(rows([centre]), torch.ones(1).double())
        for kind, centre in zip(kinds, centres, strict=True)
    ]
    federation = Federation(Point, gained_distances, clients, num_tasks=2)
    results = list(simulate(rule, federation, rounds=100, local=LocalSGD(lr=0.1)))
    assert all(result.diagnostics["zero_updates"] == (2,) for result in results)
    params = results[-1].training.params
    assert torch.isfinite(params).all()
    # both others are best served between their centres, on the segment 2 x + y = 2
    x, y = params.tolist()
    assert 0 < x < 1
    assert abs(2 * x + y - 2) / 5**0.5 < 0.05
