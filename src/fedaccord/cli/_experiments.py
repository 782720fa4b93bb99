"""From a call to experiments."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..experiments import Experiment, RuleChoice, from_table, override, preset, to_table
from ._options import changes
from ._spec import parse_rule

DEFAULT_DATASET = "fashion-mini"


def experiment_of(
    rule: str,
    given: Mapping[str, Any],
    *,
    seed: int | None = None,
    base: Mapping[str, Any] | None = None,
) -> Experiment:
    """The experiment that a call describes.

    :param rule: The rule as typed.
    :param given: The command's parameters.
    :param seed: The run's seed.
    :param base: Values for what is not given; those that go with the dataset by default.
    :raises ValueError: If a name is unknown or a value is out of range.
    """
    typed = parse_rule(rule)
    lr = given.get("server_lr")
    choice = typed.choice if lr is None else typed.with_server_lr(lr)
    table = dict(base or preset(given.get("dataset") or DEFAULT_DATASET))
    table["rule"] = to_table(choice)
    table = override(table, {**_applied(given, seed), **typed.local})
    if not choice.lacks_reference:
        table.pop("calibration", None)
    return from_table(table)


def changed(base: Mapping[str, Any], given: Mapping[str, Any], *, seed: int | None) -> Experiment:
    """The experiment of a folder with what a call changes in it.

    :param base: The folder's configuration.
    :param given: The command's parameters.
    :param seed: The run's seed, if given.
    """
    table = dict(base)
    if given.get("server_lr") is not None:
        rule = {k: v for k, v in table["rule"].items() if k != "name"}
        rule["server_lr"] = given["server_lr"]
        table["rule"] = to_table(RuleChoice(table["rule"]["name"], rule))
    return from_table(override(table, _applied(given, seed)))


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


def _applied(given: Mapping[str, Any], seed: int | None) -> dict[str, Any]:
    applied = changes(given)
    if given.get("dataset") is not None:
        applied["dataset"] = given["dataset"]
    if seed is not None:
        applied["seed"] = seed
    return applied
