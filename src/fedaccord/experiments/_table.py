"""Experiments as nested tables of plain values: what a TOML file holds."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from ..data import list_datasets
from ..errors import UnknownNameError
from ._choices import ModelChoice, PartitionChoice
from ._experiment import Experiment
from ._keys import require_known
from ._names import fold
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
    require_known(table)
    experiment: Experiment = _fill(Experiment, table, "")
    if experiment.dataset not in list_datasets():
        raise UnknownNameError.among("dataset", experiment.dataset, list_datasets())
    return experiment


def override(table: Mapping[str, Any], changes: Mapping[str, Any]) -> Table:
    """Change values of a table.

    What no longer applies goes away: the options of another rule, partition or model, ``epochs``
    where ``steps`` is given, ``count`` where ``fraction`` is.

    :param table: Left as it is.
    :param changes: Values by dotted key, for example ``{"partition.alpha": 0.1}``, or in tables.
    :raises ValueError: If a key leads into something that is no table.
    """
    return _merged(table, _nested(changes))


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Say which values of two tables differ, by dotted key: ``"local.lr: 0.1 before, 0.2 now"``."""
    old, new = dict(_flat(before)), dict(_flat(after))
    return [
        f"{key}: {old.get(key, 'nothing')} before, {new.get(key, 'nothing')} now"
        for key in sorted({*old, *new})
        if old.get(key) != new.get(key)
    ]


def _nested(changes: Mapping[str, Any]) -> Table:
    """Tables inside tables for dotted keys."""
    nested: Table = {}
    for key, value in changes.items():
        *sections, name = key.split(".")
        target = nested
        for section in sections:
            target = target.setdefault(section, {})
            if not isinstance(target, dict):
                raise ValueError(f"`{section}` must be a table where `{key}` is given.")
        inner = _nested(value) if isinstance(value, Mapping) else value
        if isinstance(inner, dict) and isinstance(target.get(name), dict):
            target[name] = {**target[name], **inner}
        else:
            target[name] = inner
    return nested


def _merged(table: Mapping[str, Any], changes: Mapping[str, Any]) -> Table:
    merged: Table = dict(table)
    for key, value in changes.items():
        if not isinstance(value, dict):
            merged[key] = value
            continue
        before = merged.get(key, {})
        before = {"name": before} if isinstance(before, str) else before
        before = dict(before) if isinstance(before, Mapping) else {}
        if "name" in value:
            before = _still_valid(key, before, value["name"])
        merged[key] = _merged(before, value)
    for key in changes:
        rival = _RIVALS.get(key)
        if rival and rival not in changes and changes[key] is not None:
            merged.pop(rival, None)
    return merged


def _still_valid(section: str, before: Table, name: Any) -> Table:
    """What of a choice's options stays when it gets a name."""
    if section == "partition" and isinstance(name, str):
        known = PartitionChoice.options_of(name)
        return {key: value for key, value in before.items() if key in known}
    return before if _same(before.get("name"), name) else {}


def _same(before: Any, name: Any) -> bool:
    return isinstance(before, str) and isinstance(name, str) and fold(before) == fold(name)


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
    hints = typing.get_type_hints(kind)
    parts = {part.name: part for part in dataclasses.fields(kind)}
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
    if inner[0] in _CHOICES and isinstance(value, str):
        return inner[0](value)
    if value is None and types.NoneType in kinds:
        return None
    if not isinstance(value, Mapping):
        raise ValueError(f"`{where}` must be a table. Got {value!r}.")
    if inner[0] not in _CHOICES:
        return _fill(inner[0], value, where)  # type: ignore[arg-type]
    if not isinstance(value.get("name"), str):
        raise ValueError(f"[{where}] must have a `name`. Got {dict(value)}.")
    return inner[0](value["name"], {k: v for k, v in value.items() if k != "name"})
