"""Runs in folders: the same bytes however they were carried out, and refusals."""

from __future__ import annotations

import dataclasses
import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from fedaccord import CheckpointError, Threads, load, simulate
from fedaccord.experiments import (
    Experiment,
    FolderError,
    Run,
    RunFolder,
    from_table,
    override,
    preset,
    run,
    set_up,
)

SMALL = {"rounds": 6, "evaluate_every": 2, "sampler.count": 2, "workers": 1}


def heart(rule: str = "fedpcd", **changes: Any) -> Experiment:
    """Four hospitals, two a round, so that FedPCD's history matters."""
    table = override({**preset("heart"), "rule": {"name": rule}}, {**SMALL, **changes})
    return from_table(table)


def two_tasks(rule: dict[str, Any]) -> Experiment:
    changes = {
        "rounds": 2,
        "partition.num_clients": 3,
        "partition.samples_per_client": 12,
        "sampler.count": 2,
        "local.steps": 1,
        "calibration.rounds": 1,
        "evaluate_every": 0,
    }
    return from_table(override({**preset("digits-fashion-mini"), "rule": rule}, changes))


def files(folder: Path) -> dict[str, bytes]:
    """The files that must not depend on how a run was carried out."""
    names = ("rounds.jsonl", "model.safetensors", "summary.json", "experiment.toml", "split.json")
    return {name: (folder / name).read_bytes() for name in names}


class Stop:
    """Interrupts after a number of rounds, as Ctrl-C does, and copies the folder as it is then."""

    def __init__(self, after: int, *, copy: tuple[Path, Path] | None = None) -> None:
        self.after = after
        self.copy = copy

    def __call__(self, stage: str, /, *, done: int, of: int, evaluation: Any = None) -> None:
        if stage == "training" and done == self.after:
            if self.copy is not None:
                shutil.copytree(*self.copy)
            raise KeyboardInterrupt


@pytest.mark.parametrize("rule", ["fedavg", "fedpcd"])
def test_an_interrupted_and_resumed_run_leaves_the_same_bytes(rule: str, tmp_path: Path):
    run(heart(rule), tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        run(heart(rule), tmp_path / "parts", watch=Stop(3))
    run(heart(rule), tmp_path / "parts", resume=True)
    assert files(tmp_path / "parts") == files(tmp_path / "whole")


def test_records_beyond_the_checkpoint_are_made_again(tmp_path: Path):
    """What a killed process leaves: lines, the last one torn, newer than the checkpoint."""
    run(heart(), tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        run(heart(), tmp_path / "first", watch=Stop(2))
    copy = (tmp_path / "first", tmp_path / "killed")
    with pytest.raises(KeyboardInterrupt):
        run(
            heart(),
            tmp_path / "first",
            resume=True,
            watch=Stop(5, copy=copy),
            checkpoint_seconds=math.inf,
        )
    with (tmp_path / "killed" / "rounds.jsonl").open("ab") as file:
        file.write(b'{"round":5,"asked":[0')
    run(heart(), tmp_path / "killed", resume=True)
    assert files(tmp_path / "killed") == files(tmp_path / "whole")


def test_a_run_killed_before_its_first_checkpoint_starts_over(tmp_path: Path):
    copy = (tmp_path / "first", tmp_path / "killed")
    with pytest.raises(KeyboardInterrupt):
        run(heart(), tmp_path / "first", watch=Stop(2, copy=copy), checkpoint_seconds=math.inf)
    assert not (tmp_path / "killed" / "training.safetensors").exists()
    run(heart(), tmp_path / "killed", resume=True)
    run(heart(), tmp_path / "whole")
    assert files(tmp_path / "killed") == files(tmp_path / "whole")


def test_resuming_a_finished_run_changes_nothing(tmp_path: Path):
    run(heart(), tmp_path)
    before = files(tmp_path)
    run(heart(), tmp_path, resume=True)
    assert files(tmp_path) == before


def test_the_number_of_workers_changes_no_byte(tmp_path: Path):
    run(heart(), tmp_path / "one")
    run(heart(workers=3), tmp_path / "three")
    one, three = files(tmp_path / "one"), files(tmp_path / "three")
    assert one["rounds.jsonl"] == three["rounds.jsonl"]
    assert one["model.safetensors"] == three["model.safetensors"]


def test_the_number_of_workers_may_change_when_resuming(tmp_path: Path):
    run(heart(), tmp_path)
    assert run(heart(workers=2), tmp_path, resume=True).finished


def test_the_seed_matters(tmp_path: Path):
    run(heart(), tmp_path / "a")
    run(heart(seed=1), tmp_path / "b")
    assert files(tmp_path / "a")["rounds.jsonl"] != files(tmp_path / "b")["rounds.jsonl"]
    assert files(tmp_path / "a")["split.json"] == files(tmp_path / "b")["split.json"]


def test_the_model_is_the_one_of_a_plain_simulation(tmp_path: Path):
    experiment = heart()
    run(experiment, tmp_path)
    federation = set_up(experiment).federation
    *_, last = simulate(
        experiment.rule.build(),
        federation,
        rounds=experiment.rounds,
        local=experiment.local,
        sampler=experiment.sampler,
        executor=Threads(2),
    )
    expected = federation.module(last.training).state_dict()
    found = load_file(tmp_path / "model.safetensors")
    assert all(torch.equal(found[name], expected[name]) for name in expected)
    checkpoint = load(tmp_path / "training.safetensors", experiment.rule.build())
    assert torch.equal(checkpoint.params, last.training.params)


def test_the_model_is_the_one_that_the_rule_evaluates(tmp_path: Path):
    experiment = heart("afl", **{"rule.lr_lambda": 0.1})
    run(experiment, tmp_path)
    rule = experiment.rule.build()
    training = load(tmp_path / "training.safetensors", rule)
    found = load_file(tmp_path / "model.safetensors")
    averaged = set_up(experiment).federation.module(training, rule=rule).state_dict()
    assert all(torch.equal(found[name], averaged[name]) for name in averaged)
    assert not torch.equal(rule.evaluated(training.rule_state, training.params), training.params)


def test_a_lacking_reference_is_calibrated_and_written_down(tmp_path: Path):
    done = run(two_tasks({"name": "fedhv", "server": "fedpcd"}), tmp_path)
    reference = done.experiment.rule.options["reference"]
    # before training both losses are near ln 10 = 2.303; the margin is 0.15
    assert all(2.35 < value < 2.75 for value in reference)
    assert done.records[0]["diagnostics"]["slacks"] == pytest.approx(
        [
            r - f
            for r, f in zip(reference, done.records[0]["diagnostics"]["task_losses"], strict=True)
        ]
    )


def test_a_resumed_run_keeps_the_reference_it_was_calibrated_with(tmp_path: Path):
    experiment = two_tasks({"name": "fedhv"})
    run(experiment, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        run(experiment, tmp_path / "parts", watch=Stop(1))
    stages: list[str] = []
    run(
        experiment,
        tmp_path / "parts",
        resume=True,
        watch=lambda stage, /, **_: stages.append(stage),
    )
    assert stages == ["training"]
    assert files(tmp_path / "parts") == files(tmp_path / "whole")


def test_a_folder_in_use_is_refused(tmp_path: Path):
    run(heart(), tmp_path)
    with pytest.raises(FolderError, match=r"exists and is not empty. Go on with its run by"):
        run(heart(), tmp_path)


def test_a_folder_without_a_run_cannot_be_resumed(tmp_path: Path):
    with pytest.raises(FolderError, match="holds no run"):
        run(heart(), tmp_path / "nothing", resume=True)


def test_another_configuration_is_refused_with_what_differs(tmp_path: Path):
    run(heart(), tmp_path)
    with pytest.raises(FolderError, match=r"Changed: local.lr: 0.05 before, 0.1 now; seed: 0 b"):
        run(heart(**{"local.lr": 0.1, "seed": 2}), tmp_path, resume=True)


def test_records_that_end_before_the_checkpoint_are_refused(tmp_path: Path):
    run(heart(), tmp_path)
    file = tmp_path / "rounds.jsonl"
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:3]))
    with pytest.raises(
        CheckpointError, match="every round before the checkpoint, 6 in all. Found 3."
    ):
        run(heart(), tmp_path, resume=True)


