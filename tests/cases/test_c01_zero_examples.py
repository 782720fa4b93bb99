"""C01: clients without examples, all of them or one of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from fedaccord import (
    EmptyRoundError,
    FedAccordError,
    FedAvg,
    FedHV,
    FedPCD,
    Rule,
    run_round,
    simulate,
    start,
)
from fedaccord.data import ArrayData
from fedaccord.metrics import class_shares, client_accuracies, evaluate, fairness_summary
from fedaccord.models import logistic

from ._shared import (
    LOCAL,
    SKIP,
    Tampered,
    aggregate,
    cohort_of,
    every_executor,
    every_rule,
    every_sharing_rule,
    federation_of,
    rows,
    same,
)

MODELS = [[1.0, 2.0], [3.0, 4.0]]
THREE = [[1.0, 2.0], [3.0, 4.0], [-5.0, 1.0]]
NONE_AT_ALL = r"(?s)[Rr]ound 0.*total weight is zero|total weight is zero.*[Rr]ound 0"
claims_none = Tampered(lambda result: replace(result, num_examples=0), clients=(0, 1))


@every_rule
@pytest.mark.parametrize(("num_clients", "dtype"), [(2, torch.float64), (1, torch.float32)])
def test_no_examples_at_all_is_an_error_in_the_library(
    rule: Rule[Any], num_clients: int, dtype: torch.dtype
):
    updates = rows(MODELS[:num_clients])
    with pytest.raises(EmptyRoundError, match=NONE_AT_ALL):
        aggregate(rule, cohort_of(updates, dtype=dtype, num_examples=[0] * num_clients))


@every_rule
@every_executor
def test_no_data_at_all_is_the_same_error_in_the_simulator(rule: Rule[Any], executor: Any):
    federation = federation_of(MODELS, num_examples=[0, 0])
    with pytest.raises(EmptyRoundError, match=NONE_AT_ALL):
        list(simulate(rule, federation, rounds=1, local=LOCAL, executor=executor))


@every_sharing_rule
def test_clients_that_claim_no_examples_are_the_same_error(rule: Rule[Any]):
    federation = federation_of(MODELS)
    training = start(rule, federation)
    with pytest.raises(EmptyRoundError, match=NONE_AT_ALL):
        run_round(rule, federation, training, client_ids=[0, 1], local=claims_none)
    after = run_round(rule, federation, training, client_ids=[0, 1], local=LOCAL)
    assert after.training.params.any()  # the state from before is still good


@every_rule
@pytest.mark.parametrize("num_examples", [[0, 0], [1, 1]], ids=["no data", "no claim"])
def test_skipping_keeps_the_model_and_marks_the_round(rule: Rule[Any], num_examples: list[int]):
    federation = federation_of(MODELS, num_examples=num_examples)
    training = start(rule, federation)
    result = run_round(
        rule, federation, training, client_ids=[0, 1], local=claims_none, policy=SKIP
    )
    assert result.empty
    assert same(result.training, replace(training, round=1))


@every_rule
def test_a_run_goes_on_after_skipped_rounds(rule: Rule[Any]):
    federation = federation_of(MODELS, num_examples=[0, 0])
    results = list(simulate(rule, federation, rounds=3, local=LOCAL, policy=SKIP))
    assert [result.empty for result in results] == [True, True, True]
    assert [result.round for result in results] == [0, 1, 2]


@pytest.mark.parametrize("rule", [FedAvg(), FedPCD(tau=0), FedHV((3, 2), server=FedAvg())], ids=str)
def test_one_client_without_examples_has_weight_zero(rule: Rule[Any]):
    # counts 1, 3, 0: (1 [1, 2] + 3 [3, 4]) / 4; nobody with examples is against it
    cohort = cohort_of(rows([*MODELS, [5.0, 5.0]]), num_examples=[1, 3, 0])
    assert_close(aggregate(rule, cohort).step, rows([[2.5, 3.5]])[0])


@every_rule
@every_executor
def test_one_client_without_data_is_listed(rule: Rule[Any], executor: Any):
    federation = federation_of(THREE, num_examples=[1, 3, 0])
    (result,) = simulate(rule, federation, rounds=1, local=LOCAL, executor=executor)
    assert result.without_examples == (2,)
    assert not result.failures


@every_rule
def test_one_client_that_claims_no_examples_is_listed(rule: Rule[Any]):
    local = replace(claims_none, clients=(2,))
    (result,) = simulate(rule, federation_of(THREE), rounds=1, local=local)
    assert 2 in result.without_examples


@every_rule
def test_one_client_without_data_leaves_the_others_result(rule: Rule[Any]):
    federation = federation_of(THREE, num_examples=[1, 3, 0])
    training = start(rule, federation)
    with_it, without = (
        run_round(rule, federation, training, client_ids=ids, local=LOCAL)
        for ids in ([0, 1, 2], [0, 1])
    )
    assert torch.equal(with_it.training.params, without.training.params)


def test_a_client_without_samples_has_no_accuracy_instead_of_zero():
    parts = [np.array([0, 1]), np.array([], dtype=np.int64)]
    shares = class_shares([0, 1, 1], parts, num_classes=2)
    values = client_accuracies([0.4, 0.8], shares)
    assert values[0].item() == pytest.approx(0.6)  # half of each class
    assert values[1].isnan()
    summary = fairness_summary(values, moment="now")
    assert (summary.num_clients, summary.num_missing) == (1, 1)
    assert summary.worst == pytest.approx(0.6)


def test_no_client_with_a_value_is_an_error_that_says_so():
    with pytest.raises(ValueError, match="At least one client must have a value. Got none of 2"):
        fairness_summary([float("nan")] * 2, moment="now")


def test_evaluating_on_no_examples_is_an_error_that_says_so():
    data = ArrayData((torch.zeros(0, 3), torch.zeros(0, dtype=torch.int64)))
    with pytest.raises((ValueError, FedAccordError), match="at least one example"):
        evaluate(logistic(3), data, num_classes=2)
