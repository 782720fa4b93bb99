"""Mistakes that a user can foresee: one line, the exit code, nothing trained or written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fedaccord.cli import app
from fedaccord.cli._errors import one_line
from fedaccord.experiments import RunFolder

TINY = ("--dataset", "heart", "--rounds", "2")


def call(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            "run fedpdc",
            "Unknown rule `fedpdc`. Did you mean `FedPCD`? Known: `AFL`, `CRAFT`, `Ditto`, "
            "`FedAvg`, `FedDyn`, `FedFV`, `FedHEAL`, `FedHV`, `FedLF`, `FedMGDAPlus`, `FedPCD`, "
            "`FedPW`, `FedProx`, `GIFAIR`, `LocalOnly`, `PropFair`, `QFedAvg`, `SCAFFOLD`, "
            "`ServerAdagrad`, `ServerAdam`, `ServerMomentum`, `ServerYogi`, `TERM`, `Uniform`.",
        ),
        (
            "run fedpcd:tua=0.1",
            "Unknown hyperparameter of FedPCD `tua`. Did you mean `tau`? Known: `batch_size`, "
            "`drop_last`, `epochs`, `eps`, `history`, `history_dtype`, `infeasible`, `lr`, "
            "`lr_decay`, `max_norm`, `momentum`, `normalize`, `primary`, `server_lr`, `steps`, "
            "`tau`, `weight_decay`.",
        ),
        ("run fedpcd:tau=3", "`tau` must be in [0, 1]. Got 3.0."),
        ("run fedpcd:tau=abc", "`tau` must be a number or a list of numbers. Got 'abc'."),
        (
            "run fedpcd:tau",
            "A rule is written `name:key=value,key=value`. Got 'fedpcd:tau'.",
        ),
        (
            "run fedavg --dataset fashion-mine",
            "Unknown dataset `fashion-mine`. Did you mean `fashion-mini`? Known: ",
        ),
        (
            "run fedavg --partition stratta",
            "Unknown partition `stratta`. Did you mean `strata`? Known: ",
        ),
        (
            "run fedavg --model lenett",
            "Unknown model `lenett`. Did you mean `lenet`? Known: ",
        ),
        (
            "run fedavg --model logistic",
            "Model `logistic` does not fit dataset `fashion-mini` with inputs of shape "
            "[1, 28, 28] and 1 task. Choose another model.",
        ),
        ("run fedavg --fraction 0", "`fraction` must be in (0, 1]. Got 0.0."),
        ("run fedavg --fraction 1.5", "`fraction` must be in (0, 1]. Got 1.5."),
        (
            "run fedavg --clients-per-round 101",
            "Clients a round: `count` must be in [1, 100], the number of clients. Got 101.",
        ),
        (
            "run fedavg --clients-per-round 5 --fraction 0.1",
            "Give either `count` or `fraction`. Got 5 and 0.1.",
        ),
        ("run fedavg --rounds 0", "`rounds` must be a whole number of at least 1. Got 0."),
        ("run fedavg --rounds ten", "Invalid value for '--rounds': 'ten' is not a valid integer."),
        ("run fedavg --lr -1", "`lr` must be positive and finite. Got -1.0."),
        ("run fedavg --server-lr 0", "`server_lr` must be positive and finite. Got 0.0."),
        (
            "run fedavg --epochs 2 --steps 3",
            "Give `epochs` or `steps`, not both. Got 2 and 3.",
        ),
        (
            "run fedavg --clients 1000",
            "1000 clients with 48 samples each need 48000 samples. Got 6000. Use "
            "`samples_per_client` of at most 6 or at most 125 clients.",
        ),
        ("run fedavg --alpha 0", "`alpha` must be positive and finite. Got 0.0."),
        (
            "run fedavg --partition natural",
            "Partition `natural` needs data that come by client. `fashion-mini` does not; choose "
            "another partition.",
        ),
        (
            "run fedavg --dataset heart --clients 4",
            "The partition `natural` has no option `num_clients`. It has none.",
        ),
        (
            "run fedavg --on-invalid ignore",
            "`policy.on_invalid` must be 'raise' or 'drop'. Got 'ignore'.",
        ),
        ("run fedavg --workers 0", "`workers` must be a whole number of at least 1. Got 0."),
        ("run fedavg --device tpu9", "`device` must be one that PyTorch has here. Got 'tpu9'."),
        (
            "run fedhv:reference=[2,2]",
            "`reference` must have one number for each of 1 tasks. Got 2.",
        ),
        (
            "run fedavg --calibration-rounds 3",
            "FedAvg needs no calibration. Leave `--calibration-rounds` and "
            "`--calibration-margin` out.",
        ),
        ("run", "`run` needs a rule, for example `fedaccord run fedpcd`."),
        ("run fedavg --round 3", "No such option"),  # the rest is click's, and names `--rounds`
        ("run fedavg --resume", "`--resume` needs the folder. Give it by `--out`."),
        (
            "run fedavg --resume --out nowhere",
            "`nowhere` holds no run: there is no `experiment.toml` in it. Leave `--resume` out to "
            "start one.",
        ),
        (
            "compare --resume --out nowhere",
            "`nowhere` holds no comparison: there is no `comparison.json` in it. Leave `--resume` "
            "out to start one.",
        ),
        (
            "compare",
            "`compare` needs rules, for example fedavg fedpcd. Known: AFL, CRAFT, Ditto, FedAvg, "
            "FedDyn, FedFV, FedHEAL, FedHV, FedLF, FedMGDAPlus, FedPCD, FedPW, FedProx, GIFAIR, "
            "LocalOnly, PropFair, QFedAvg, SCAFFOLD, ServerAdagrad, ServerAdam, ServerMomentum, "
            "ServerYogi, TERM, Uniform.",
        ),
        ("compare fedavg FedAvg", "Rules must differ from each other. Got FedAvg lr=0.03, "),
        ("compare fedavg fedpcd --seed 1 --seed 1", "Seeds must be distinct. Got 1, 1."),
        (
            "compare fedavg --resume --out x",
            "`compare --resume` takes everything from the folder. Give `--out`, and if wanted "
            "`--rounds`, `--workers` and `--data-dir`.",
        ),
        ("run experiment.toml", "`experiment.toml`: No such file or directory."),
        ("run fedpcd --preset hart", "Unknown preset `hart`. Did you mean `heart`? Known: `"),
        (
            "run --preset heart",
            "`run` needs a rule, for example `fedaccord run fedpcd`.",
        ),
        (
            "run fedpcd --preset heart --dataset heart",
            "Give `--preset` or `--dataset`, not both: a preset says which data it is for.",
        ),
        (
            "run experiment.toml --preset heart",
            "Give a file or `--preset`. A file says itself what it starts from: write "
            '`preset = "heart"` in `experiment.toml`.',
        ),
        (
            "run fedpcd --preset heart --resume --out x",
            "With `--resume` settings come from the folder. Leave `--preset` out.",
        ),
        (
            "run fedpcd --set lr",
            "`--set` takes KEY=VALUE, as in `--set local.lr=0.1`. Got 'lr'.",
        ),
        (
            "run fedpcd --set lr=0.1",
            "Unknown key `lr`. It belongs to [local], as `local.lr`.",
        ),
        (
            "run fedpcd --set local.alpha=0.1",
            "Unknown key in [local] `alpha`. It belongs to [partition], as `partition.alpha`.",
        ),
        (
            "run fedpcd --set local.lr=fast",
            "`local.lr` must be a number. Got 'fast'.",
        ),
        (
            "run fedpcd --set local=0.1",
            "`local` must be a table. Got 0.1.",
        ),
        (
            "run fedpcd --set local.lr=1 --set local.lr=2",
            "`local.lr` is given twice, both times by `--set`.",
        ),
        (
            "run fedpcd --lr 1 --set local.lr=2",
            "`local.lr` is given twice: by `--lr` and by `--set`.",
        ),
        (
            "run fedpcd:tau=0.1 --set rule.tau=0.2",
            "`rule.tau` is given twice: with the rule and by `--set`.",
        ),
        (
            "run fedpcd --set rule=fedavg",
            "`rule` is given twice: with the rule and by `--set`.",
        ),
        (
            "run fedpcd --seed 1 --seed 2",
            "`run` takes one seed. Got 1, 2; `compare` takes several.",
        ),
        (
            "compare fedavg --set seed=2",
            "`compare` takes seeds by `--seed`, several if wanted. Got one by `--set`.",
        ),
        (
            "compare fedavg mine.toml",
            "`compare` takes rules. Got the file `mine.toml`; `fedaccord run` takes files.",
        ),
        (
            "run fedavg --preset cifar10 --data-dir nowhere",
            "`cifar10` needs its files in `nowhere`, or below it in `cifar10`.",
        ),
        ("run fedavg --device meta", "`device` must be one that PyTorch has here. Got 'meta'."),
        (
            f"run fedavg --set local.lr={10**400}",
            "`local.lr` must be a number. Got 1000000000....",
        ),
        (
            f"run fedhv:server={'(fedhv:server=' * 300}fedavg{')' * 300}",
            "Brackets may be nested 20 deep. Got more.",
        ),
        ("verify", "`verify` needs folders of runs, for example `runs/first`."),
        (
            "verify nowhere",
            "`nowhere` holds neither a run nor a comparison: there is no `experiment.toml` and no "
            "`comparison.json` in it.",
        ),
        ("completion tcsh", "Invalid value for '{bash|zsh|fish}': 'tcsh' is not one of"),
        ("demo --rounds-scale 0", "`--rounds-scale` must be positive. Got 0."),
        ("lisst", "No such command 'lisst'."),
        ("list rule", "Invalid value for '[KIND]': 'rule' is not one of"),
    ],
)
def test_a_mistake_takes_one_line(arguments: str, line: str, tmp_path: Path):
    result = call(*arguments.split())
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith(f"Error: {line}")
    assert result.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())
    # the same for programs
    told = call(*arguments.split(), "--json")
    if "No such option" not in told.stderr:  # `demo` and `completion` give no JSON
        error = json.loads(told.stderr)
        assert error["error"].startswith(line)
        assert error["exit_code"] == told.exit_code == 2
        assert told.stdout == ""


def test_a_folder_in_use_is_refused(tmp_path: Path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("", encoding="utf-8")
    result = call("run", "fedavg", *TINY, "--out", "mine")
    assert result.exit_code == 2
    assert result.stderr == ("Error: `mine` exists and is not empty. Choose another folder.\n")


def test_a_finished_run_is_not_overwritten():
    assert call("run", "fedavg", *TINY, "--out", "a").exit_code == 0
    result = call("run", "fedavg", *TINY, "--out", "a")
    assert result.exit_code == 2
    assert result.stderr == (
        "Error: `a` exists and is not empty. Go on with its run by `--resume`, or choose another "
        "folder.\n"
    )


def test_a_file_in_the_way_is_named(tmp_path: Path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    result = call("run", "fedavg", *TINY, "--out", "file/run")
    assert result.exit_code == 2
    assert result.stderr == "Error: `file/run` cannot be made: `file` is not a folder.\n"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_named(tmp_path: Path):
    (tmp_path / "locked").mkdir(mode=0o500)
    result = call("run", "fedavg", *TINY, "--out", "locked/run")
    assert result.exit_code == 2
    assert result.stderr == ("Error: `locked/run` cannot be written: no permission in `locked`.\n")


def test_resuming_with_another_value_names_the_value():
    call("run", "fedavg", *TINY, "--out", "a")
    result = call("run", "--resume", "--out", "a", "--lr", "0.5", "--seed", "4")
    assert result.exit_code == 2
    assert result.stderr == (
        "Error: `a` holds a run with another configuration. Changed: local.lr: 0.05 before, 0.5 "
        "now; seed: 0 before, 4 now. Resume with the old values, or choose another folder.\n"
    )


def test_resuming_with_another_rule_names_the_rule():
    call("run", "fedavg", *TINY, "--out", "a")
    result = call("run", "uniform", "--resume", "--out", "a")
    assert result.exit_code == 2
    assert "Changed: rule.name: FedAvg before, Uniform now." in result.stderr


def test_a_damaged_checkpoint_is_an_error_of_one_line(tmp_path: Path):
    call("run", "fedavg", *TINY, "--out", "a")
    (tmp_path / "a" / "training.safetensors").write_bytes(b"nothing")
    result = call("run", "--resume", "--out", "a")
    assert result.exit_code == 1
    assert "training.safetensors is no checkpoint" in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_model_that_overflows_fails_with_one_line():
    result = call("run", "fedavg", *TINY, "--lr", "1e38", "--weight-decay", "100", "--out", "a")
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: Every contribution must be finite.")
    assert result.stderr.count("\n") == 1


def file(name: str, text: str) -> None:
    Path(name).write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("rounds =", "`a.toml` is no TOML file: Invalid value (at end of document)."),
        (
            "rounds = 3",
            "An experiment needs `dataset`, or `preset` to start from. It has `rounds`.",
        ),
        ('dataset = "heart"', "`a.toml` names no rule. Add a table [rule] with a `name`."),
        ('dataset = "hart"', "Unknown dataset `hart`. Did you mean `heart`? Known: "),
        ('preset = "heart"\nrule = 3', "`rule` must be a table. Got 3."),
        ('preset = "heart"\n[rule]\ntau = 3', "[rule] must have a `name`. Got {'tau': 3}."),
        ('preset = "heart"\nrule = "fedavg"\nround = 3', "Unknown key `round`. Did you mean `rou"),
        (
            'preset = "heart"\nlr = 3\nrule = "fedavg"',
            "Unknown key `lr`. It belongs to [local], as `local.lr`.",
        ),
        (
            'preset = "heart"\nrule = "fedavg"\nrounds = 2020-01-01',
            "`rounds` must be a whole number. Got datetime.date(2020, 1, 1).",
        ),
        ("format = 2", "a.toml has format 2, and this release reads 1. Install a later one."),
    ],
)
def test_a_mistake_in_a_file_takes_one_line(text: str, line: str):
    file("a.toml", text)
    result = call("run", "a.toml")
    assert result.exit_code == 2
    assert result.stderr.startswith(f"Error: {line}")
    assert result.stderr.count("\n") == 1


def test_a_run_cannot_be_made_shorter_than_it_is():
    call("run", "fedavg", *TINY, "--out", "a")
    result = call("run", "--resume", "--out", "a", "--rounds", "1")
    assert result.exit_code == 2
    assert result.stderr == (
        "Error: `rounds` is the total, and 2 are done in `a`. Got 1. Give at least 2, or choose "
        "another folder.\n"
    )


def test_a_run_in_progress_is_left_alone():
    call("run", "fedavg", *TINY, "--out", "a")
    with RunFolder(Path("a")).held():
        result = call("run", "--resume", "--out", "a")
    assert result.exit_code == 2
    assert result.stderr == (
        "Error: A run is in progress in a. Wait for it, or choose another folder.\n"
    )


def test_a_run_of_a_comparison_that_is_gone_is_named():
    call("compare", "fedavg", "fedpcd", *TINY, "--out", "c")
    for path in Path("c/fedpcd").iterdir():
        path.unlink()
    result = call("compare", "--resume", "--out", "c")
    assert result.exit_code == 2
    assert result.stderr == (
        "Error: `c/fedpcd` holds no run: there is no `experiment.toml` in it. `c/comparison.json` "
        "lists it; put it back, or compare anew in another folder.\n"
    )


@pytest.mark.parametrize(
    "listed",
    [
        "",
        "{}",
        "[]",
        "[3]",
        '[{"name": "x"}]',
        '[{"name": "x", "folder": 3}]',
        '[{"name": "x", "folder": "../a"}]',
        '[{"name": "x", "folder": ".."}]',
        '[{"name": "x", "folder": ""}]',
        '[{"name": "x", "folder": "fedavg"}, {"name": "y", "folder": "fedavg"}]',
        "[" * 5000,
    ],
)
def test_a_damaged_comparison_is_one_line(listed: str):
    call("run", "fedavg", *TINY, "--out", "a")
    call("compare", "fedavg", *TINY, "--out", "c")
    file("c/comparison.json", listed)
    result = call("compare", "--resume", "--out", "c")
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: c/comparison.json is damaged: ")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "evaluation",
    [
        {},
        {"tasks": 3},
        {"tasks": {"mean_loss": 1}},
        {"tasks": {"mean_loss": 1, "accuracies": []}, "clients": {}},
    ],
)
def test_an_evaluation_damaged_by_hand_is_one_line(evaluation: dict[str, object]):
    call("run", "fedavg", *TINY, "--out", "a")
    rounds = Path("a/rounds.jsonl")
    records = [json.loads(line) for line in rounds.read_text("utf-8").splitlines()]
    records[-1]["evaluation"] = evaluation
    file("a/rounds.jsonl", "".join(json.dumps(record) + "\n" for record in records))
    result = call("run", "--resume", "--out", "a")
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: a/rounds.jsonl holds rounds that this release cannot")
    assert result.stderr.count("\n") == 1


def test_long_lists_of_clients_are_cut():
    assert one_line(f"Clients {list(range(100))} failed.") == (
        "Clients [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ... (100 in all)] failed."
    )
    assert one_line(f"Clients {list(range(12))} failed.").count(", ") == 11


def test_divergence_is_remarked():
    result = call("run", "fedavg", *TINY, "--lr", "1e6", "--out", "a")
    assert result.exit_code == 0
    assert "at the end: training diverged" in result.stdout


def test_a_demo_leaves_a_foreign_folder_alone(tmp_path: Path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("", encoding="utf-8")
    result = call("demo", "--out", "mine")
    assert result.exit_code == 2
    assert result.stderr == (
        "Error: `mine` holds something that no demo made. Choose another folder by `--out`.\n"
    )
    assert (tmp_path / "mine" / "thesis.tex").exists()


@pytest.mark.parametrize("content", ["", "{}", '{"made_by": "me"}', "[" * 5000])
def test_a_demo_knows_its_own_folder_by_what_its_marker_says(content: str):
    Path("mine/clients").mkdir(parents=True)
    file("mine/demo.json", content)
    result = call("demo", "--out", "mine")
    assert result.exit_code == 2
    assert result.stderr == (
        "Error: `mine` holds something that no demo made. Choose another folder by `--out`.\n"
    )
    assert Path("mine/clients").exists()


@pytest.mark.slow
def test_a_matplotlib_that_does_not_load_is_found_before_training(tmp_path: Path):
    broken = tmp_path / "elsewhere" / "matplotlib"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise RuntimeError('wrong version')", encoding="utf-8")
    script = "import sys; sys.path.insert(0, 'elsewhere'); from fedaccord.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", script, "demo", "--out", "d"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == (
        "Error: Figures need matplotlib, which is installed and does not load: wrong version. "
        "Install it again, or leave the figure out by `--no-figure`.\n"
    )
    assert not (tmp_path / "d").exists()


def test_without_matplotlib_the_demo_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # as if it were not there
    result = call("demo", "--out", "d")
    assert result.exit_code == 2
    assert result.stderr == (
        "Error: Figures need matplotlib, which is not installed. Install it with "
        "`pip install 'fedaccord[plots]'`, or leave the figure out by `--no-figure`.\n"
    )
    assert not list(tmp_path.iterdir())
