"""C04: a single client, and a single client a round."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.testing import assert_close

from fedaccord import FedPCD, Rule, UniformSampler, run_round, simulate, start
from fedaccord.linalg import (
    gramian,
    min_norm_weights,
    project_onto_halfspaces,
    project_onto_simplex,
    project_with_protection,
)

from ._shared import (
    LOCAL,
    PROJECTING,
    aggregate,
    assert_follows,
    cohort_of,
    every_executor,
    every_rule,
    federation_of,
    rows,
)

UPDATE = [3.0, -1.0]
FIVE = [[3.0, -1.0], [1.0, 2.0], [-2.0, 0.5], [0.0, -3.0], [1.0, 1.0]]


@every_rule
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_the_step_is_the_clients_update(rule: Rule[Any], dtype: torch.dtype):
    cohort = cohort_of(rows([UPDATE]), dtype=dtype, num_examples=[17])
    step = aggregate(rule, cohort).step
    assert_follows(rule, step, rows([UPDATE])[0])


@pytest.mark.parametrize("name", [n for n in PROJECTING if n != "FedPCD, no primary"])
def test_no_solver_is_called(name: str):
    step, _, seen = aggregate(PROJECTING[name], cohort_of(rows([UPDATE])))
    assert seen["outcome"] == "average"
    assert seen["solver"] == "none"
    assert seen["solver_fallbacks"] == 0
    assert torch.equal(step, rows([UPDATE])[0])  # the average itself, bit for bit


@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
@pytest.mark.parametrize("bounds", [{}, {"lower": 1.0}, {"lower": 0.2, "upper": 2.0}])
def test_the_minimum_norm_weight_is_one(scale: float, bounds: dict[str, float]):
    weights = min_norm_weights(gramian(scale * rows([UPDATE])), **bounds)
    assert weights.tolist() == [1.0]


def test_the_one_weight_of_a_simplex_is_one():
    assert project_onto_simplex(torch.tensor([0.7]).double()).tolist() == [1.0]


@pytest.mark.parametrize("project", [project_onto_halfspaces, project_with_protection])
def test_one_half_space_is_reached_by_the_shortest_way(project: Any):
    # a = [3, -1], a_0 = 0, a'd >= 5: d = a 5 / |a|^2 = a / 2
    answer = project(gramian(rows([UPDATE])), torch.zeros(1).double(), torch.tensor([5.0]).double())
    found = answer.multipliers if hasattr(answer, "multipliers") else answer.coefficients
    assert_close(found, torch.tensor([0.5]).double())


@every_rule
@every_executor
def test_a_simulation_with_one_client_a_round_starts_and_ends(rule: Rule[Any], executor: Any):
    results = list(
        simulate(
            rule,
            federation_of(FIVE),
            rounds=2,
            local=LOCAL,
            sampler=UniformSampler(1),
            executor=executor,
        )
    )
    assert [len(result.client_ids) for result in results] == [1, 1]
    assert all(torch.isfinite(result.training.params).all() for result in results)
    (first,) = results[0].client_ids
    assert_follows(rule, results[0].training.params, rows([FIVE[first]])[0])


@every_rule
def test_a_federation_of_one_client_runs(rule: Rule[Any]):
    results = list(simulate(rule, federation_of([UPDATE]), rounds=2, local=LOCAL))
    assert_follows(rule, results[0].training.params, rows([UPDATE])[0])
    assert torch.isfinite(results[1].training.params).all()


def test_absent_clients_still_count_when_one_is_asked():
    # client 0 went to [3, -1]; client 2 alone pulls the other way and may not undo it
    federation = federation_of(FIVE)
    rule = FedPCD(tau=0.0, history=5)
    training = start(rule, federation)
    for client in (0, 2):
        result = run_round(rule, federation, training, client_ids=[client], local=LOCAL)
        before, training = training, result.training
    step = training.params - before.params
    assert result.diagnostics["cached_clients"] == (0,)
    assert step @ rows([UPDATE])[0] >= -1e-9
