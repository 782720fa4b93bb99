"""C07, its kind: finite contributions that overflow on the way."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from fedaccord import (
    FedAccordError,
    FedPCD,
    LocalSGD,
    NonFiniteError,
    Rule,
    run_round,
    simulate,
    start,
)

from ._shared import (
    DROP,
    LOCAL,
    RULES,
    aggregate,
    cohort_of,
    every_projecting_rule,
    every_rule,
    federation_of,
    rows,
    same,
)
from ._statistics import normalised_federation

UPDATES = [[1.0, 0.3, 0.0], [-0.8, 0.5, 0.1], [0.1, -0.9, 0.7]]
TOO_LARGE = rows([[1.0], [1e200], [1.0]])


@pytest.mark.parametrize("name", ["FedAvg", "FedPCD", "Uniform", "FedHV over FedPCD"])
def test_statistics_that_are_not_finite_are_treated_like_updates(name: str):
    # batch-norm on large inputs: the update is finite, the running variance is not
    federation, local = normalised_federation([4, 4, 4], scale=[1.0, 1e25, 1.0]), LocalSGD()
    training = start(RULES[name], federation)
    with pytest.raises(NonFiniteError, match=r"running_var.*client 1"):
        run_round(RULES[name], federation, training, client_ids=range(3), local=local)
    result, without = (
        run_round(RULES[name], federation, training, client_ids=ids, local=local, policy=DROP)
        for ids in (range(3), [0, 2])
    )
    assert list(result.failures) == [1]
    assert same(result.training, without.training)


@every_rule
@pytest.mark.parametrize("scale", [1e-150, 1e-30, 1e30, 1e150])
def test_any_usual_size_gives_a_finite_step(rule: Rule[Any], scale: float):
    cohort = cohort_of(rows(UPDATES) * scale)
    if getattr(rule, "history_dtype", None) and scale in (1e-150, 1e150):
        with pytest.raises(NonFiniteError, match="must fit into the history's dtype"):
            aggregate(rule, cohort)  # the memory the user chose cannot hold it
    else:
        assert torch.isfinite(aggregate(rule, cohort).step).all()


@every_projecting_rule
def test_an_update_too_large_to_square_is_an_error_that_says_whose_it_is(rule: Rule[Any]):
    with pytest.raises(FedAccordError, match="client 1"):
        aggregate(rule, cohort_of(rows(UPDATES) * TOO_LARGE))


@pytest.mark.parametrize("name", ["FedAvg", "FedPCD", "Uniform", "FedHV over FedPCD"])
def test_an_update_too_large_to_square_stops_a_run_with_an_error_of_ours(name: str):
    federation = federation_of((rows(UPDATES) * TOO_LARGE).tolist())
    training = start(RULES[name], federation)
    with pytest.raises(FedAccordError):
        list(simulate(RULES[name], federation, rounds=1, local=LOCAL, training=training))


def test_a_step_that_overflows_is_refused_and_the_state_stays():
    federation = federation_of(UPDATES)
    rule = FedPCD(server_lr=1e308)
    local = LocalSGD(lr=1e10)
    training = start(rule, federation)
    with pytest.raises(NonFiniteError, match="round 0"):
        run_round(rule, federation, training, client_ids=range(3), local=local)
    assert not training.params.any()


def test_an_update_too_large_for_a_small_history_stops_the_round_that_brings_it():
    rule = FedPCD(history_dtype="float16")  # float16 ends at 65504
    state = aggregate(rule, cohort_of(rows(UPDATES))).state
    wanted = aggregate(rule, cohort_of(rows(UPDATES), round=1), state)
    with pytest.raises(NonFiniteError, match=r"(?s)float16.*client 1"):
        aggregate(rule, cohort_of(rows(UPDATES) * TOO_LARGE.clamp(max=1e6), round=1), state)
    # all or nothing: the state from before is still good
    again = aggregate(rule, cohort_of(rows(UPDATES), round=1), state)
    assert same(again.step, wanted.step)
