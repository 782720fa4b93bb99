"""The cases as far as they reach the command line, on the smallest data that are shipped."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from safetensors.torch import load_file

from fedaccord.cli import app

RULES = [
    "fedavg",
    "fedpcd",
    "fedpcd:infeasible=protect,tau=0.3",
    "uniform:report=all",
    "fedhv:reference=[5]",
    "fedhv:reference=[5],server=fedpcd",
]
every_rule = pytest.mark.parametrize("rule", RULES)

# no client's update stays within float32 at this rate
TOO_FAST = ("--lr", "3e38", "--steps", "20", "--rounds", "2")
IID = ("--partition", "iid", "--clients", "100", "--rounds", "1")


def run(folder: Path, rule: str, *options: str) -> Result:
    call = ["run", rule, "--dataset", "heart", "--workers", "1", *options, "--out", str(folder)]
    return CliRunner().invoke(app, call)


def refused(result: Result, code: int = 2) -> str:
    """The one line of an error that was foreseen."""
    assert result.exit_code == code, result.output
    assert isinstance(result.exception, SystemExit)  # not an exception on its way out
    (line,) = result.stderr.splitlines()  # one line
    return line


def done(result: Result) -> str:
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stdout


def records(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "rounds.jsonl").read_text().splitlines()]


@every_rule
def test_c01_a_round_without_contributions_is_one_line_that_names_it(rule: str, tmp_path: Path):
    line = refused(run(tmp_path / "a", rule, *TOO_FAST, "--on-invalid", "drop"), code=1)
    assert re.search("[Rr]ound 0.*client 0", line)


@every_rule
def test_c01_skipped_rounds_are_counted_and_the_model_stays(rule: str, tmp_path: Path):
    policy = ("--on-invalid", "drop", "--on-empty", "skip")
    out = done(run(tmp_path / "a", rule, *TOO_FAST, *policy))
    assert "8 contributions dropped (clients 0, 1, 2, 3)" in out
    assert "2 of 2 rounds empty: the model stayed" in out
    summary = json.loads((tmp_path / "a" / "summary.json").read_text())
    assert summary["dropped"] == {"0": 2, "1": 2, "2": 2, "3": 2}
    assert summary["empty_rounds"] == 2
    assert [record["empty"] for record in records(tmp_path / "a")] == [True, True]


@every_rule
def test_c04_one_client_a_round(rule: str, tmp_path: Path):
    out = done(run(tmp_path / "a", rule, "--clients-per-round", "1", "--rounds", "2"))
    assert "1 of 4 in each round" in out
    assert [len(record["asked"]) for record in records(tmp_path / "a")] == [1, 1]


@every_rule
def test_c07_one_line_names_client_and_tensor_and_no_model_is_saved(rule: str, tmp_path: Path):
    line = refused(run(tmp_path / "a", rule, *TOO_FAST), code=1)
    assert re.search("`update`.*`weight`.*client 0", line)
    assert not (tmp_path / "a" / "model.safetensors").exists()
    saved = load_file(tmp_path / "a" / "training.safetensors")
    assert all(value.isfinite().all() for value in saved.values())


@every_rule
@pytest.mark.parametrize("lr", ["1e37", "1e38"])
def test_c07_a_loss_that_is_infinite_is_no_bare_error(rule: str, lr: str, tmp_path: Path):
    options = ("--lr", lr, "--steps", "20", "--rounds", "2", "--on-invalid", "drop")
    result = run(tmp_path / "a", rule, *options, "--on-empty", "skip")
    assert isinstance(result.exception, SystemExit | None)


@pytest.mark.parametrize("option", [("--samples-per-client", "100"), ("--clients", "487")], ids=str)
def test_c08_impossible_splits_are_refused_at_once(option: tuple[str, str], tmp_path: Path):
    before = time.perf_counter()
    base = ("--clients", "10", "--samples-per-client", "1", "--alpha", "0.1")
    call = ("--partition", "client-dirichlet", *base, *option)
    line = refused(run(tmp_path / "a", "fedavg", *call))
    assert time.perf_counter() - before < 2
    assert "486" in line  # how many there are
    assert "at most" in line  # what is possible
    assert not (tmp_path / "a").exists()


@every_rule
def test_c09_clients_of_one_sample_run_and_are_counted(rule: str, tmp_path: Path):
    done(run(tmp_path / "a", rule, *IID, "--clients", "486", "--fraction", "0.02"))
    (record,) = records(tmp_path / "a")
    assert record["num_examples"] == {str(client): 1 for client in record["asked"]}


@every_rule
def test_c11_the_same_call_writes_the_same_bytes(rule: str, tmp_path: Path):
    options = (*IID, "--fraction", "0.04", "--rounds", "3", "--seed", "7")
    done(run(tmp_path / "a", rule, *options))
    done(run(tmp_path / "b", rule, *options, "--workers", "2"))
    for name in ("rounds.jsonl", "model.safetensors", "training.safetensors", "summary.json"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes(), name


@pytest.mark.parametrize(
    ("fraction", "clients", "count"),
    [("0.29", "100", 29), ("0.57", "100", 57), ("0.1", "5", 1), ("0.1", "3", 1), ("1.0", "7", 7)],
)
def test_c12_the_header_shows_the_number_used(
    fraction: str, clients: str, count: int, tmp_path: Path
):
    options = (*IID, "--clients", clients, "--fraction", fraction)
    assert f"{count} of {clients} in each round" in done(run(tmp_path / "a", "fedavg", *options))
    assert [len(record["asked"]) for record in records(tmp_path / "a")] == [count]


@pytest.mark.parametrize(
    ("option", "value", "allowed"),
    [
        ("--fraction", "0", "(0, 1]"),
        ("--fraction", "1.5", "(0, 1]"),
        ("--clients-per-round", "101", "[1, 100]"),
        ("--clients-per-round", "0", "at least 1"),
    ],
)
def test_c12_impossible_numbers_are_refused_at_the_start(
    option: str, value: str, allowed: str, tmp_path: Path
):
    line = refused(run(tmp_path / "a", "fedavg", *IID, option, value))
    assert allowed in line
    assert not (tmp_path / "a").exists()
