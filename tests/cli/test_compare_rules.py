"""Comparing many rules: presets that name them, gains over training alone, the figure."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from fedaccord.cli import app
from fedaccord.experiments import Run, read_preset, rule_classes


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


HEART = ("--dataset", "heart", "--rounds", "2", "--workers", "1")


def test_what_clients_gain_over_training_alone_is_shown():
    result = call("compare", "fedavg", "localonly", *HEART, "--out", "a")
    assert result.exit_code == 0
    joined = np.array(Run.read("a/fedavg").final["clients"]["values"])
    (own,) = [
        block
        for block in Run.read("a/localonly").final["also"]
        if block["summary"]["label"]["model"] == "personal"
    ]
    gains = joined - np.array(own["values"])
    (row,) = [line for line in result.stdout.splitlines() if "FedAvg" in line and "points" in line]
    assert row.split() == [
        "FedAvg",
        "global",
        f"{100 * gains.mean():+.1f}",
        "points",
        f"{100 * gains.min():+.1f}",
        "points",
        *f"{(gains < 0).sum()} of 4".split(),
    ]


def test_without_training_alone_there_is_no_gain_to_show():
    assert "Gain" not in call("compare", "fedavg", "fedpcd", *HEART, "--out", "a").stdout


def test_parts_of_the_clients_that_train_are_shown_of_a_single_rule_only():
    some = (*HEART, "--clients-per-round", "2")
    assert "never-sampled" in call("run", "fedavg", *some, "--rounds", "1", "--out", "a").stdout
    compared = call("compare", "fedavg", "fedpcd", *some, "--rounds", "1", "--out", "b").stdout
    assert "never-sampled" not in compared


def test_a_figure_of_the_comparison_can_be_drawn():
    result = call("compare", "fedavg", "fedpcd", *HEART, "--out", "a", "--figure", "a.svg")
    assert result.exit_code == 0
    picture = Path("a.svg").read_text("utf-8")
    assert picture.startswith("<?xml")


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("a.gif", "`--figure` must end in .png or .svg. Got `a.gif`."),
        ("no/a.png", "There is no folder `no` to draw `a.png` into."),
    ],
)
def test_a_figure_that_cannot_be_drawn_is_refused_before_the_first_round(file: str, message: str):
    result = call("compare", "fedavg", "fedpcd", *HEART, "--out", "a", "--figure", file)
    assert result.exit_code == 2
    assert result.stderr == f"Error: {message}\n"
    assert not Path("a").exists()


def test_the_fairness_preset_names_every_rule_for_clients():
    named = {rule.partition(":")[0] for rule in read_preset("fairness").rules}
    # rules for tasks, and optimisers that stand for the others of their kind
    left_out = {"FedHV", "Uniform", "ServerYogi", "ServerAdagrad"}
    assert named == {name.casefold() for name in set(rule_classes()) - left_out}


@pytest.mark.slow
def test_the_fairness_preset_runs():
    result = call(
        *(
            "compare",
            "--preset",
            "fairness",
            "--out",
            "a",
            "--rounds",
            "2",
            "--evaluate-every",
            "0",
        ),
        *("--clients", "6", "--samples-per-client", "20", "--clients-per-round", "3"),
    )
    assert result.exit_code == 0, result.stderr
    assert len(list(Path("a").glob("*/summary.json"))) == len(read_preset("fairness").rules)


def test_a_preset_without_rules_leaves_them_to_the_call():
    result = call("compare", "--preset", "heart", "--out", "a")
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: `compare` needs rules")


def test_a_rule_that_fails_does_not_keep_the_others_from_running():
    # the server's step grows a hundredfold a round
    rules = ("servermomentum:rule=fedavg,server_lr=1e38", "fedavg")
    result = call("compare", *rules, *HEART, "--rounds", "9", "--out", "a")
    assert result.exit_code == 1
    assert "FedAvg " in result.stdout
    last = result.stderr.splitlines()[-1]
    assert last.startswith(
        "Error: 1 of 2 runs failed, and rules that lack one are not in the table: "
        "ServerMomentum, seed 0: "
    )
    assert not (Path("a") / "servermomentum" / "summary.json").exists()


def test_failed_runs_are_told_to_programs_too():
    rules = ("servermomentum:rule=fedavg,server_lr=1e38", "fedavg")
    result = call("compare", *rules, *HEART, "--rounds", "9", "--out", "a", "--json")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert [rule["name"] for rule in found["rules"]] == ["FedAvg"]
    assert found["rules"][0]["runs"][0]["folder"] == "a/fedavg"
    assert [each["name"] for each in found["failed"]] == ["ServerMomentum"]


def test_where_every_run_fails_there_is_no_table():
    rules = ("servermomentum:rule=fedavg,server_lr=1e38",)
    result = call("compare", *rules, *HEART, "--rounds", "9", "--out", "a")
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1].startswith("Error: Every run failed. ServerMomentum, ")
