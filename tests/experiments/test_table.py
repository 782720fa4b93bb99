"""Experiments as tables of plain values."""

from __future__ import annotations

import contextlib
import tomllib

import pytest
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st

from fedaccord import FedAccordError, FedAvg, FedHV, FedPCD, UnknownNameError
from fedaccord.experiments import (
    Calibration,
    from_table,
    list_presets,
    override,
    preset,
    to_table,
)
from fedaccord.experiments._table import differences

KEYS = ["name", "tau", "server", "reference", "lr", "steps", "x"]
HEART = {**preset("heart"), "rule": {"name": "FedPCD", "tau": 0.1}}


@pytest.mark.parametrize("name", list_presets())
def test_an_experiment_survives_a_toml_file(name: str):
    rule = {"name": "fedhv", "reference": [2.5, 2.5], "server": {"name": "fedpcd", "tau": 0.1}}
    experiment = from_table({**preset(name), "rule": rule})
    assert from_table(tomllib.loads(tomli_w.dumps(to_table(experiment)))) == experiment


def test_every_value_is_spelt_out():
    table = to_table(from_table(HEART))
    assert table["rule"]["history"] == 10
    assert table["local"]["momentum"] == 0
    assert table["policy"] == {"on_invalid": "raise", "on_empty": "raise"}


def test_calibration_is_part_of_an_experiment_that_needs_it():
    assert from_table({**HEART, "rule": {"name": "fedhv"}}).calibration == Calibration()
    assert from_table(HEART).calibration is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"round": 5}, r"Unknown key `round`. Did you mean `rounds`\?"),
        ({"local.learning_rate": 5}, r"Unknown key in \[local\] `learning_rate`"),
        ({"rounds": 0}, r"`rounds` must be a whole number of at least 1. Got 0."),
        ({"rounds": 1.5}, r"`rounds` must be a whole number. Got 1.5."),
        ({"local.lr": "fast"}, r"`local.lr` must be a number. Got 'fast'."),
        ({"evaluate_every": -1}, r"`evaluate_every` must be a whole number of at least 0"),
        ({"workers": 0}, r"`workers` must be a whole number of at least 1. Got 0."),
        ({"dataset": "hart"}, r"Unknown dataset `hart`. Did you mean `heart`\?"),
    ],
)
def test_a_wrong_value_is_refused(changes: dict[str, object], message: str):
    with pytest.raises(ValueError, match=message):
        from_table(override(HEART, changes))


def test_a_missing_value_is_named():
    with pytest.raises(ValueError, match="needs `rounds`"):
        from_table({key: value for key, value in HEART.items() if key != "rounds"})


def test_an_unknown_key_is_an_unknown_name():
    with pytest.raises(UnknownNameError):
        from_table({**HEART, "colour": 1})


def test_changing_values_leaves_the_table_as_it_was():
    before = to_table(from_table(HEART))
    override(before, {"local.lr": 9.0})
    assert before == to_table(from_table(HEART))


def test_steps_take_the_place_of_epochs():
    assert "epochs" not in override(HEART, {"local.steps": 3})["local"]


def test_a_count_takes_the_place_of_a_fraction():
    assert override(HEART, {"sampler.count": 2})["sampler"] == {"count": 2}


def test_another_partition_keeps_only_the_options_it_has():
    table = override(preset("fashion-mini"), {"partition.name": "iid"})
    assert set(table["partition"]) == {"name", "num_clients", "seed"}


def test_another_rule_keeps_none_of_the_options():
    assert override(HEART, {"rule.name": "fedavg"})["rule"] == {"name": "fedavg"}


def test_the_same_rule_by_another_spelling_keeps_them():
    assert override(HEART, {"rule.name": "fed-pcd"})["rule"] == {"name": "fed-pcd", "tau": 0.1}


def test_a_rule_inside_a_rule_can_be_changed():
    table = {**HEART, "rule": {"name": "fedhv", "reference": [2.0], "server": "fedpcd"}}
    changed = from_table(override(table, {"rule.server.tau": 0.3}))
    assert changed.rule.build() == FedHV((2.0,), server=FedPCD(tau=0.3))


def test_a_choice_may_be_a_name_alone():
    assert from_table({**HEART, "rule": "fedavg"}).rule.build() == FedAvg()


def test_a_value_below_a_value_is_refused():
    with pytest.raises(ValueError, match="`rounds` must be a table where `rounds.x` is given"):
        override(HEART, {"rounds": 3, "rounds.x": 4})


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["heart", "fedpcd", "iid", "x", ""])
    | st.dates(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(KEYS), inner),
    max_leaves=4,
)
FULL = to_table(from_table({**HEART, "rule": {"name": "fedhv", "server": "fedpcd"}}))


@given(
    st.dictionaries(st.sampled_from([*FULL, "workers", "data_dir", "x"]), VALUES, max_size=2),
    st.dictionaries(st.sampled_from([*FULL["rule"], *FULL["local"]]), VALUES, max_size=1),
    st.sampled_from(["rule", "local", "partition", "sampler", "policy", "calibration"]),
)
@settings(max_examples=300)
def test_whatever_a_table_holds_it_is_read_or_refused(
    top: dict[str, object], inner: dict[str, object], section: str
):
    table = {**FULL, section: {**FULL.get(section, {}), **inner}, **top}
    with contextlib.suppress(ValueError, FedAccordError):
        from_table(table)


def test_differences_name_every_value_that_differs():
    after = override(to_table(from_table(HEART)), {"local.lr": 0.2, "seed": 3})
    assert differences(to_table(from_table(HEART)), after) == [
        "local.lr: 0.05 before, 0.2 now",
        "seed: 0 before, 3 now",
    ]
