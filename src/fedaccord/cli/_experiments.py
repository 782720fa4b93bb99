"""From a call to experiments."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..experiments import (
    Experiment,
    Table,
    completed,
    from_table,
    override,
    preset,
    read_file,
    to_table,
    usual_settings,
)
from ._errors import UserError
from ._options import OPTION_OF, changes
from ._spec import TypedRule, parse_rule, parse_value

DEFAULT_DATASET = "fashion-mini"


def is_file(typed: str | None) -> bool:
    """Whether what was typed in a rule's place is a file: its name ends in ``.toml``."""
    return typed is not None and typed.casefold().endswith(".toml")


def experiment_of(
    rule: str | None,
    given: Mapping[str, Any],
    *,
    seed: int | None = None,
    base: Mapping[str, Any] | None = None,
) -> Experiment:
    """The experiment that a call describes.

    :param rule: The rule as typed, or a file; ``None`` for the one that ``base`` or a preset has.
    :param given: The command's parameters.
    :param seed: The run's seed.
    :param base: Values for what is not given, instead of a file's or the usual ones.
    :raises ValueError: If a name is unknown, a value is out of range or given twice.
    """
    typed = parse_rule(rule) if rule is not None and not is_file(rule) else None
    values = _values(given, typed, seed=seed)
    if base is None:
        base = _base(rule, dataset=values.pop("dataset", None), named=given.get("preset"))
    table = dict(base)
    if typed is not None:
        table["rule"] = to_table(typed.choice)
    elif "rule" not in table:
        raise UserError(
            "`run` needs a rule, for example `fedaccord run fedpcd`."
            if rule is None
            else f"`{rule}` names no rule. Add a table [rule] with a `name`."
        )
    table = override(table, values)
    if typed is not None and not typed.choice.lacks_reference:
        table.pop("calibration", None)
    return from_table(table)


def parse_sets(texts: Iterable[str]) -> dict[str, Any]:
    """Values by dotted key, of arguments ``KEY=VALUE``.

    :raises ValueError: If one cannot be read, or a key repeats.
    """
    values: dict[str, Any] = {}
    for text in texts:
        key, equals, value = (part.strip() for part in text.partition("="))
        if not (key and equals and value) or not all(key.split(".")):
            raise ValueError(f"`--set` takes KEY=VALUE, as in `--set local.lr=0.1`. Got {text!r}.")
        if key in values:
            raise ValueError(f"`{key}` is given twice, both times by `--set`.")
        values[key] = parse_value(value, rules=key.startswith("rule."))
    return values


def labels(experiments: list[Experiment]) -> list[str]:
    """A name for each: its rule's, with hyperparameters where the rule alone is ambiguous."""
    plain = [experiment.rule.name for experiment in experiments]
    if len(set(plain)) == len(plain):
        return plain
    names = [str(experiment.rule) for experiment in experiments]
    if len(set(names)) == len(names):
        return names
    return [
        f"{name} lr={experiment.local.lr:g}"
        for name, experiment in zip(names, experiments, strict=True)
    ]


def slug(label: str) -> str:
    """A label as the name of a folder."""
    return re.sub(r"[^a-z0-9.]+", "-", label.casefold()).strip("-.")


def _base(rule: str | None, *, dataset: str | None, named: str | None) -> Table:
    """What the values of a call change: a file's, a preset's or a dataset's usual ones."""
    if rule is not None and is_file(rule):
        if named is not None:
            raise UserError(
                f"Give a file or `--preset`. A file says itself what it starts from: write "
                f'`preset = "{named}"` in `{rule}`.'
            )
        table = read_file(Path(rule))
        return completed(table if dataset is None else {**table, "dataset": dataset})
    if named is None:
        return usual_settings(dataset or DEFAULT_DATASET)
    if dataset is not None:
        raise UserError(
            "Give `--preset` or `--dataset`, not both: a preset says which data it is for."
        )
    return preset(named)


def _values(given: Mapping[str, Any], typed: TypedRule | None, *, seed: int | None) -> Table:
    """What the call changes, by dotted key. What is typed with a rule holds for that rule."""
    options, sets = changes(given), parse_sets(given.get("sets", ()))
    if seed is not None:
        options["seed"] = seed
    for key in sets:
        if key in options:
            raise UserError(f"`{key}` is given twice: by `{OPTION_OF[key]}` and by `--set`.")
        if typed is not None and any(f"{each}.".startswith(f"{key}.") for each in typed.keys):
            raise UserError(f"`{key}` is given twice: with the rule and by `--set`.")
    if typed is not None:
        options = {key: value for key, value in options.items() if key not in typed.keys}
    return {**options, **(typed.local if typed else {}), **sets}
