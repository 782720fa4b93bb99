"""``verify`` finds what does not belong together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file

from fedaccord.experiments import (
    Experiment,
    FolderError,
    from_table,
    override,
    preset,
    run,
    verify,
)

SMALL = {"rounds": 4, "evaluate_every": 2, "sampler.count": 2, "workers": 1}


def heart(**changes: Any) -> Experiment:
    table = override({**preset("heart"), "rule": {"name": "fedpcd"}}, {**SMALL, **changes})
    return from_table(table)


def outcomes(folder: Path, *, rerun: int = 0) -> dict[str, str]:
    return {check.name: check.outcome for check in verify(folder, rerun=rerun)}


def test_of_a_finished_run_everything_is_good(tmp_path: Path):
    run(heart(), tmp_path)
    assert outcomes(tmp_path, rerun=4) == {
        "configuration": "good",
        "split": "good",
        "records": "good",
        "checkpoint": "good",
        "model": "good",
        "summary": "good",
        "sittings": "good",
        "rerun": "good",
    }


def test_of_an_interrupted_run_some_things_are_open(tmp_path: Path):
    def stop(stage: str, /, *, done: int, of: int, evaluation: Any = None) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(heart(), tmp_path, watch=stop)
    found = outcomes(tmp_path, rerun=9)
    assert {name for name, outcome in found.items() if outcome == "open"} == {"model", "summary"}
    assert "bad" not in found.values()


def replace(name: str, before: str, after: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        text = (folder / name).read_text(encoding="utf-8")
        assert before in text
        (folder / name).write_text(text.replace(before, after, 1), encoding="utf-8")

    return damage


def remove(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def other_model(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    save_file({name: value + 1e-6 for name, value in tensors.items()}, folder / "model.safetensors")


def other_parameters(folder: Path) -> None:
    file = folder / "training.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)


def without_last_round(folder: Path) -> None:
    lines = (folder / "rounds.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "rounds.jsonl").write_bytes(b"".join(lines[:-1]))


@pytest.mark.parametrize(
    ("damage", "bad"),
    [
        (replace("experiment.toml", "lr = 0.05", "lr = 0.06"), {"checkpoint", "rerun"}),
        (replace("experiment.toml", "momentum = 0.0\n", ""), {"configuration"}),
        (replace("experiment.toml", "rounds = 4", "rounds = 3"), {"records"}),
        (replace("split.json", '"sha256": "', '"sha256": "0'), {"split"}),
        (replace("split.json", '"unassigned": 0', '"unassigned": 1'), {"split"}),
        (replace("rounds.jsonl", '"step_norm":', '"step_norm":1'), {"rerun"}),
        (replace("rounds.jsonl", '"empty":false', '"empty":true'), {"summary", "rerun"}),
        (replace("rounds.jsonl", '"round":1', '"round":7'), {"records"}),
        (replace("rounds.jsonl", '"step_norm":', '"step_norm":NaN,"x":'), {"records"}),
        (replace("summary.json", '"asked": 8', '"asked": 9'), {"summary"}),
        (replace("timing.json", "[", "{"), {"sittings"}),
        (replace("partition.json", "[", "[0,"), {"split"}),
        (other_model, {"model"}),
        (other_parameters, {"checkpoint"}),
        (without_last_round, {"checkpoint", "model"}),
        (remove("model.safetensors"), {"model"}),
        (remove("summary.json"), {"summary"}),
        (remove("training.safetensors"), {"checkpoint"}),
        (remove("split.json"), {"split"}),
    ],
)
def test_what_was_changed_by_hand_is_found(
    damage: Callable[[Path], None], bad: set[str], tmp_path: Path
):
    run(heart(), tmp_path)
    damage(tmp_path)
    found = {name for name, outcome in outcomes(tmp_path, rerun=4).items() if outcome == "bad"}
    assert bad <= found


def test_what_is_wrong_is_told_in_a_sentence(tmp_path: Path):
    run(heart(), tmp_path)
    replace("split.json", '"unassigned": 0', '"unassigned": 1')(tmp_path)
    (found,) = [check for check in verify(tmp_path) if check.outcome == "bad"]
    assert found.detail == (
        f"{tmp_path}/split.json is not what the configuration makes; see `unassigned`."
    )


def test_a_run_that_was_made_longer_can_be_made_again(tmp_path: Path):
    # round 3 was the last one and evaluated for it
    run(heart(rounds=3), tmp_path)
    run(heart(rounds=4), tmp_path, resume=True)
    assert outcomes(tmp_path, rerun=4)["rerun"] == "good"


def test_a_calibrated_run_can_be_made_again(tmp_path: Path):
    changes = {"rule": {"name": "fedhv"}, "calibration.rounds": 1}
    run(heart(**changes), tmp_path)
    assert "bad" not in outcomes(tmp_path, rerun=2).values()


def test_nothing_is_written(tmp_path: Path):
    run(heart(), tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    verify(tmp_path, rerun=2)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_where_no_run_is_there_is_nothing_to_verify(tmp_path: Path):
    with pytest.raises(FolderError, match="holds no run"):
        verify(tmp_path)


def test_a_negative_number_of_rounds_is_refused(tmp_path: Path):
    with pytest.raises(ValueError, match="`rerun` must be at least 0. Got -1"):
        verify(tmp_path, rerun=-1)
