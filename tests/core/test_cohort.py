"""Stacking replies into a cohort, and screening them."""

from __future__ import annotations

import itertools

import pytest
import torch

from common import flat_layout, make_cohort, spec
from fedaccord import (
    Cohort,
    EmptyRoundError,
    MalformedReplyError,
    MissingFieldError,
    NonFiniteError,
    Policy,
    Reply,
)
from fedaccord.screening import screen


def reply(client: int, *values: float, examples: int = 1, **fields: float) -> Reply:
    extra = {name: torch.tensor(value) for name, value in fields.items()}
    return Reply(client, examples, {"update": torch.tensor(values), **extra})


def test_rows_are_sorted_by_client_whoever_answered_first():
    replies = [reply(5, 1.0, 2.0), reply(0, 3.0, 4.0), reply(2, 5.0, 6.0)]
    for order in itertools.permutations(replies):
        cohort = Cohort.stack(order)
        assert cohort.client_ids == (0, 2, 5)
        assert cohort.updates.tolist() == [[3, 4], [5, 6], [1, 2]]


def test_shares_are_fractions_of_the_examples():
    cohort = make_cohort([[0.0]] * 3, num_examples=[10, 30, 60])
    assert cohort.shares.tolist() == [0.1, 0.3, 0.6]


def test_a_client_without_examples_has_no_share():
    assert make_cohort([[0.0]] * 2, num_examples=[0, 4]).shares.tolist() == [0, 1]


def test_deltas_have_the_other_sign():
    assert make_cohort([[1.0, -2.0]]).deltas.tolist() == [[-1, 2]]


def test_replies_share_no_memory_with_the_cohort():
    update = torch.zeros(2)
    cohort = Cohort.stack([Reply(0, 1, {"update": update})])
    update += 1
    assert cohort.updates.tolist() == [[0, 0]]


def test_a_client_may_not_answer_twice():
    with pytest.raises(MalformedReplyError, match="Client 3 answered twice in round 7"):
        Cohort.stack([reply(3, 1.0), reply(3, 2.0)], round=7)


def test_other_shapes_name_both_clients():
    with pytest.raises(MalformedReplyError, match=r"Client 0 sent \(2,\).*client 1 \(1,\)"):
        Cohort.stack([reply(0, 1.0, 2.0), reply(1, 1.0)])


def test_other_fields_name_both_clients():
    with pytest.raises(MalformedReplyError, match=r"Client 0 reported .*client 1 \['update'\]"):
        Cohort.stack([reply(0, 1.0, loss=1.0), reply(1, 1.0)])


def test_the_layout_gives_the_length_of_updates():
    with pytest.raises(MalformedReplyError, match=r"shape \(3,\)"):
        Cohort.stack([reply(0, 1.0)], layout=flat_layout(3))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_value_that_is_not_finite_names_client_and_field(value: float):
    with pytest.raises(NonFiniteError, match="`loss` contains NaN or infinity at client 1"):
        Cohort.stack([reply(0, 1.0, loss=1.0), reply(1, 1.0, loss=value)])


def test_dropping_gives_the_cohort_without_the_client():
    good, bad = [reply(0, 1.0), reply(2, 2.0)], reply(1, float("nan"))
    dropped = Cohort.stack([*good, bad], non_finite="drop")
    clean = Cohort.stack(good)
    assert dropped.client_ids == clean.client_ids
    assert torch.equal(dropped.updates, clean.updates)
    assert list(dropped.dropped) == [1]


def test_nobody_left_is_an_empty_round():
    with pytest.raises(EmptyRoundError, match="Round 4 has no contribution left.*Dropped"):
        Cohort.stack([reply(0, float("nan"))], round=4, non_finite="drop")


def test_a_missing_field_names_what_was_reported():
    with pytest.raises(MissingFieldError, match=r"`loss` was not reported.*\['update'\]"):
        _ = make_cohort([[1.0]]).losses


def test_layers_need_the_layout():
    with pytest.raises(MissingFieldError, match="layout="):
        _ = Cohort.stack([reply(0, 1.0)]).blocks


def test_unsorted_ids_are_refused_where_a_cohort_is_built_by_hand():
    with pytest.raises(ValueError, match="strictly increasing"):
        Cohort((1, 0), torch.ones(2), {})


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        (Reply(1, 1, {}), MissingFieldError, r"client 1 did not report \['update'\]"),
        (reply(1, 1.0), MalformedReplyError, r"shape \(2,\). Got \(1,\) from client 1"),
        (reply(1, 1.0, float("inf")), NonFiniteError, "`update` contains NaN or infinity"),
    ],
)
def test_screening_says_what_is_wrong_with_one_reply(
    bad: Reply, error: type[Exception], message: str
):
    problem = screen(bad, spec=spec(2), needs=("update",))
    assert isinstance(problem, error)
    with pytest.raises(error, match=message):
        raise problem


def test_screening_tolerates_fields_nobody_asked_for():
    assert screen(reply(1, 1.0, 2.0, mood=0.3), spec=spec(2), needs=("update",)) is None


@pytest.mark.parametrize("field", ["on_invalid", "on_empty"])
def test_a_policy_refuses_other_words(field: str):
    with pytest.raises(ValueError, match=f"`{field}` must be in"):
        Policy(**{field: "ignore"})


def test_a_reply_has_no_negative_number_of_examples():
    with pytest.raises(ValueError, match="num_examples"):
        Reply(0, -1, {})
