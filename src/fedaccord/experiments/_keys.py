"""Where each key of an experiment belongs."""

from __future__ import annotations

import dataclasses
import difflib
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..errors import UnknownNameError
from ._choices import ModelChoice, PartitionChoice
from ._experiment import Experiment
from ._names import hyperparameters, model_factories, partition_functions, rule_classes
from ._rule_choice import RuleChoice
from ._values import is_union

# what a choice takes beside its name depends on the name
_OPTIONS: Mapping[type, Callable[[str], Iterable[str]]] = {
    RuleChoice: lambda name: hyperparameters(rule_classes()[RuleChoice.spelling(name)]),
    PartitionChoice: PartitionChoice.options_of,
    ModelChoice: ModelChoice.options_of,
}

TOP = ""
"""The place of keys outside of every table."""


def places(table: Mapping[str, Any]) -> dict[str, set[str]]:
    """The keys that each place of an experiment's table takes.

    :param table: The experiment; rule, partition and model in it decide what their tables take.
    :return: Keys by the table's name, those outside of every table under ``""``.
    :raises UnknownNameError: If rule, partition or model are unknown.
    """
    hints = typing.get_type_hints(Experiment)
    found: dict[str, set[str]] = {TOP: set(hints)}
    for section, hint in hints.items():
        kinds = typing.get_args(hint) if is_union(hint) else (hint,)
        (kind, *_) = kinds
        if kind in _OPTIONS:
            given = table.get(section)
            name = given.get("name") if isinstance(given, Mapping) else given
            options = _OPTIONS[kind](name) if isinstance(name, str) else ()
            found[section] = {"name", *options}
        elif dataclasses.is_dataclass(kind):
            found[section] = {part.name for part in dataclasses.fields(kind)}
    return found


def require_known(table: Mapping[str, Any]) -> None:
    """Check that every key is where it belongs.

    :param table: The experiment.
    :raises UnknownNameError: If one is not; the message names where it belongs, or the nearest.
    """
    known = places(table)
    for key, value in table.items():
        _require(key, TOP, known)
        if key in known and isinstance(value, Mapping):
            for name in value:
                _require(name, key, known)


def _require(key: str, place: str, known: Mapping[str, set[str]]) -> None:
    if key in known[place]:
        return
    what = f"key in [{place}]" if place else "key"
    if homes := [home for home, keys in known.items() if key in keys]:
        told = " or ".join(_spell(home, key) for home in homes)
        raise UnknownNameError(f"Unknown {what} `{key}`. It belongs {told}.")
    if place in _CHOSEN and key in _CHOSEN[place]():
        return  # another name of this table takes it
    if not difflib.get_close_matches(key, known[place], n=1):
        everywhere = {name: home for home, keys in known.items() for name in keys}
        if near := difflib.get_close_matches(key, everywhere, n=1, cutoff=0.75):
            told = _spell(everywhere[near[0]], near[0])
            raise UnknownNameError(
                f"Unknown {what} `{key}`. Did you mean `{near[0]}`? It belongs {told}."
            )
    if place in _CHOSEN:
        return  # the choice itself says what its name takes
    raise UnknownNameError.among(what, key, known[place])


def _of_all(kind: type, names: Callable[[], Iterable[str]]) -> Callable[[], set[str]]:
    """What any of the choices of a kind takes."""
    return lambda: {key for name in names() for key in _OPTIONS[kind](name)}


_CHOSEN: Mapping[str, Callable[[], set[str]]] = {
    "rule": _of_all(RuleChoice, rule_classes),
    "partition": _of_all(PartitionChoice, partition_functions),
    "model": _of_all(ModelChoice, model_factories),
}


def _spell(place: str, key: str) -> str:
    return f"to [{place}], as `{place}.{key}`" if place else "to the top, above every [table]"
