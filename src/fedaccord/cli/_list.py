"""``fedaccord list``: every name a run can be given."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import click

KINDS = ("rules", "datasets", "models", "partitions")


@click.command("list", short_help="Show rules, datasets, models and partitions.")
@click.argument("kind", required=False, metavar="[KIND]", type=click.Choice(KINDS))
def list_(kind: str | None) -> None:
    """Show every rule with its hyperparameters, defaults and paper, and all other names.

    KIND shows one of the lists alone: rules, datasets, models or partitions.
    """
    from ._show import console

    screen = console()
    shown = [kind] if kind else KINDS
    for number, each in enumerate(shown):
        if number:
            screen.print()
        screen.print(each.capitalize(), style="bold")
        for name, *lines in _LISTS[each]():
            screen.print(f"  {name}", style="cyan", soft_wrap=True)
            for line in filter(None, lines):
                screen.print(f"      {line}", soft_wrap=True)


def _rules() -> list[tuple[str, ...]]:
    from ..experiments import hyperparameters, rule_classes

    return [
        (
            name,
            _first_sentence(rule),
            ", ".join(_default(*each) for each in hyperparameters(rule).items()),
            rule.paper,
        )
        for name, rule in rule_classes().items()
    ]


def _datasets() -> list[tuple[str, ...]]:
    from ..data import list_datasets, load

    found: list[tuple[str, ...]] = []
    for name in list_datasets():
        data = load(name)
        natural = f", {len(data.client_names)} natural clients" if data.client_names else ""
        found.append(
            (
                name,
                data.description,
                f"{len(data.train):,} + {len(data.test):,} samples, {data.num_tasks} task(s)"
                f"{natural}, licence {data.licence}",
            )
        )
    return found


def _models() -> list[tuple[str, ...]]:
    from ..experiments import model_factories

    return [(name, _first_sentence(model)) for name, model in model_factories().items()]


def _partitions() -> list[tuple[str, ...]]:
    from ..experiments import options_of, partition_functions

    return [
        (
            name,
            _first_sentence(function),
            ", ".join(
                key if option.default is option.empty else f"{key}={option.default}"
                for key, option in options_of(function).items()
                if option.kind is option.KEYWORD_ONLY
            ),
        )
        for name, function in partition_functions().items()
    ]


_LISTS = {"rules": _rules, "datasets": _datasets, "models": _models, "partitions": _partitions}


def _first_sentence(value: Any) -> str:
    """The first line of a docstring, without the marks of its markup."""
    line = (value.__doc__ or "").strip().splitlines()[0]
    line = re.sub(r"\\mathrm\{(\w+)\}", r"\1", line)
    return line.replace(":math:", "").replace("`", "").replace("\\", "")


def _default(name: str, hint_and_default: tuple[Any, Any]) -> str:
    default = hint_and_default[1]
    if default is not dataclasses.MISSING:
        return f"{name}={default}"
    return f"{name} (calibrated unless given)" if name == "reference" else f"{name} (required)"
