"""Rules as a command line spells them: ``fedpcd:tau=0.05,history=3``."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..clients import LocalSGD
from ..errors import UnknownNameError
from ..experiments import RuleChoice, hyperparameters, rule_classes

# what clients do can differ between rules, as learning rates in published tables do
LOCAL = tuple(part.name for part in dataclasses.fields(LocalSGD) if part.name != "report")

DEEPEST = 20


@dataclass(frozen=True)
class TypedRule:
    """A rule as typed.

    :param choice: The rule.
    :param typed: The hyperparameters that were typed.
    :param local: Values of local training for this rule alone, by dotted key.
    """

    choice: RuleChoice
    typed: tuple[str, ...]
    local: Mapping[str, Any]

    @property
    def keys(self) -> set[str]:
        """The dotted keys of everything that was typed."""
        return {"rule.name", *(f"rule.{key}" for key in self.typed), *self.local}


def parse_rule(text: str) -> TypedRule:
    """Read a rule with its hyperparameters.

    ``NAME`` or ``NAME:KEY=VALUE,KEY=VALUE``. A value is a number, ``true``, ``false``, ``none``, a
    word, a list ``[2.4,2.5]``, or a rule, in parentheses if it has hyperparameters of its own:
    ``fedhv:server=(fedpcd:tau=0.05,history=3)``. Keys of local training, such as ``lr``, may be
    given too and hold for this rule alone.

    :param text: What was typed.
    :raises UnknownNameError: If a name is unknown; the message names the nearest.
    :raises ValueError: If the text cannot be read or a value is out of range.
    """
    name, options = _parse(text)
    known = hyperparameters(rule_classes()[RuleChoice.spelling(name)])
    local = {}
    for key in list(options):
        if key not in known and key in LOCAL:
            local[f"local.{key}"] = options.pop(key)
        elif key not in known:
            kind = f"hyperparameter of {RuleChoice.spelling(name)}"
            raise UnknownNameError.among(kind, key, {*known, *LOCAL})
    return TypedRule(RuleChoice(name, options), tuple(options), local)


def _parse(text: str, depth: int = 0) -> tuple[str, dict[str, Any]]:
    name, colon, rest = text.strip().partition(":")
    options: dict[str, Any] = {}
    for item in _split(rest) if colon else ():
        key, equals, value = item.partition("=")
        if not (equals and key.strip() and value.strip()):
            raise ValueError(f"A rule is written `name:key=value,key=value`. Got {text!r}.")
        if key.strip() in options:
            raise ValueError(f"A key may be given once. Got `{key.strip()}` twice in {text!r}.")
        options[key.strip()] = parse_value(value.strip(), depth=depth)
    return name, options


def parse_value(text: str, *, rules: bool = True, depth: int = 0) -> Any:
    """Read a value as the command line spells it.

    :param text: What was typed.
    :param rules: Whether it may be a rule; a word with a colon is one then.
    :param depth: How many brackets it stands in.
    :raises ValueError: If it is nested too deep, or a rule cannot be read.
    """
    if depth > DEEPEST:
        raise ValueError(f"Brackets may be nested {DEEPEST} deep. Got more.")
    if rules and text.startswith("(") and text.endswith(")"):
        return _rule(text[1:-1], depth + 1)
    if text.startswith("[") and text.endswith("]"):
        items = (item.strip() for item in _split(text[1:-1]))
        return tuple(parse_value(item, rules=rules, depth=depth + 1) for item in items if item)
    words = {"true": True, "false": False, "none": None}
    if text.casefold() in words:
        return words[text.casefold()]
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return _rule(text, depth + 1) if rules and ":" in text else text


def _rule(text: str, depth: int) -> dict[str, Any]:
    name, options = _parse(text, depth)
    return {"name": name, **options}


def _split(text: str) -> Iterator[str]:
    """Split at commas outside of brackets."""
    depth, start = 0, 0
    for position, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            yield text[start:position]
            start = position + 1
    yield text[start:]
