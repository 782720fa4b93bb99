"""C07: one client sends NaN or infinity."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch

from common import flat_layout
from fedaccord import (
    ClientResult,
    Cohort,
    EmptyRoundError,
    Layout,
    NonFiniteError,
    Policy,
    Reply,
    Rule,
    run_round,
    simulate,
    start,
)

from ._shared import (
    DROP,
    Tampered,
    aggregate,
    cohort_of,
    every_executor,
    every_rule,
    federation_of,
    rows,
    same,
)

UPDATES = [[1.0, 0.3, 0.0], [-0.8, 0.5, 0.1], [0.1, -0.9, 0.7]]
FIELDS = ("update", "loss", "task_loss", "client_lr")
ALL_DROPPED = r"(?s)[Rr]ound 0.*(client 0.*client 2|\{0: .*2: )"


def replies(field: str = "", value: float = 0.0) -> list[Reply]:
    """Three clients, of which client 1 sends one bad value if a field is named."""
    cohort = cohort_of(rows(UPDATES))
    made = []
    for i in range(3):
        fields = {name: values[i].clone() for name, values in cohort.fields.items()}
        if field and i == 1:
            fields[field].reshape(-1)[-1] = value
        made.append(Reply(i, i + 1, fields))
    return made


def sending(field: str, value: float, *clients: int) -> Tampered:
    def spoil(result: ClientResult) -> ClientResult:
        bad = result.fields[field].clone()
        bad.reshape(-1)[-1] = value
        return replace(result, fields={**result.fields, field: bad})

    return Tampered(spoil, clients=clients)


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_raising_in_the_library_names_client_field_and_round(field: str, value: float):
    with pytest.raises(NonFiniteError, match=rf"round 0, `{field}` .* client 1"):
        Cohort.stack(replies(field, value))


def test_raising_names_the_parameter():
    layout = Layout(("body.weight", "head.bias"), ((2,), (1,)))  # the bad value is the last
    with pytest.raises(NonFiniteError, match=r"head\.bias"):
        Cohort.stack(replies("update", math.nan), layout=layout)


@every_rule
@pytest.mark.parametrize(
    ("field", "value"),
    [("update", math.nan), ("update", -math.inf), ("loss", math.nan), ("task_loss", math.inf)],
)
def test_dropping_in_the_library_equals_a_round_without_the_client(
    rule: Rule[Any], field: str, value: float
):
    layout = flat_layout(3)
    cohort = Cohort.stack(replies(field, value), non_finite="drop", layout=layout)
    good = [reply for reply in replies() if reply.client_id != 1]
    with_it, without = (aggregate(rule, c) for c in (cohort, Cohort.stack(good, layout=layout)))
    assert same(with_it.step, without.step)
    assert same(dict(with_it.diagnostics), dict(without.diagnostics))
    assert list(cohort.dropped) == [1]
    assert field in cohort.dropped[1]


def test_nobody_left_in_the_library_is_an_empty_round_that_says_why():
    with pytest.raises(EmptyRoundError, match=r"Round 0 .*1: '`update` contains NaN"):
        Cohort.stack([replies("update", math.nan)[1]], non_finite="drop")


@every_rule
@pytest.mark.parametrize("field", ["update", "loss", "task_loss", "train_loss", "client_lr"])
def test_raising_in_the_simulator_names_client_and_field_and_keeps_the_state(
    rule: Rule[Any], field: str
):
    federation = federation_of(UPDATES)
    training = start(rule, federation)
    before, local = training.params.clone(), sending(field, math.nan, 1)
    with pytest.raises(NonFiniteError, match=rf"`{field}` contains NaN.*client 1"):
        run_round(rule, federation, training, client_ids=range(3), local=local)
    assert torch.equal(training.params, before)


@every_rule
@every_executor
@pytest.mark.parametrize(("field", "value"), [("update", math.inf), ("loss", math.nan)])
def test_dropping_in_the_simulator_equals_rounds_without_the_client(
    rule: Rule[Any], executor: Any, field: str, value: float
):
    federation, local = federation_of(UPDATES), sending(field, value, 1)
    training = other = start(rule, federation)
    for _ in range(2):
        with_it = run_round(
            rule, federation, training, client_ids=range(3), local=local, policy=DROP,
            executor=executor,
        )  # fmt: skip
        without = run_round(rule, federation, other, client_ids=[0, 2], local=local)
        training, other = with_it.training, without.training
        assert same(training, other)
        assert same(dict(with_it.diagnostics), dict(without.diagnostics))
        assert list(with_it.failures) == [1]
        assert f"`{field}`" in with_it.failures[1]


@every_rule
def test_nobody_left_in_the_simulator_is_an_empty_round_that_says_why(rule: Rule[Any]):
    local = sending("update", math.nan, 0, 1, 2)
    with pytest.raises(EmptyRoundError, match=ALL_DROPPED):
        list(simulate(rule, federation_of(UPDATES), rounds=1, local=local, policy=DROP))


@every_rule
def test_nobody_left_can_be_skipped(rule: Rule[Any]):
    federation, local = federation_of(UPDATES), sending("update", math.nan, 0, 1, 2)
    policy = Policy(on_invalid="drop", on_empty="skip")
    results = list(simulate(rule, federation, rounds=2, local=local, policy=policy))
    assert [result.empty for result in results] == [True, True]
    assert [list(result.failures) for result in results] == [[0, 1, 2]] * 2
    assert same(results[-1].training, replace(start(rule, federation), round=2))
