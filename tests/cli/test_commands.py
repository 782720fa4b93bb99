"""What the commands do and print."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from fedaccord import StalledWarning
from fedaccord.cli import app
from fedaccord.cli._show import warnings_as_lines
from fedaccord.data import list_datasets
from fedaccord.experiments import (
    Run,
    hyperparameters,
    model_factories,
    partition_functions,
    rule_classes,
)

HEART = ("--dataset", "heart", "--rounds", "4", "--clients-per-round", "2", "--workers", "1")
# digits-fashion-mini, as small as it gets
TASKS = (
    *("--dataset", "digits-fashion-mini", "--rounds", "2", "--clients", "3"),
    *("--samples-per-client", "12", "--clients-per-round", "2", "--steps", "1"),
    *("--calibration-rounds", "1", "--workers", "1"),
)


def call(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def records(folder: str) -> list[dict[str, object]]:
    lines = (Path(folder) / "rounds.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_without_a_command_the_help_is_shown():
    result = call()
    assert result.exit_code == 0
    assert all(command in result.stdout for command in ("run", "compare", "list", "demo"))


@pytest.mark.parametrize("rule", rule_classes())
def test_the_list_shows_every_rule_with_hyperparameters_and_paper(rule: str):
    shown = call("list", "rules").stdout
    part = shown[shown.index(f"  {rule}\n") :].split("\n  ")[1:5]
    text = "\n".join(part)
    assert rule_classes()[rule].paper in text
    assert all(name in text for name in hyperparameters(rule_classes()[rule]))


def test_the_list_shows_every_other_name():
    shown = call("list").stdout
    for name in (*list_datasets(), *model_factories(), *partition_functions()):
        assert f"  {name}\n" in shown


def test_one_kind_can_be_listed_alone():
    shown = call("list", "datasets").stdout
    assert "  heart\n" in shown
    assert "  FedPCD\n" not in shown


def test_a_run_says_what_it_will_do_and_what_came_out():
    result = call("run", "fedpcd:tau=0.05", *HEART, "--seed", "3", "--out", "a")
    assert result.exit_code == 0
    for words in (
        "heart: UCI heart disease, four hospitals",
        "2 of 4 in each round",
        "FedPCD (tau=0.05, history=10,",
        "lr 0.05, batch 16, 1 epoch",
        "4, evaluated every 5",
        "worst 10 %",
        "after 4 rounds",
        "all 8 contributions used, nothing dropped",
    ):
        assert words in result.stdout


def test_clients_with_names_are_shown_by_name():
    shown = call("run", "fedavg", *HEART, "--out", "a").stdout
    assert "cleveland (104 rows)" in shown
    accuracy = Run.read("a").final["clients"]["values"][0]
    assert f"{100 * accuracy:.1f} %" in shown[shown.index("accuracy at") :]


def test_a_fraction_is_shown_as_the_number_of_clients_it_means():
    # C12: 0.29 of 100 are 29 clients, although 0.29 * 100 is a little less in binary
    options = ("--partition", "iid", "--clients", "100", "--fraction", "0.29", "--rounds", "1")
    result = call("run", "fedavg", "--dataset", "heart", *options, "--out", "a")
    assert "29 of 100 in each round" in result.stdout
    assert len(records("a")[0]["asked"]) == 29


def test_off_a_terminal_nothing_but_the_result_is_printed():
    result = call("run", "fedavg", *HEART, "--out", "a")
    assert result.stderr == ""
    assert "\x1b" not in result.stdout
    assert "\r" not in result.stdout


def test_the_folder_of_a_run_holds_everything():
    call("run", "fedavg", *HEART, "--out", "a")
    assert sorted(path.name for path in Path("a").iterdir()) == [
        "environment.json",
        "experiment.toml",
        "model.safetensors",
        "partition.json",
        "rounds.jsonl",
        "split.json",
        "summary.json",
        "timing.json",
        "training.safetensors",
    ]


def test_without_a_folder_the_name_says_what_was_run():
    call("run", "fedavg", *HEART)
    assert Path("runs/heart-fedavg/summary.json").is_file()


def test_options_reach_the_run():
    options = ("--lr", "0.2", "--batch-size", "8", "--steps", "2", "--momentum", "0.5")
    more = (
        "--weight-decay",
        "0.01",
        "--lr-decay",
        "0.9",
        "--server-lr",
        "0.5",
        "--on-empty",
        "skip",
    )
    call("run", "fedavg", *HEART, *options, *more, "--evaluate-every", "1", "--out", "a")
    experiment = Run.read("a").experiment
    local = experiment.local
    assert (local.lr, local.batch_size, local.steps, local.epochs) == (0.2, 8, 2, None)
    assert (local.momentum, local.weight_decay, local.lr_decay) == (0.5, 0.01, 0.9)
    assert experiment.rule.options["server_lr"] == 0.5
    assert experiment.policy.on_empty == "skip"
    assert all("evaluation" in record for record in records("a"))


def test_a_finished_run_can_be_resumed_from_its_folder_alone():
    call("run", "fedpcd", *HEART, "--out", "a")
    before = Path("a/rounds.jsonl").read_bytes()
    assert call("run", "--resume", "--out", "a").exit_code == 0
    assert Path("a/rounds.jsonl").read_bytes() == before


def test_a_run_can_be_resumed_with_the_same_call():
    call("run", "fedhv", *TASKS, "--out", "a")
    assert call("run", "fedhv", *TASKS, "--out", "a", "--resume").exit_code == 0


def test_the_same_call_leaves_the_same_bytes():
    for folder in ("a", "b"):
        call("run", "fedpcd", *HEART, "--out", folder)
    for name in ("rounds.jsonl", "model.safetensors", "training.safetensors", "experiment.toml"):
        assert (Path("a") / name).read_bytes() == (Path("b") / name).read_bytes()


def test_rules_are_compared_on_the_same_split_and_schedule():
    result = call("compare", "fedavg", "fedpcd", "fedpcd:tau=0.3", *HEART, "--out", "c")
    assert result.exit_code == 0
    folders = ["c/fedavg", "c/fedpcd", "c/fedpcd-tau-0.3"]
    schedules = [[record["asked"] for record in records(folder)] for folder in folders]
    assert schedules[0] == schedules[1] == schedules[2]
    splits = [(Path(folder) / "split.json").read_bytes() for folder in folders]
    assert splits[0] == splits[1] == splits[2]
    first = [record["evaluation"] for record in records(folders[0]) if "evaluation" in record]
    last = [record["evaluation"] for record in records(folders[2]) if "evaluation" in record]
    assert first != last


def test_a_comparison_shows_one_row_for_each_rule():
    result = call("compare", "fedavg", "fedpcd", *HEART, "--out", "c")
    table = result.stdout[result.stdout.index(" rule ") : result.stdout.index("Global model")]
    rows = [line for line in table.splitlines() if line.startswith((" FedAvg", " FedPCD"))]
    assert len(rows) == 2
    assert all(row.count("%") == 4 for row in rows)


def test_several_seeds_give_mean_and_deviation():
    result = call("compare", "fedavg", *HEART, "--seed", "0", "--seed", "1", "--out", "c")
    assert "±" in result.stdout
    accuracies = [
        Run.read(f"c/fedavg-seed-{seed}").final["clients"]["summary"]["mean"] for seed in (0, 1)
    ]
    # the sample deviation of two numbers is their distance divided by the square root of two
    deviation = abs(accuracies[0] - accuracies[1]) / 2**0.5
    assert f"{50 * sum(accuracies):.1f} % ± {100 * deviation:.1f}" in result.stdout


def test_local_training_can_differ_between_compared_rules():
    call("compare", "uniform:lr=0.4,server_lr=1.2", "fedhv:lr=0.3", *TASKS, "--out", "c")
    uniform, fedhv = (Run.read(f"c/{name}").experiment for name in ("uniform", "fedhv"))
    assert (uniform.local.lr, uniform.rule.options["server_lr"]) == (0.4, 1.2)
    assert (fedhv.local.lr, fedhv.rule.options["server_lr"]) == (0.3, 1.0)


def test_a_comparison_is_resumed_from_its_folder_alone():
    call("compare", "fedavg", "fedpcd", *HEART, "--out", "c")
    before = {path: path.read_bytes() for path in Path("c").rglob("rounds.jsonl")}
    for path in Path("c/fedpcd").iterdir():
        if path.name != "experiment.toml":
            path.unlink()  # as if it had been interrupted before this run began
    result = call("compare", "--resume", "--out", "c")
    assert result.exit_code == 0
    assert {path: path.read_bytes() for path in Path("c").rglob("rounds.jsonl")} == before


def test_the_rule_inside_a_rule_is_trained_with():
    result = call("run", "fedhv:server=(fedpcd:tau=0.3)", *TASKS, "--out", "a")
    assert result.exit_code == 0
    seen = records("a")[0]["diagnostics"]
    assert {"outcome", "task_weights"} <= set(seen)


def test_dropped_contributions_are_counted_at_the_end():
    options = (
        "--lr",
        "1e38",
        "--weight-decay",
        "100",
        "--on-invalid",
        "drop",
        "--on-empty",
        "skip",
    )
    result = call("run", "fedavg", *HEART, *options, "--out", "a")
    assert result.exit_code == 0
    assert "8 contributions dropped (clients 0, 1, 3)" in result.stdout
    assert "4 of 4 rounds empty: the model stayed" in result.stdout


def test_a_warning_takes_one_line_and_is_shown_once():
    screen = io.StringIO()
    with warnings_as_lines(Console(file=screen, width=200)):
        for stalled in (3, 4):
            warnings.warn(f"{stalled} rounds in a row", StalledWarning, stacklevel=1)
    assert screen.getvalue() == "Warning: 3 rounds in a row\n"


@pytest.mark.slow
def test_a_demo_can_be_repeated_in_its_folder():
    call_ = ("demo", "--rounds-scale", "0.02", "--out", "d")
    results, figures = [], []
    for _ in range(2):
        results.append(call(*call_))
        figures.append([(Path("d") / name).read_bytes() for name in ("demo.png", "demo.svg")])
    assert [result.exit_code for result in results] == [0, 0]
    assert results[0].stdout == results[1].stdout
    assert figures[0] == figures[1]
    report = Path("d/report.txt").read_text(encoding="utf-8")
    assert "86.41 / 76.98" in report
    assert "86.35 / 77.03" in report
    assert call(*call_, "--no-figure").exit_code == 0
    assert not list(Path("d").glob("demo.??g"))  # an earlier demo's would not fit the report


@pytest.mark.slow
def test_ctrl_c_ends_with_130_and_the_run_goes_on_to_the_same_bytes():
    command = [sys.executable, "-m", "fedaccord", "run", "fedpcd", "--dataset", "heart"]
    command += ["--rounds", "300", "--evaluate-every", "0", "--workers", "1", "--out", "a"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not (Path("a/rounds.jsonl").exists() and Path("a/rounds.jsonl").stat().st_size > 5000):
        assert time.monotonic() < deadline
        time.sleep(0.01)  # the process says nothing while it works
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors.decode().endswith("Interrupted. Go on with: fedaccord run --resume --out a\n")
    done = len(records("a"))
    assert 0 < done < 300
    assert call("run", "--resume", "--out", "a").exit_code == 0
    call("run", "fedpcd", *command[5:-2], "--out", "b")
    for name in ("rounds.jsonl", "model.safetensors"):
        assert (Path("a") / name).read_bytes() == (Path("b") / name).read_bytes()


def test_every_rule_is_introduced_in_words():
    first_lines = [rule.__doc__.strip().splitlines()[0] for rule in rule_classes().values()]
    assert not [line for line in first_lines if ":math:" in line or not line.endswith(".")]
