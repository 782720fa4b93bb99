"""Records of rounds, and what they add up to."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch

from fedaccord import CheckpointError, RoundResult, TrainingState
from fedaccord.experiments import measures, remarks, summarise
from fedaccord.experiments._records import keep_rounds, line_of, plain, read_records, record_of


def result(round: int = 0, **given: Any) -> RoundResult:
    training = TrainingState(round + 1, torch.zeros(1), None)
    values: dict[str, Any] = {"client_ids": (1, 2, 5), "diagnostics": {}, **given}
    return RoundResult(training, **values)


def test_a_record_tells_who_was_asked_answered_and_failed():
    record = record_of(
        result(
            failures={2: "`update` contains NaN"},
            without_examples=(5,),
            num_examples={1: 200, 2: 3, 5: 0},
        )
    )
    assert record["asked"] == [1, 2, 5]
    assert record["answered"] == [1]
    assert record["failures"] == {"2": "`update` contains NaN"}
    assert record["without_examples"] == [5]
    assert record["num_examples"] == {"1": 200, "2": 3, "5": 0}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_becomes_null(value: float):
    diagnostics = {"a": value, "b": torch.tensor([1.0, value]), "c": {3: value}}
    line = line_of(record_of(result(diagnostics=diagnostics)))
    assert json.loads(line)["diagnostics"] == {"a": None, "b": [1.0, None], "c": {"3": None}}


def test_a_record_is_one_line():
    line = line_of(record_of(result(failures={1: "two\nlines"})))
    assert line.count("\n") == 1
    assert line.endswith("\n")


def test_numbers_survive_exactly():
    value = 0.1 + 0.2
    assert json.loads(line_of({"round": 0, "x": value}))["x"] == value


def test_plain_leaves_words_alone():
    assert plain({"a": ("x", 1, True, None)}) == {"a": ["x", 1, True, None]}


def lines(*rounds: int, **given: Any) -> list[str]:
    return [line_of({"round": number, **record(**given)}) for number in rounds]


def test_a_torn_last_line_is_left_out(tmp_path: Path):
    file = tmp_path / "rounds.jsonl"
    file.write_text("".join(lines(0, 1)) + '{"rou', encoding="utf-8")
    assert [record["round"] for record in read_records(file)] == [0, 1]


def test_rounds_out_of_order_are_refused(tmp_path: Path):
    file = tmp_path / "rounds.jsonl"
    file.write_text("".join(lines(0, 2)), encoding="utf-8")
    with pytest.raises(CheckpointError, match="line 2 must be round 1. Found round 2."):
        read_records(file)


def test_keeping_rounds_leaves_the_lines_as_they_are(tmp_path: Path):
    file = tmp_path / "rounds.jsonl"
    # spaces that we would not write
    first = json.dumps({"round": 0, **record()}, indent=None, separators=(" , ", " : ")) + "\n"
    file.write_text(first + "".join(lines(1, 2)), encoding="utf-8")
    keep_rounds(file, 2)
    assert file.read_text(encoding="utf-8") == first + lines(1)[0]
    assert [path.name for path in tmp_path.iterdir()] == ["rounds.jsonl"]


@pytest.mark.parametrize(
    "line",
    [
        "3",
        "[]",
        '{"round":0}',
        '{"round":NaN}',
        "[" * 5000 + "]" * 5000,
        line_of({"round": 0, "asked": 3}),
    ],
    ids=["number", "list", "bare", "NaN", "deep", "short"],
)
def test_what_is_no_record_is_refused(line: str, tmp_path: Path):
    file = tmp_path / "rounds.jsonl"
    file.write_text(line.rstrip() + "\n", encoding="utf-8")
    with pytest.raises(CheckpointError, match="line 1 is no record of a round"):
        read_records(file)


@pytest.mark.parametrize(
    ("key", "value"),
    [("asked", 3), ("failures", []), ("empty", 0), ("diagnostics", None), ("evaluation", [])],
)
def test_a_record_with_a_value_of_the_wrong_kind_is_refused(key: str, value: Any, tmp_path: Path):
    file = tmp_path / "rounds.jsonl"
    file.write_text(lines(0, **{key: value})[0], encoding="utf-8")
    with pytest.raises(CheckpointError, match="line 1 is no record of a round: a value"):
        read_records(file)


def record(**given: Any) -> dict[str, Any]:
    base = {"asked": [0, 1], "answered": [0, 1], "failures": {}, "without_examples": []}
    return {**base, "empty": False, "diagnostics": {}, **given}


def test_a_summary_counts_everything_that_went_otherwise():
    summary = summarise(
        [
            record(answered=[0], failures={"1": "NaN"}),
            record(answered=[], failures={"1": "NaN", "0": "NaN"}, empty=True),
            record(answered=[0], without_examples=[1]),
            record(diagnostics={"outcome": "infeasible", "solver_fallbacks": 2}),
            record(diagnostics={"outcome": "projected", "solver_fallbacks": 0}),
            record(diagnostics={"floored_tasks": [1]}),
        ]
    )
    assert summary["contributions"] == {"asked": 12, "used": 8}
    assert summary["dropped"] == {"0": 1, "1": 2}
    assert summary["without_examples"] == {"1": 1}
    assert summary["empty_rounds"] == 1
    assert summary["outcomes"] == {"infeasible": 1, "projected": 1}
    assert summary["solver_fallbacks"] == 2
    assert summary["floored_rounds"] == 1
    assert remarks(summary) == [
        "3 contributions dropped (clients 0, 1)",
        "1 request without examples (clients 1)",
        "1 of 6 rounds empty: the model stayed",
        "1 of 6 rounds infeasible: no direction for every client, so the average was taken",
        "2 times a second solver had to be used",
        "1 of 6 rounds had a loss at its reference",
    ]


def evaluated(loss: float | None) -> dict[str, Any]:
    return record(evaluation={"tasks": {"mean_loss": loss}})


@pytest.mark.parametrize(
    ("losses", "said"),
    [
        ([2.3, None], "the test loss is not finite at the end: training diverged"),
        ([2.0, 1e30], "the test loss is 1e+30 at the end, from 2 at the first evaluation: tr"),
        ([1e30], "the test loss is 1e+30 at the end: training diverged"),
        ([0.5, 0.4, 5.1], "the test loss is 5.1 at the end, from 0.5 at the first evaluation"),
        ([None, 200.0], "the test loss is 200 at the end: training diverged"),
    ],
)
def test_a_loss_that_ended_far_above_its_beginning_is_remarked(
    losses: list[float | None], said: str
):
    (remark,) = remarks(summarise([evaluated(loss) for loss in losses]))
    assert remark.startswith(said)


@pytest.mark.parametrize("losses", [[2.3, 0.5], [0.5, 4.9], [2.3], [None, 2.3]])
def test_a_loss_of_usual_size_is_not_remarked(losses: list[float | None]):
    assert remarks(summarise([evaluated(loss) for loss in losses])) == []


def test_an_uneventful_run_needs_no_remarks():
    assert remarks(summarise([record(), record(diagnostics={"outcome": "projected"})])) == []


def test_a_number_that_was_not_finite_is_shown_as_that():
    tasks = {"tasks": ["a", "b"], "accuracies": [0.5, 0.7], "mean_accuracy": 0.6}
    tasks |= {"worst_accuracy": 0.5, "mean_loss": None, "hypervolume": 0.0}
    tasks |= {"reference": 3.0, "concordance": None}
    shown = {measure.name: str(measure) for measure in measures({"tasks": tasks})}
    assert shown["MeanLoss"] == "not finite"
    assert shown["HV"] == "0.000"
    assert shown["a"] == "50.0 %"


def test_rounds_without_a_step_are_told():
    rounds = [record(diagnostics={"outcome": outcome}) for outcome in ("moved", "stationary")]
    assert remarks(summarise(rounds)) == ["1 of 2 rounds stationary: the rule's step was zero"]
