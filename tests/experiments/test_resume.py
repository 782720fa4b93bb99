"""Going on with a run: what is compared, what may change, what is cleared up."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fedaccord import CheckpointError, FedAccordError, MissingDataError
from fedaccord.experiments import (
    Experiment,
    FolderError,
    RunFolder,
    carry_out,
    from_table,
    override,
    prepare,
    preset,
    run,
)

SMALL = {"rounds": 4, "evaluate_every": 2, "sampler.count": 2, "workers": 1}


def heart(**changes: Any) -> Experiment:
    table = override({**preset("heart"), "rule": {"name": "fedpcd"}}, {**SMALL, **changes})
    return from_table(table)


def edit(file: Path, before: str, after: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert before in text
    file.write_text(text.replace(before, after), encoding="utf-8")


def files(folder: Path) -> dict[str, bytes]:
    names = ("rounds.jsonl", "model.safetensors", "summary.json", "split.json")
    return {name: (folder / name).read_bytes() for name in names}


def stop(stage: str, /, *, done: int, of: int, evaluation: Any = None) -> None:
    if done == 2:
        raise KeyboardInterrupt


def test_an_edited_configuration_is_not_taken_for_the_runs_own(tmp_path: Path):
    with pytest.raises(KeyboardInterrupt):
        run(heart(), tmp_path, watch=stop)
    edit(tmp_path / "experiment.toml", "lr = 0.05", "lr = 0.5")
    edited = RunFolder(tmp_path).read_experiment()
    with pytest.raises(FolderError, match="was saved by another configuration than the one in"):
        run(edited, tmp_path, resume=True)


def test_a_split_that_is_recorded_otherwise_is_refused(tmp_path: Path):
    run(heart(), tmp_path)
    split = json.loads((tmp_path / "split.json").read_text("utf-8"))
    edit(tmp_path / "split.json", split["sha256"], "0" * 64)
    with pytest.raises(FolderError, match="records another split than these settings make now"):
        run(heart(), tmp_path, resume=True)
    assert json.loads((tmp_path / "split.json").read_text("utf-8"))["sha256"] == "0" * 64


def test_a_folder_taken_since_it_was_checked_is_refused(tmp_path: Path):
    setup = prepare(heart(), tmp_path / "a")
    run(heart(seed=5), tmp_path / "a")
    before = files(tmp_path / "a")
    with pytest.raises(FolderError, match="exists and is not empty"):
        carry_out(setup, tmp_path / "a")
    assert files(tmp_path / "a") == before


def test_a_run_changed_since_it_was_checked_is_not_gone_on_with(tmp_path: Path):
    run(heart(), tmp_path)
    setup = prepare(heart(), tmp_path, resume=True)
    edit(tmp_path / "experiment.toml", "lr = 0.05", "lr = 0.5")
    with pytest.raises(FolderError, match="another configuration. Changed: local.lr"):
        carry_out(setup, tmp_path, resume=True)


def test_a_run_made_longer_is_the_longer_run(tmp_path: Path):
    run(heart(rounds=2), tmp_path / "a")
    run(heart(rounds=4), tmp_path / "a", resume=True)
    run(heart(rounds=4), tmp_path / "b")
    assert files(tmp_path / "a") == files(tmp_path / "b")


def test_while_a_run_is_made_longer_there_is_no_model(tmp_path: Path):
    run(heart(rounds=1), tmp_path)
    with pytest.raises(KeyboardInterrupt):
        run(heart(rounds=4), tmp_path, resume=True, watch=stop)
    assert not (tmp_path / "model.safetensors").exists()
    assert not (tmp_path / "summary.json").exists()


def test_rounds_that_are_done_cannot_be_taken_back(tmp_path: Path):
    run(heart(rounds=3), tmp_path)
    before = files(tmp_path)
    with pytest.raises(FolderError, match="`rounds` is the total, and 3 are done .* Got 2. Give"):
        run(heart(rounds=2), tmp_path, resume=True)
    assert files(tmp_path) == before


def test_rounds_that_are_not_done_can_be_taken_back(tmp_path: Path):
    with pytest.raises(KeyboardInterrupt):
        run(heart(rounds=6), tmp_path / "a", watch=stop)
    run(heart(rounds=4), tmp_path / "a", resume=True)
    run(heart(rounds=4), tmp_path / "b")
    assert files(tmp_path / "a") == files(tmp_path / "b")


def test_where_the_data_lie_may_change(tmp_path: Path):
    run(heart(), tmp_path)
    assert run(heart(data_dir="elsewhere"), tmp_path, resume=True).finished
    assert RunFolder(tmp_path).read_experiment().data_dir == "elsewhere"


def test_where_the_data_lie_is_used(tmp_path: Path):
    table = {**preset("cifar10"), "rule": "fedavg", "data_dir": str(tmp_path / "nothing")}
    with pytest.raises(MissingDataError, match="/nothing"):
        prepare(from_table(table), tmp_path / "a")


def test_a_finished_run_without_its_checkpoint_says_so(tmp_path: Path):
    run(heart(), tmp_path)
    (tmp_path / "training.safetensors").unlink()
    with pytest.raises(FolderError, match="finished run without its checkpoint"):
        run(heart(), tmp_path, resume=True)


@pytest.mark.parametrize("left", [".running", ".rounds.jsonl.123.tmp"])
def test_what_a_killed_process_left_before_it_began_is_no_run(left: str, tmp_path: Path):
    (tmp_path / left).touch()
    run(heart(), tmp_path)
    assert not (tmp_path / left).exists()


@pytest.mark.parametrize("left", [".training.safetensors.123.tmp", ".model.safetensors.9.tmp"])
def test_what_a_killed_process_was_writing_is_cleared_up(left: str, tmp_path: Path):
    with pytest.raises(KeyboardInterrupt):
        run(heart(), tmp_path, watch=stop)
    (tmp_path / left).write_bytes(b"half")
    run(heart(), tmp_path, resume=True)
    assert not (tmp_path / left).exists()


def test_a_file_of_somebody_elses_is_no_leftover(tmp_path: Path):
    (tmp_path / "notes.123.tmp").touch()
    with pytest.raises(FolderError, match="is not empty"):
        run(heart(), tmp_path)


@pytest.mark.parametrize("name", ["timing.json", "environment.json", "split.json"])
@pytest.mark.parametrize("content", [b"", b"{", b'"x"', b"\xff", b"[" * 5000, b"[NaN]"])
def test_a_damaged_file_is_refused_before_the_first_round(
    name: str, content: bytes, tmp_path: Path
):
    with pytest.raises(KeyboardInterrupt):
        run(heart(), tmp_path, watch=stop)
    (tmp_path / name).write_bytes(content)
    before = (tmp_path / "rounds.jsonl").read_bytes()
    with pytest.raises(CheckpointError, match=f"{name} is damaged"):
        run(heart(), tmp_path, resume=True)
    assert (tmp_path / "rounds.jsonl").read_bytes() == before


def test_a_folder_of_a_later_format_is_refused(tmp_path: Path):
    run(heart(), tmp_path)
    edit(tmp_path / "experiment.toml", "format = 1", "format = 2")
    with pytest.raises(FedAccordError, match="has format 2, and this release reads 1"):
        run(heart(), tmp_path, resume=True)


def test_a_folder_without_a_format_is_refused(tmp_path: Path):
    run(heart(), tmp_path)
    edit(tmp_path / "experiment.toml", "format = 1\n", "")
    with pytest.raises(FedAccordError, match="must have `format = 1`. Got None"):
        run(heart(), tmp_path, resume=True)


def test_a_device_that_holds_no_numbers_is_refused(tmp_path: Path):
    with pytest.raises(ValueError, match="`device` must be one that PyTorch has here. Got 'meta'"):
        prepare(heart(device="meta"), tmp_path)


# a process that may write no larger file fails as on a full disk
LIMITED = """
import resource, signal, sys
from fedaccord.cli import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
del sys.argv[1]
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limit", "dataset", "file"),
    [
        (200, "heart", "experiment.toml"),
        (2500, "heart", "rounds.jsonl"),  # after the split, of 2.1 kB
        (100_000, "fashion-mini", "training.safetensors"),  # LeNet's parameters are 247 kB
    ],
)
def test_a_full_disk_is_one_line_that_names_the_file(
    limit: int, dataset: str, file: str, tmp_path: Path
):
    call = ["run", "fedavg", "--dataset", dataset, "--rounds", "2", "--clients-per-round", "2"]
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(limit), *call, "--out", "a"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("Error: ")
    assert f"a/{file}" in done.stderr
    assert "File too large" in done.stderr
    assert not [left for left in (tmp_path / "a").iterdir() if left.suffix == ".tmp"]


