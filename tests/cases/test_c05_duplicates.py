"""C05: duplicate clients, more clients than directions, and nobody moving."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from common import spec
from fedaccord import Aggregation, FedPCD, Rule, simulate
from fedaccord.linalg import gramian, min_norm_weights

from ._shared import (
    LOCAL,
    PROJECTING,
    aggregate,
    cohort_of,
    every_projecting_rule,
    every_rule,
    every_rule_along_updates,
    federation_of,
    rows,
    same,
)

SAME = [[1.0, 2.0, 3.0]] * 3
FIVE = [[1.0, 0.2], [0.4, 1.0], [-0.3, 1.0], [0.9, -0.2], [0.1, 0.1]]
every_scale = pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
# demanding settings, for which the projection has to be made although clients agree
STRICT = {name: rule for name, rule in PROJECTING.items() if name != "FedPCD, no primary"} | {
    "shortest": FedPCD(tau=0.9, primary=False),
    "all of it": FedPCD(tau=1.0),
}


@pytest.mark.parametrize("copies", [2, 3, 70])
@every_scale
def test_duplicates_share_the_weight_equally(copies: int, scale: float):
    weights = min_norm_weights(gramian(scale * rows(SAME[:1] * copies)))
    assert_close(weights, torch.full((copies,), 1 / copies, dtype=torch.float64))


def test_duplicates_among_others_have_equal_weights():
    # the hull of e1, e1, e2 is nearest to the origin at (e1 + e2) / 2
    weights = min_norm_weights(gramian(rows([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])))
    assert_close(weights, torch.tensor([0.25, 0.25, 0.5]).double())


@every_rule_along_updates
@pytest.mark.parametrize(
    ("scale", "dtype"), [(1e-6, torch.float32), (1.0, torch.float64), (1e6, torch.float32)]
)
def test_duplicates_give_their_direction(rule: Rule[Any], scale: float, dtype: torch.dtype):
    cohort = cohort_of(scale * rows(SAME), dtype=dtype, loss=[0.7] * 3)  # the same in all they do
    step = aggregate(rule, cohort).step.double()
    assert_close(step / step.norm(), rows(SAME)[0] / rows(SAME)[0].norm(), atol=1e-6, rtol=0)


@pytest.mark.parametrize("rule", STRICT.values(), ids=STRICT)
@every_scale
def test_multipliers_of_duplicates_are_never_negative(rule: Rule[Any], scale: float):
    seen = aggregate(rule, cohort_of(scale * rows(SAME))).diagnostics
    assert min(seen["multipliers"].values()) >= 0
    assert seen["outcome"] in ("average", "projected")


@every_scale
def test_multipliers_of_duplicates_are_equal(scale: float):
    # by symmetry; any others with the same sum would give the same step
    seen = aggregate(FedPCD(tau=0.9, primary=False), cohort_of(scale * rows(SAME))).diagnostics
    assert seen["feasibility_margin"] == pytest.approx(1)  # one direction serves all of them
    one, two, three = seen["multipliers"].values()
    assert one == pytest.approx(two, rel=1e-6)
    assert one == pytest.approx(three, rel=1e-6)


@every_projecting_rule
def test_a_conflict_with_duplicates_is_that_with_one_of_them(rule: Rule[Any]):
    # one client of weight 3 or three of weight 1 give the same average and the same half-spaces
    one, other = [1.0, 0.0], [-0.6, 0.5]
    many = aggregate(rule, cohort_of(rows([one, one, one, other])))
    single = aggregate(rule, cohort_of(rows([one, other]), num_examples=[3, 1]))
    assert_close(many.step, single.step, rtol=1e-7, atol=1e-9)


def aggregate_many(rule: Rule[Any], updates: Tensor) -> Aggregation[Any]:
    return aggregate(rule, cohort_of(updates), rule.init(spec(2, len(updates), num_tasks=2)))


@every_rule
@pytest.mark.parametrize("kind", ["within a half-plane", "all around"])
@pytest.mark.parametrize("count", [5, 60])
def test_more_clients_than_directions_are_finite_and_repeatable(
    rule: Rule[Any], kind: str, count: int
):
    source = torch.Generator().manual_seed(5)
    updates = torch.cat([rows(FIVE), torch.randn(count, 2, generator=source).double()])[:count]
    if kind == "within a half-plane":
        updates = torch.stack([updates[:, 0], updates[:, 1].abs() + 0.1], dim=1)
    first, second = (aggregate_many(rule, updates) for _ in range(2))
    assert torch.isfinite(first.step).all()
    assert same(first.step, second.step)
    assert same(dict(first.diagnostics), dict(second.diagnostics))


@pytest.mark.parametrize("radius", [0.0, 0.1, 1.0])
def test_minimum_norm_weights_of_zeros_are_equal(radius: float):
    third = 1 / 3
    weights = min_norm_weights(
        torch.zeros(3, 3).double(), lower=third - radius, upper=third + radius
    )
    assert_close(weights, torch.full((3,), third, dtype=torch.float64))


@every_rule
@pytest.mark.parametrize("num_examples", [[1, 1, 1], [1, 5, 0]], ids=["equal", "unequal"])
def test_all_zero_is_no_step(rule: Rule[Any], num_examples: list[int]):
    cohort = cohort_of(torch.zeros(3, 3), num_examples=num_examples)
    assert torch.equal(aggregate(rule, cohort).step, torch.zeros(3).double())


@every_projecting_rule
def test_all_zero_is_flagged(rule: Rule[Any]):
    seen = aggregate(rule, cohort_of(torch.zeros(3, 3))).diagnostics
    assert seen["outcome"] == "no-average"
    assert seen["zero_updates"] == (0, 1, 2)


@every_rule
def test_all_zero_leaves_the_model_and_the_run_goes_on(rule: Rule[Any]):
    results = list(simulate(rule, federation_of([[0.0, 0.0]] * 3), rounds=3, local=LOCAL))
    assert [result.step_norm for result in results] == [0.0, 0.0, 0.0]
    assert not results[-1].training.params.any()


@every_rule_along_updates
def test_a_federation_of_duplicates_runs(rule: Rule[Any]):
    local = replace(LOCAL, lr=0.5)
    results = list(simulate(rule, federation_of(SAME), rounds=4, local=local))
    params = results[-1].training.params
    assert_close(params / params.norm(), rows(SAME)[0] / rows(SAME)[0].norm())
