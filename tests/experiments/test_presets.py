"""Presets, and files that start from them."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from fedaccord import FedAccordError, UnknownNameError
from fedaccord.experiments import (
    completed,
    from_table,
    list_presets,
    override,
    preset,
    read_file,
    read_preset,
    set_up,
    to_table,
    usual_settings,
)

SHIPPED = [name for name in list_presets() if not read_preset(name).needs_data]


@pytest.mark.parametrize("name", SHIPPED)
def test_a_preset_fits_the_data_that_are_shipped(name: str):
    set_up(from_table({**preset(name), "rule": {"name": "fedavg"}}))


@pytest.mark.parametrize("name", list_presets())
def test_a_preset_says_what_it_is_and_how_long_it_takes(name: str):
    found = read_preset(name)
    assert found.title
    assert found.description
    assert found.measured
    assert found.minutes > 0


@pytest.mark.parametrize("name", list_presets())
def test_a_preset_sets_only_what_an_experiment_has(name: str):
    experiment = from_table({**preset(name), "rule": {"name": "fedavg"}})
    assert experiment.dataset == preset(name)["dataset"]


def test_an_unknown_preset_is_named_with_the_nearest():
    with pytest.raises(UnknownNameError, match=r"Unknown preset `hart`. Did you mean `heart`\?"):
        preset("hart")


def test_a_datasets_usual_settings_are_the_preset_of_its_name():
    assert usual_settings("heart") == preset("heart")


def test_an_unknown_dataset_is_called_a_dataset():
    with pytest.raises(UnknownNameError, match=r"Unknown dataset `hart`. Did you mean `heart`\?"):
        usual_settings("hart")


def test_a_file_takes_the_rest_from_the_preset_it_names():
    table = completed({"preset": "heart", "rounds": 3, "local": {"lr": 0.2}})
    assert table == override(preset("heart"), {"rounds": 3, "local.lr": 0.2})


def test_a_file_takes_the_rest_from_its_dataset():
    assert completed({"dataset": "heart", "rounds": 3}) == override(preset("heart"), {"rounds": 3})


def test_a_complete_file_stays_as_it_is():
    rule = {"name": "fedhv", "reference": [2.5, 2.5], "server": {"name": "fedpcd", "tau": 0.1}}
    changes = {"local.steps": 3, "sampler.fraction": 0.5, "model.dropout": 0.1}
    table = override({**preset("digits-fashion-mini"), "rule": rule}, changes)
    complete = to_table(from_table(table))
    assert to_table(from_table(completed(complete))) == complete


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({}, "needs `dataset`, or `preset` to start from"),
        ({"preset": 3}, "`preset` must be a word. Got 3."),
        ({"preset": "hart"}, r"Unknown preset `hart`. Did you mean `heart`\?"),
        ({"dataset": ["heart"]}, r"`dataset` must be a word. Got \['heart'\]."),
    ],
)
def test_a_file_that_starts_from_nothing_is_refused(table: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=message):
        completed(table)


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_is_its_table(tmp_path: Path):
    text = 'format = 1\npreset = "heart"\n[rule]\nname = "fedpcd"\n'
    assert read_file(write(tmp_path / "a.toml", text)) == {
        "preset": "heart",
        "rule": {"name": "fedpcd"},
    }


@pytest.mark.parametrize(
    "text", ["rounds = ", "rounds = 1\nrounds = 2", "x = " + "[" * 5000], ids=["cut", "2", "deep"]
)
def test_what_is_no_toml_is_refused(text: str, tmp_path: Path):
    with pytest.raises(ValueError, match="a.toml` is no TOML file"):
        read_file(write(tmp_path / "a.toml", text))


def test_what_is_no_text_is_refused(tmp_path: Path):
    (tmp_path / "a.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match="a.toml` is no TOML file"):
        read_file(tmp_path / "a.toml")


def test_a_file_of_a_later_format_is_refused(tmp_path: Path):
    with pytest.raises(FedAccordError, match="has format 2, and this release reads 1. Install"):
        read_file(write(tmp_path / "a.toml", "format = 2"))


@pytest.mark.parametrize("value", ["0", "1.0", "true", '"1"'])
def test_a_format_that_never_was_is_refused(value: str, tmp_path: Path):
    with pytest.raises(FedAccordError, match="must have `format = 1`"):
        read_file(write(tmp_path / "a.toml", f"format = {value}"))


def test_a_preset_is_valid_toml_with_nothing_but_settings_and_their_description():
    table = tomllib.loads(
        (Path(__file__).parents[2] / "src/fedaccord/presets/heart.toml").read_text("utf-8")
    )
    about = table.pop("preset")
    assert set(about) == {"title", "description", "minutes", "measured", "needs_data"}
    assert table == preset("heart")