def test_a_damaged_record_is_named(tmp_path: Path):
    run(heart(), tmp_path)
    lines = (tmp_path / "rounds.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "rounds.jsonl").write_bytes(b"".join([lines[0], b"oops\n", *lines[2:]]))
    with pytest.raises(CheckpointError, match="line 2 is no record of a round"):
        run(heart(), tmp_path, resume=True)


def test_a_damaged_configuration_is_refused(tmp_path: Path):
    run(heart(), tmp_path)
    (tmp_path / "experiment.toml").write_text("rounds = ", encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"experiment.toml is damaged"):
        run(heart(), tmp_path, resume=True)


def test_nothing_is_written_when_something_does_not_fit(tmp_path: Path):
    with pytest.raises(ValueError, match="Model `lenet` does not fit dataset `heart`"):
        run(heart(**{"model.name": "lenet"}), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_what_is_dropped_is_recorded_and_counted(tmp_path: Path):
    changes = {"policy.on_invalid": "drop", "policy.on_empty": "skip"}
    changes |= {"local.lr": 1e38, "local.weight_decay": 100.0}  # overflows in the first step
    done = run(heart("fedavg", **changes), tmp_path)
    asked = [client for record in done.records for client in record["asked"]]
    dropped = [int(client) for record in done.records for client in record["failures"]]
    assert sorted(dropped) == sorted(asked)
    assert done.summary["empty_rounds"] == 6
    assert sum(done.summary["dropped"].values()) == 12


def test_every_round_has_a_line_of_strict_json(tmp_path: Path):
    run(heart(), tmp_path)

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    lines = (tmp_path / "rounds.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line, parse_constant=refuse) for line in lines]
    assert [record["round"] for record in records] == list(range(6))
    assert all(record["answered"] == record["asked"] for record in records)
    assert ["evaluation" in record for record in records] == [False, True] * 3


def test_a_name_can_be_given_to_a_run(tmp_path: Path):
    run(heart(), tmp_path)
    assert Run.read(tmp_path, name="ours").name == "ours"
    assert dataclasses.replace(Run.read(tmp_path), name="x").name == "x"


def test_two_processes_do_not_share_a_folder(tmp_path: Path):
    place = RunFolder(tmp_path / "run")
    with (
        place.held(),
        pytest.raises(FolderError, match="A run is in progress"),
        RunFolder(tmp_path / "run").held(),
    ):
        pass
    with place.held():  # free again
        pass
    assert not list(place.path.iterdir())
