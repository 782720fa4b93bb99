"""C06: exactly opposite updates, and three that conflict."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from common import flat_layout
from fedaccord import Cohort, FedLF, FedMGDAPlus, FedPCD, Layout, Reply, Rule, simulate
from fedaccord.linalg import gramian, min_norm_weights

from ._shared import (
    LOCAL,
    PROJECTING,
    aggregate,
    assert_follows,
    cohort_of,
    every_executor,
    every_projecting_rule,
    every_rule,
    federation_of,
    rows,
    same,
)

OPPOSITE = [[1.0, 0.0], [-1.0, 0.0]]
AND_A_LITTLE = [*OPPOSITE, [0.0, 0.001]]
CONFLICT = [[1.0, 0.3, 0.0], [-0.8, 0.5, 0.1], [0.1, -0.9, 0.7]]
every_scale = pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
every_dtype = pytest.mark.parametrize("dtype", [torch.float32, torch.float64])


@every_scale
@pytest.mark.parametrize("updates", [OPPOSITE, AND_A_LITTLE], ids=["two", "three"])
def test_minimum_norm_weights_are_one_half_each(updates: list[list[float]], scale: float):
    # with the third row too: it would only make the combination longer
    weights = min_norm_weights(gramian(scale * rows(updates)))
    assert_close(weights[:2], torch.full((2,), 0.5, dtype=torch.float64))
    assert not weights[2:].any()


@every_rule
@pytest.mark.parametrize(
    ("scale", "dtype"), [(1e-6, torch.float32), (1.0, torch.float64), (1e6, torch.float32)]
)
def test_opposite_updates_are_no_step(rule: Rule[Any], scale: float, dtype: torch.dtype):
    # equal losses: a rule that weighs by losses has no reason to prefer one
    cohort = cohort_of(scale * rows(OPPOSITE), dtype=dtype, loss=[0.7, 0.7])
    step, _, seen = aggregate(rule, cohort)
    assert torch.equal(step, torch.zeros(2, dtype=dtype))
    if rule in PROJECTING.values():
        assert seen["outcome"] == "no-average"


@every_projecting_rule
@every_dtype
def test_updates_that_cancel_up_to_rounding_are_no_step(rule: Rule[Any], dtype: torch.dtype):
    source = torch.Generator().manual_seed(2)
    a, b = torch.randn(2, 1000, generator=source, dtype=dtype)
    cohort = cohort_of(torch.stack([a, b, -(a + b)]), dtype=dtype)
    assert aggregate(rule, cohort).step.abs().max() == 0


@every_rule
@every_executor
def test_the_model_stays_and_the_run_goes_on(rule: Rule[Any], executor: Any):
    federation = federation_of(OPPOSITE)
    results = list(simulate(rule, federation, rounds=4, local=LOCAL, executor=executor))
    assert [result.step_norm for result in results] == [0.0] * 4
    assert not results[-1].training.params.any()
    if rule in PROJECTING.values():
        assert {result.diagnostics["outcome"] for result in results} == {"no-average"}


@every_rule
def test_a_little_beside_opposite_updates_is_the_step(rule: Rule[Any]):
    # every rule's answer: the average [0, 0.001 / 3], to which opposite clients are indifferent
    step, _, seen = aggregate(rule, cohort_of(rows(AND_A_LITTLE), loss=[0.7] * 3))
    if {0, 1} & set(seen.get("kept", ())):
        return  # FedFV that leaves one of the two as it is follows it
    if seen.get("outcome") == "stationary":
        assert isinstance(rule, FedLF | FedMGDAPlus)  # the opposite rows' hull holds zero
        assert not step.any()
    else:
        average = rows([[0.0, 0.001 / 3]])[0]
        assert_follows(rule, step, average, alike=False, rtol=1e-6, atol=1e-12)
    if seen.get("outcome") in ("infeasible", "protected"):
        assert seen["unprotected"] == (0, 1)  # who could not be given progress is named


@pytest.mark.parametrize("answer", ["average", "protect"])
def test_opposite_updates_of_unequal_weight_are_flagged(answer: Any):
    # the average is [1/2, 0]; nothing but zero hurts neither client
    rule = FedPCD(infeasible=answer)
    step, _, seen = aggregate(rule, cohort_of(rows(OPPOSITE), num_examples=[3, 1]))
    assert seen["outcome"] == {"average": "infeasible", "protect": "stalled"}[answer]
    assert seen["unprotected"] == (0, 1)
    assert_close(step, rows([[0.5, 0.0]])[0] if answer == "average" else torch.zeros(2).double())


def replies_of(updates: Tensor, order: tuple[int, ...]) -> list[Reply]:
    cohort = cohort_of(updates)
    return [
        Reply(i, i + 1, {name: values[i] for name, values in cohort.fields.items()}) for i in order
    ]


def layout_of(updates: list[list[float]]) -> Layout:
    return flat_layout(len(updates[0]))


@every_rule
@pytest.mark.parametrize("updates", [CONFLICT, AND_A_LITTLE], ids=["conflict", "opposite"])
def test_list_order_has_no_effect(rule: Rule[Any], updates: list[list[float]]):
    results = [
        aggregate(rule, Cohort.stack(replies_of(rows(updates), order), layout=layout_of(updates)))
        for order in itertools.permutations(range(3))
    ]
    assert all(same(result.step, results[0].step) for result in results)
    assert all(same(dict(r.diagnostics), dict(results[0].diagnostics)) for r in results)


@every_rule
@pytest.mark.parametrize("updates", [CONFLICT, AND_A_LITTLE], ids=["conflict", "opposite"])
def test_who_has_which_id_has_no_effect(rule: Rule[Any], updates: list[list[float]]):
    given = rows(updates)
    steps = [
        # the loss goes with the update; so do examples and rates, which are equal here
        aggregate(rule, cohort_of(given[list(order)], loss=[1.0 + i for i in order])).step
        for order in itertools.permutations(range(3))
    ]
    for step in steps:
        assert_close(step, steps[0], rtol=1e-9, atol=1e-12)  # sums are rounded in another order


@every_rule
@pytest.mark.parametrize("updates", [OPPOSITE, AND_A_LITTLE, CONFLICT], ids=str)
def test_the_callers_arrays_are_not_changed(rule: Rule[Any], updates: list[list[float]]):
    replies = replies_of(rows(updates), tuple(range(len(updates))))
    before = copy.deepcopy(tuple(dict(reply.fields) for reply in replies))
    layout = layout_of(updates)
    cohort = Cohort.stack(replies, layout=layout)
    stacked = copy.deepcopy(dict(cohort.fields))
    state = aggregate(rule, cohort).state
    aggregate(rule, Cohort.stack(replies, round=1, layout=layout), state)
    assert same(tuple(dict(reply.fields) for reply in replies), before)
    assert same(dict(cohort.fields), stacked)


@every_projecting_rule
def test_a_projection_uses_the_original_updates(rule: Rule[Any]):
    # every constraint is one of the *given* updates: none is hurt where the program is feasible
    step, _, seen = aggregate(rule, cohort_of(rows(CONFLICT)))
    assert seen["outcome"] in ("average", "projected")
    assert (rows(CONFLICT) @ step >= -1e-12).all()
