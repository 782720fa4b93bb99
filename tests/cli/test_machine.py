"""``--json``: one value on standard output and nothing else; ``verify`` and completion."""

from __future__ import annotations

import json
import math
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from fedaccord.cli import app
from fedaccord.cli._comparison import Comparison
from fedaccord.cli._show import console
from fedaccord.data import list_datasets
from fedaccord.experiments import (
    FolderError,
    Run,
    list_presets,
    measures,
    model_factories,
    partition_functions,
    rule_classes,
    to_table,
)

TINY = ("--dataset", "heart", "--rounds", "2", "--workers", "1")


def call(*arguments: str, env: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(app, list(arguments), env=env, prog_name="fedaccord")


def refuse(word: str) -> None:
    raise AssertionError(f"{word} is not JSON")


def answer(*arguments: str, code: int = 0) -> Any:
    result = call(*arguments, "--json")
    assert result.exit_code == code
    assert result.stderr == ""
    return json.loads(result.stdout, parse_constant=refuse)


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_run_for_programs_is_what_its_folder_holds():
    told = answer("run", "fedpcd", *TINY, "--out", "a")
    run = Run.read("a")
    assert told["folder"] == "a"
    assert told["name"] == "FedPCD"
    assert told["finished"]
    assert told["experiment"] == to_table(run.experiment)
    assert told["summary"] == json.loads(Path("a/summary.json").read_text("utf-8"))
    assert told["remarks"] == []


def test_a_comparison_for_programs_has_the_numbers_of_the_table():
    seeds = ("--seed", "0", "--seed", "1")
    told = answer("compare", "fedavg", "fedpcd", *TINY, *seeds, "--out", "c")
    assert told["seeds"] == [0, 1]
    assert [rule["name"] for rule in told["rules"]] == ["FedAvg", "FedPCD"]
    folders = [run["folder"] for run in told["rules"][1]["runs"]]
    assert folders == ["c/fedpcd-seed-0", "c/fedpcd-seed-1"]
    first = told["rules"][1]["measures"][0]
    values = [measures(Run.read(folder).final)[0].value for folder in folders]
    assert first["name"] == "test set"
    assert first["mean"] == pytest.approx(sum(values) / 2)
    # the sample deviation of two numbers is their distance divided by the square root of two
    assert first["deviation"] == pytest.approx(abs(values[0] - values[1]) / math.sqrt(2))


def test_a_failure_of_a_run_is_told_to_programs():
    result = call("run", "fedavg", *TINY, "--lr", "3e38", "--steps", "20", "--out", "a", "--json")
    assert result.exit_code == 1
    assert result.stdout == ""
    error = json.loads(result.stderr)
    assert error["exit_code"] == 1
    assert error["error"].startswith("Every contribution must be finite.")


def test_the_lists_for_programs_hold_every_name():
    told = answer("list")
    found = {kind: {entry["name"] for entry in entries} for kind, entries in told.items()}
    assert found == {
        "rules": set(rule_classes()),
        "datasets": set(list_datasets()),
        "models": set(model_factories()),
        "partitions": set(partition_functions()),
        "presets": set(list_presets()),
    }


def test_a_rule_for_programs_has_its_defaults():
    (entry,) = [entry for entry in answer("list", "rules")["rules"] if entry["name"] == "FedHV"]
    assert entry["required"] == ["reference"]
    assert entry["defaults"]["floor"] == 1e-6
    assert entry["paper"] == rule_classes()["FedHV"].paper


def test_presets_are_listed_with_their_duration():
    shown = call("list", "presets").stdout
    assert "about 0.5 min on two cores" in shown
    assert "Four hospitals" in shown


def test_verify_lists_every_check_and_ends_with_0():
    call("run", "fedpcd", *TINY, "--out", "a")
    result = call("verify", "a", "--rerun", "2")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "a"
    assert all(line.startswith("  good ") for line in lines[1:-1])
    assert lines[-1] == "Nothing wrong."


def test_verify_ends_with_1_if_something_is_wrong():
    call("run", "fedpcd", *TINY, "--out", "a")
    Path("a/model.safetensors").unlink()
    result = call("verify", "a")
    assert result.exit_code == 1
    assert "  bad  model         a/model.safetensors is missing.\n" in result.stdout
    assert result.stdout.endswith("1 of 7 checks found something wrong.\n")


def test_verify_looks_into_a_comparison():
    call("compare", "fedavg", "fedpcd", *TINY, "--out", "c")
    Path("c/fedpcd/summary.json").unlink()
    told = answer("verify", "c", code=1)
    assert told["wrong"] == 1
    assert [run["folder"] for run in told["runs"]] == ["c/fedavg", "c/fedpcd"]
    (bad,) = [check for check in told["runs"][1]["checks"] if check["outcome"] == "bad"]
    assert bad["name"] == "summary"


def test_a_run_described_in_a_file_is_the_run_of_the_call():
    Path("e.toml").write_text(
        'preset = "heart"\nrounds = 2\nworkers = 1\n[rule]\nname = "fedpcd"\ntau = 0.3\n', "utf-8"
    )
    call("run", "e.toml", "--set", "local.lr=0.1", "--out", "a")
    call("run", "fedpcd:tau=0.3,lr=0.1", *TINY, "--out", "b")
    assert Path("a/experiment.toml").read_bytes() == Path("b/experiment.toml").read_bytes()
    assert Path("a/rounds.jsonl").read_bytes() == Path("b/rounds.jsonl").read_bytes()


def test_the_configuration_of_a_folder_is_a_file_to_run():
    call("run", "fedpcd", *TINY, "--out", "a")
    call("run", "a/experiment.toml", "--out", "b")
    assert Path("a/rounds.jsonl").read_bytes() == Path("b/rounds.jsonl").read_bytes()


def test_every_value_can_be_set():
    sets = {
        "rounds": "1",
        "workers": "1",
        "sampler.count": "2",
        "local.steps": "3",
        "rule.server.tau": "0.3",
        "rule.reference": "[5]",
        "policy.on_empty": "skip",
        "device": "cpu:0",
    }
    arguments = [part for key, value in sets.items() for part in ("--set", f"{key}={value}")]
    told = answer("run", "fedhv:server=fedpcd", "--dataset", "heart", *arguments, "--out", "a")
    found = told["experiment"]
    assert (found["rounds"], found["workers"], found["device"]) == (1, 1, "cpu:0")
    assert found["sampler"] == {"count": 2}
    assert found["local"]["steps"] == 3
    assert "epochs" not in found["local"]
    assert found["rule"]["server"]["tau"] == 0.3
    assert found["rule"]["reference"] == [5.0]
    assert found["policy"]["on_empty"] == "skip"


def test_a_run_can_be_made_longer():
    call("run", "fedpcd", *TINY, "--out", "a")
    told = answer("run", "--resume", "--out", "a", "--rounds", "3")
    assert told["summary"]["rounds"] == 3


def test_a_comparison_can_be_made_longer():
    call("compare", "fedavg", "fedpcd", *TINY, "--out", "c")
    told = answer("compare", "--resume", "--out", "c", "--rounds", "3")
    assert [rule["runs"][0]["summary"]["rounds"] for rule in told["rules"]] == [3, 3]


def test_a_comparison_folder_taken_since_it_was_checked_is_refused():
    call("compare", "fedavg", *TINY, "--out", "first")
    experiments = [Run.read("first/fedavg").experiment]
    late = Comparison.of(["FedAvg"], experiments, seeds=(0,), folder=Path("c"))
    late.prepare(resume=False)
    call("compare", "fedpcd", *TINY, "--out", "c")
    with pytest.raises(FolderError, match="`c` exists and is not empty"):
        late.carry_out(console(quiet=True), resume=False)
    assert not Path("c/fedavg").exists()


@pytest.mark.slow
def test_an_interrupt_is_told_to_programs():
    command = [sys.executable, "-m", "fedaccord", "run", "fedavg", "--dataset", "heart"]
    command += ["--rounds", "100000", "--evaluate-every", "0", "--workers", "1", "--out", "a"]
    process = subprocess.Popen([*command, "--json"], stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while not (Path("a/rounds.jsonl").exists() and Path("a/rounds.jsonl").stat().st_size > 1000):
        assert time.monotonic() < deadline
        time.sleep(0.01)  # the process says nothing while it works
    process.send_signal(signal.SIGINT)
    shown, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert shown == b""
    assert json.loads(errors) == {
        "error": "Interrupted. Go on with: fedaccord run --resume --out a",
        "exit_code": 130,
    }


@pytest.mark.slow
@pytest.mark.parametrize("module", ["clients", "data", "experiments", "rules", "checkpoint"])
def test_any_module_may_be_imported_first(module: str):
    subprocess.run([sys.executable, "-c", f"import fedaccord.{module}"], check=True)


def completed(words: str, *, at: int) -> set[str]:
    env = {"_FEDACCORD_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(at)}
    lines = call(env=env).stdout.splitlines()
    return {line.split(",", 1)[1] for line in lines}


@pytest.mark.parametrize(
    ("words", "at", "found"),
    [
        ("fedaccord ver", 1, {"verify"}),
        ("fedaccord run fedpc", 2, {"fedpcd"}),
        ("fedaccord compare fedavg FEDHV", 3, {"fedhv"}),
        ("fedaccord run fedavg --dataset hea", 4, {"heart"}),
        ("fedaccord run fedavg --partition stra", 4, {"strata"}),
        ("fedaccord run fedavg --model logi", 4, {"logistic"}),
        ("fedaccord run fedavg --preset hea", 4, {"heart"}),
        ("fedaccord list pre", 2, {"presets"}),
    ],
)
def test_names_are_completed(words: str, at: int, found: set[str]):
    assert completed(words, at=at) == found


def test_where_no_rule_begins_so_the_shell_completes_a_file():
    env = {"COMP_WORDS": "fedaccord run my", "COMP_CWORD": "2"}
    result = call(env={"_FEDACCORD_COMPLETE": "bash_complete", **env})
    assert result.stdout == "file,my\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.skipif(shutil.which("bash") is None, reason="bash tells which version it is")
def test_a_completion_script_asks_the_program(shell: str):
    shown = call("completion", shell)
    assert shown.exit_code == 0
    assert f"_FEDACCORD_COMPLETE={shell}_complete" in shown.stdout


@pytest.mark.slow
def test_the_help_does_without_pytorch():
    script = "import sys; from fedaccord.cli import app; print('torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"
