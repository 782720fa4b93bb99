"""Facts about risks and the order of events."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from fedaccord.data import ArrayData
from fedaccord.metrics import (
    SurvivalScores,
    concordance_index,
    evaluate,
    survival_scores,
    task_summary,
)

# few distinct values, so that ties of every kind occur
patients = st.lists(
    st.tuples(st.integers(-2, 2), st.integers(0, 3), st.booleans()), min_size=1, max_size=12
)


def slow_concordance(risks, times, events):
    """Every pair, by the definition in words."""
    right = comparable = 0.0
    for i, j in itertools.permutations(range(len(risks)), 2):
        first = times[i] < times[j] or (times[i] == times[j] and not events[j])
        if events[i] and first:
            comparable += 1
            right += 1.0 if risks[i] > risks[j] else 0.5 if risks[i] == risks[j] else 0.0
    return right / comparable if comparable else None


def slow_loss(risks, times, events):
    terms = [
        math.log(sum(math.exp(r) for r, t in zip(risks, times, strict=True) if t >= time)) - risk
        for risk, time, event in zip(risks, times, events, strict=True)
        if event
    ]
    return sum(terms) / len(terms) if terms else None


def scores(risks, times, events):
    risks, times = (torch.tensor(values, dtype=torch.float64) for values in (risks, times))
    return SurvivalScores(risks, times, torch.tensor(events) != 0)


@given(patients)
def test_the_index_is_that_of_every_pair(rows):
    columns = [list(column) for column in zip(*rows, strict=True)]
    expected = slow_concordance(*columns)
    assert concordance_index(*columns) == (expected and pytest.approx(expected, abs=1e-12))


@given(patients)
def test_the_loss_is_that_of_every_event(rows):
    columns = [list(column) for column in zip(*rows, strict=True)]
    expected = slow_loss(*columns)
    found = scores(*columns).loss()
    if expected is None:
        assert found is None
    else:
        assert found == pytest.approx(expected, abs=1e-12)


def test_risks_in_the_order_of_events_are_perfect():
    times, events = [1, 2, 3, 4], [1, 1, 1, 0]
    assert concordance_index([4, 3, 2, 1], times, events) == 1.0
    assert concordance_index([1, 2, 3, 4], times, events) == 0.0
    assert concordance_index([0, 0, 0, 0], times, events) == 0.5


def test_an_event_precedes_a_censoring_at_the_same_time():
    assert concordance_index([2, 1], [5, 5], [1, 0]) == 1.0


def test_two_events_at_the_same_time_do_not_compare():
    assert concordance_index([2, 1], [5, 5], [1, 1]) is None


def test_what_happens_after_a_censoring_does_not_compare():
    assert concordance_index([2, 1], [1, 5], [0, 1]) is None


def test_equal_risks_have_the_loss_of_a_draw():
    # every event is one of those still at risk: log 3, log 2, log 1
    found = scores([7.0] * 3, [1, 2, 3], [1, 1, 1]).loss()
    assert found == pytest.approx(math.log(6) / 3)


def test_large_risks_do_not_overflow():
    assert scores([1e4, -1e4], [1, 2], [1, 1]).loss() == 0.0


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (([1.0], [1.0, 2.0], [1, 1]), "equal lengths. Got 1, 2 and 2"),
        (([math.nan], [1.0], [1]), "`risks` must not hold NaN"),
        (([math.inf], [1.0], [1]), "`risks` must be finite"),
        (([], [], []), r"must be \[n\]"),
    ],
)
def test_wrong_arguments_are_named(columns, message):
    with pytest.raises(ValueError, match=message):
        concordance_index(*columns)


# --- as a score


RISKS = [[3.0], [0.0], [2.0], [1.0]]
TARGETS = [[2.0, 1.0], [9.0, 0.0], [4.0, 1.0], [4.0, 0.0]]


@pytest.mark.parametrize("batch_size", [1, 3, 100])
def test_the_measures_are_of_the_whole_set_whatever_the_batches(batch_size):
    found = evaluate(
        nn.Identity(), ArrayData.of(RISKS, TARGETS), score=survival_scores, batch_size=batch_size
    )
    risks = [row[0] for row in RISKS]
    times, events = zip(*TARGETS, strict=True)
    assert found.concordance == slow_concordance(risks, times, events)
    assert found.losses.item() == pytest.approx(slow_loss(risks, times, events), rel=1e-12)
    assert (found.accuracies, found.class_accuracies, found.num_examples) == (None, (), 4)


def test_without_events_there_is_neither_index_nor_loss():
    data = ArrayData.of([[1.0], [2.0]], [[1.0, 0.0], [2.0, 0.0]])
    found = evaluate(nn.Identity(), data, score=survival_scores)
    assert found.concordance is None
    assert found.losses.isnan().all()
    summary = task_summary(found, tasks=["survival"], moment="before training")
    assert summary.concordance is None
    assert math.isnan(summary.mean_loss)


def test_the_summary_holds_the_index_and_no_accuracy():
    found = evaluate(nn.Identity(), ArrayData.of(RISKS, TARGETS), score=survival_scores)
    summary = task_summary(found, tasks=["survival"], moment="after 3 rounds")
    assert summary.concordance == found.concordance
    assert (summary.accuracies, summary.mean_accuracy, summary.worst_accuracy) == (None, None, None)
    assert (summary.hypervolume, summary.reference) == (None, None)
    assert f"concordance {found.concordance:.4f}" in str(summary)


def test_survival_targets_are_time_and_event():
    with pytest.raises(ValueError, match=r"must be \[b, 2\], time and event. Got \(2,\)"):
        survival_scores(nn.Identity(), (torch.zeros(2, 1), torch.zeros(2)))
    with pytest.raises(ValueError, match="Events must be 0 or 1"):
        survival_scores(nn.Identity(), (torch.zeros(1, 1), torch.tensor([[1.0, 300.0]])))


def test_a_survival_model_answers_with_one_risk_per_example():
    with pytest.raises(ValueError, match=r"Got \(2, 3\) for 2 examples"):
        survival_scores(nn.Identity(), (torch.zeros(2, 3), torch.zeros(2, 2)))


def test_survival_has_no_number_of_classes():
    with pytest.raises(ValueError, match="must be None for tasks without classes"):
        evaluate(nn.Identity(), ArrayData.of(RISKS, TARGETS), score=survival_scores, num_classes=2)
