"""``fedaccord list``: every name a run can be given."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import click

from ._options import machine

KINDS = ("rules", "datasets", "models", "partitions", "presets")


@dataclass(frozen=True)
class Entry:
    """One name.

    :param name: The name.
    :param about: What it stands for, in a sentence.
    :param lines: What else is shown, a line each; empty ones are left out.
    :param facts: The same for programs.
    """

    name: str
    about: str
    lines: tuple[str, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)


@click.command("list", short_help="Show rules, datasets, models, partitions and presets.")
@click.argument("kind", required=False, metavar="[KIND]", type=click.Choice(KINDS))
@machine
def list_(kind: str | None, as_json: bool) -> None:
    """Show every rule with its hyperparameters, defaults and paper, and all other names.

    KIND shows one of the lists alone: rules, datasets, models, partitions or presets.
    """
    from ._errors import preparing
    from ._machine import print_json
    from ._show import console

    with preparing():
        found = {each: _LISTS[each]() for each in ([kind] if kind else KINDS)}
    if as_json:
        print_json(
            {
                each: [{"name": e.name, "about": e.about, **e.facts} for e in entries]
                for each, entries in found.items()
            }
        )
        return
    screen = console()
    for number, (each, entries) in enumerate(found.items()):
        if number:
            screen.print()
        screen.print(each.capitalize(), style="bold")
        for entry in entries:
            screen.print(f"  {entry.name}", style="cyan", soft_wrap=True)
            for line in filter(None, (entry.about, *entry.lines)):
                screen.print(f"      {line}", soft_wrap=True)


def _rules() -> list[Entry]:
    from ..experiments import hyperparameters, rule_classes

    entries = []
    for name, rule in rule_classes().items():
        known = {key: default for key, (_, default) in hyperparameters(rule).items()}
        required = [key for key, default in known.items() if default is dataclasses.MISSING]
        defaults = {key: value for key, value in known.items() if key not in required}
        facts = {"defaults": _worded(defaults), "required": required, "paper": rule.paper}
        options = ", ".join(_spelt(key, default) for key, default in known.items())
        entries.append(Entry(name, _first_sentence(rule), (options, rule.paper), facts))
    return entries


def _datasets() -> list[Entry]:
    from ..data import describe, list_datasets

    entries = []
    for info in map(describe, list_datasets()):
        facts = {
            "train": info.num_train,
            "test": info.num_test,
            "tasks": info.tasks,
            "clients": info.num_clients,
            "licence": info.licence,
            "shipped": info.shipped,
        }
        natural = f", {info.num_clients} natural clients" if info.num_clients else ""
        line = (
            f"{info.num_train:,} + {info.num_test:,} samples, {len(info.tasks)} "
            f"task{'s' * (len(info.tasks) > 1)}{natural}, licence {info.licence}; "
            f"{'in the package' if info.shipped else 'needs its files in a --data-dir'}"
        )
        entries.append(Entry(info.name, info.description, (line,), facts))
    return entries


def _models() -> list[Entry]:
    from ..experiments import model_factories

    return [Entry(name, _first_sentence(model)) for name, model in model_factories().items()]


def _partitions() -> list[Entry]:
    from ..experiments import PartitionChoice, partition_functions

    entries = []
    for name, function in partition_functions().items():
        known = PartitionChoice.options_of(name)
        required = [key for key, option in known.items() if option.default is option.empty]
        defaults = {key: known[key].default for key in known if key not in required}
        options = ", ".join([*required, *(f"{key}={value}" for key, value in defaults.items())])
        facts = {"defaults": _worded(defaults), "required": required}
        entries.append(Entry(name, _first_sentence(function), (options,), facts))
    return entries


def _presets() -> list[Entry]:
    from ..experiments import list_presets, read_preset

    entries = []
    for preset in map(read_preset, list_presets()):
        needs = "data from --data-dir" if preset.needs_data else "nothing: its data are shipped"
        facts = {
            "description": preset.description,
            "minutes": preset.minutes,
            "measured": preset.measured,
            "needs_data": preset.needs_data,
            "rules": preset.rules,
        }
        about = f"about {preset.minutes:g} min on two cores ({preset.measured}); needs {needs}"
        rules = f"compares {' '.join(preset.rules)}" if preset.rules else ""
        entries.append(Entry(preset.name, preset.title, (preset.description, rules, about), facts))
    return entries


_LISTS: dict[str, Callable[[], list[Entry]]] = {
    "rules": _rules,
    "datasets": _datasets,
    "models": _models,
    "partitions": _partitions,
    "presets": _presets,
}


def _first_sentence(value: Any) -> str:
    """The first line of a docstring, without the marks of its markup."""
    line = (value.__doc__ or "").strip().splitlines()[0]
    line = re.sub(r"\\mathrm\{(\w+)\}", r"\1", line)
    return line.replace(":math:", "").replace("`", "").replace("\\", "")


def _spelt(name: str, default: Any) -> str:
    if default is not dataclasses.MISSING:
        return f"{name}={default}"
    return f"{name} (calibrated unless given)" if name == "reference" else f"{name} (required)"


def _worded(defaults: dict[str, Any]) -> dict[str, Any]:
    """Defaults as JSON has them; of others, what they print."""
    kinds = (bool, int, float, str, type(None))
    return {
        key: value if isinstance(value, kinds) else str(value) for key, value in defaults.items()
    }