HELD_BACK = {
    "holdout.test": 0.2,
    "holdout.clients": 0.25,
    "after_local_steps": True,
    "sampler.count": 1,
}


def test_a_run_whose_clients_keep_samples_back_is_gone_on_with_to_the_byte(tmp_path: Path):
    # which clients were never sampled has to be known of the rounds before the interruption too
    run(heart(**HELD_BACK), tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        run(heart(**HELD_BACK), tmp_path / "parts", watch=stop)
    run(heart(**HELD_BACK), tmp_path / "parts", resume=True)
    assert files(tmp_path / "parts") == files(tmp_path / "whole")


def test_what_clients_keep_back_is_recorded(tmp_path: Path):
    run(heart(**HELD_BACK), tmp_path)
    held = json.loads((tmp_path / "split.json").read_text("utf-8"))["held_back"]
    assert sorted([*held["clients"], *held["never_train"]]) == [0, 1, 2, 3]
    assert len(held["never_train"]) == 1
    # a fifth of 199, 172, 30 and 85 patients, rounded
    assert held["sizes"]["test"] == [40, 34, 6, 17]


def test_other_samples_kept_back_than_recorded_are_refused(tmp_path: Path):
    run(heart(**HELD_BACK), tmp_path)
    edit(tmp_path / "split.json", '"shared": 0', '"shared": 1')
    with pytest.raises(FolderError, match="kept back other samples"):
        run(heart(**HELD_BACK), tmp_path, resume=True)
