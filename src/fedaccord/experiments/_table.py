"""Experiments as nested tables of plain values: what a TOML file holds."""

from __future__ import annotations

import dataclasses
import tomllib
import typing
from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Any, TypeAlias

from ..data import list_datasets
from ..errors import UnknownNameError
from ._choices import ModelChoice, PartitionChoice
from ._experiment import Experiment
from ._names import options_of, partition_function
from ._rule_choice import RuleChoice
from ._values import convert, is_union

Table: TypeAlias = dict[str, Any]

_CHOICES = (RuleChoice, PartitionChoice, ModelChoice)
# one stands for the other: giving the first takes the second away
_RIVALS = {"epochs": "steps", "steps": "epochs", "count": "fraction", "fraction": "count"}


def to_table(value: Any) -> Table:
    """Spell out an experiment, or a part of one, in numbers, words, lists and tables.

    Values that are ``None`` are left out, since TOML has none.
    """
    if isinstance(value, _CHOICES):
        parts: Table = {"name": value.name, **value.options}
    else:
        parts = {part.name: getattr(value, part.name) for part in dataclasses.fields(value)}
    return {key: _plain(part) for key, part in parts.items() if part is not None}


def from_table(table: Mapping[str, Any]) -> Experiment:
    """Read an experiment.

    :param table: As :func:`to_table` gives it.
    :raises UnknownNameError: If a key or a name is unknown; the message names the nearest.
    :raises ValueError: If a key is missing or a value is out of range.
    """
    experiment: Experiment = _fill(Experiment, table, "")
    if experiment.dataset not in list_datasets():
        raise UnknownNameError.among("dataset", experiment.dataset, list_datasets())
    return experiment


def preset(dataset: str) -> Table:
    """The settings that go with a dataset: everything but the rule.

    :raises UnknownNameError: If there is no such dataset.
    """
    if dataset not in list_datasets():
        raise UnknownNameError.among("dataset", dataset, list_datasets())
    file = resources.files("fedaccord") / "presets" / f"{dataset}.toml"
    return {"dataset": dataset, **tomllib.loads(file.read_text(encoding="utf-8"))}


def override(table: Mapping[str, Any], changes: Mapping[str, Any]) -> Table:
    """Change values of a table.

    What no longer applies goes away: the options of another partition or model, ``epochs`` where
    ``steps`` is given, ``count`` where ``fraction`` is.

    :param table: Left as it is.
    :param changes: Values by dotted key, for example ``{"partition.alpha": 0.1}``.
    """
    changed: Table = {k: dict(v) if isinstance(v, Mapping) else v for k, v in table.items()}
    if "partition.name" in changes:
        known = options_of(partition_function(changes["partition.name"]))
        kept = {k: v for k, v in changed.get("partition", {}).items() if k in known}
        changed["partition"] = kept
    if "model.name" in changes:
        changed["model"] = {}
    for key, value in changes.items():
        section, _, name = key.rpartition(".")
        target = changed.setdefault(section, {}) if section else changed
        target[name] = value
        rival = _RIVALS.get(name)
        if rival and f"{section}.{rival}" not in changes:
            target.pop(rival, None)
    return changed


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Say which values of two tables differ, by dotted key: ``"local.lr: 0.1 before, 0.2 now"``."""
    old, new = dict(_flat(before)), dict(_flat(after))
    return [
        f"{key}: {old.get(key, 'nothing')} before, {new.get(key, 'nothing')} now"
        for key in sorted({*old, *new})
        if old.get(key) != new.get(key)
    ]


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return to_table(value)
    return list(value) if isinstance(value, tuple) else value


def _flat(table: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", value


def _fill(kind: type[Any], table: Mapping[str, Any], where: str) -> Any:
    """Make a dataclass from a table; ``where`` is the table's dotted name."""
    place = f"key in [{where}]" if where else "key"
    hints = typing.get_type_hints(kind)
    parts = {part.name: part for part in dataclasses.fields(kind)}
    for key in table:
        if key not in parts:
            raise UnknownNameError.among(place, key, parts)
    values = {}
    for name, part in parts.items():
        if name in table:
            values[name] = _part(table[name], hints[name], f"{where}.{name}".lstrip("."))
        elif part.default is dataclasses.MISSING and part.default_factory is dataclasses.MISSING:
            raise ValueError(f"The experiment needs `{f'{where}.{name}'.lstrip('.')}`.")
    return kind(**values)


def _part(value: Any, hint: Any, where: str) -> Any:
    kinds = typing.get_args(hint) if is_union(hint) else (hint,)
    inner = [kind for kind in kinds if dataclasses.is_dataclass(kind)]
    if not inner:
        return convert(value, hint, name=where)
    if not isinstance(value, Mapping):
        raise ValueError(f"`{where}` must be a table. Got {value!r}.")
    if inner[0] not in _CHOICES:
        return _fill(inner[0], value, where)  # type: ignore[arg-type]
    if not isinstance(value.get("name"), str):
        raise ValueError(f"[{where}] must have a `name`. Got {dict(value)}.")
    return inner[0](value["name"], {k: v for k, v in value.items() if k != "name"})
