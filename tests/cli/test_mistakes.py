"""Mistakes that a user can foresee: one line, the exit code, nothing trained or written."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fedaccord.cli import app

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
            "Unknown dataset `fashion-mine`. Did you mean `fashion-mini`? Known: "
            "`digits-fashion-mini`, `fashion-mini`, `heart`.",
        ),
        (
            "run fedavg --partition stratta",
            "Unknown partition `stratta`. Did you mean `strata`? Known: `client-dirichlet`, `iid`, "
            "`natural`, `strata`.",
        ),
        (
            "run fedavg --model lenett",
            "Unknown model `lenett`. Did you mean `lenet`? Known: `LeNetPair`, `lenet`, "
            "`logistic`.",
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
            "`compare --resume` takes everything from the folder. Give `--out` only.",
        ),
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


def test_a_demo_leaves_a_foreign_folder_alone(tmp_path: Path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("", encoding="utf-8")
    result = call("demo", "--out", "mine")
    assert result.exit_code == 2
    assert result.stderr == (
        "Error: `mine` holds something that no demo made. Choose another folder by `--out`.\n"
    )
    assert (tmp_path / "mine" / "thesis.tex").exists()


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
