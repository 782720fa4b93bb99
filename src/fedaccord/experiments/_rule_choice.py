"""A rule by name, with all its hyperparameters spelt out."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import UnknownNameError
from ..rule import Rule
from ._names import canonical, hyperparameters, rule_classes
from ._values import convert

REFERENCE = "reference"
"""The hyperparameter that calibration can fill in."""


@dataclass(frozen=True)
class RuleChoice:
    """A rule and its hyperparameters.

    :param name: The rule's name; case and hyphens do not matter.
    :param options: Hyperparameters by name; those left out get the rule's defaults. The value of a
        rule inside a rule is a :class:`RuleChoice`, a name, or a mapping with a ``name``.
    :raises UnknownNameError: If rule or hyperparameter is unknown; the message names the nearest.
    :raises ValueError: If a value is of the wrong kind or out of the rule's range.
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        name = self.spelling(self.name)
        known = hyperparameters(rule_classes()[name])
        options: dict[str, Any] = {}
        for key in self.options:
            if key not in known:
                raise UnknownNameError.among(f"hyperparameter of {name}", key, known)
        for key, (hint, default) in known.items():
            if key in self.options:
                options[key] = convert(self.options[key], hint, name=key, special=_inner_rule)
            elif default is not dataclasses.MISSING:
                options[key] = _choice_of(default) if isinstance(default, Rule) else default
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "options", options)
        # the rule's own checks, with a stand-in for what calibration will find
        self.with_reference((1.0,)).build()

    @staticmethod
    def spelling(name: str) -> str:
        """The rule's own spelling of a name.

        :raises UnknownNameError: If there is no such rule; the message names the nearest.
        """
        return canonical("rule", name, rule_classes())

    def build(self) -> Rule[Any]:
        """Make the rule.

        :raises ValueError: If a required hyperparameter is missing, or a value is out of range.
        """
        known = hyperparameters(rule_classes()[self.name])
        if missing := [key for key in known if key not in self.options]:
            raise ValueError(f"{self.name} needs `{missing[0]}`. Write `{missing[0]}=...`.")
        options = {
            key: value.build() if isinstance(value, RuleChoice) else value
            for key, value in self.options.items()
        }
        return rule_classes()[self.name](**options)

    @property
    def lacks_reference(self) -> bool:
        """Whether this rule, or one inside it, has a ``reference`` that is not given."""
        known = hyperparameters(rule_classes()[self.name])
        inner = (v for v in self.options.values() if isinstance(v, RuleChoice))
        own = REFERENCE in known and REFERENCE not in self.options
        return own or any(choice.lacks_reference for choice in inner)

    def with_reference(self, reference: tuple[float, ...]) -> RuleChoice:
        """Fill in ``reference`` where it is not given."""
        if not self.lacks_reference:
            return self
        options = {
            key: value.with_reference(reference) if isinstance(value, RuleChoice) else value
            for key, value in self.options.items()
        }
        if REFERENCE in hyperparameters(rule_classes()[self.name]):
            options.setdefault(REFERENCE, reference)
        return RuleChoice(self.name, options)

    def __str__(self) -> str:
        """What differs from the defaults, as the command line takes it."""
        known = hyperparameters(rule_classes()[self.name])
        changed = {
            key: value
            for key, value in self.options.items()
            if known[key][1] is dataclasses.MISSING or value != known[key][1]
        }
        text = ",".join(f"{key}={_spell(value)}" for key, value in changed.items())
        return f"{self.name}:{text}" if text else self.name


def _inner_rule(value: Any, hint: Any) -> Any:
    origin = getattr(hint, "__origin__", hint)
    if not (inspect.isclass(origin) and issubclass(origin, Rule)):
        return NotImplemented
    if isinstance(value, RuleChoice):
        return value
    if isinstance(value, str):
        return RuleChoice(value)
    if isinstance(value, Mapping) and "name" in value:
        return RuleChoice(value["name"], {k: v for k, v in value.items() if k != "name"})
    return NotImplemented


def _choice_of(rule: Rule[Any]) -> RuleChoice:
    names = hyperparameters(type(rule))
    return RuleChoice(type(rule).__name__, {name: getattr(rule, name) for name in names})


def _spell(value: Any) -> str:
    if isinstance(value, RuleChoice):
        return f"({value})"
    if isinstance(value, tuple):
        return "[" + ",".join(_spell(item) for item in value) + "]"
    return str(value).lower() if isinstance(value, bool) or value is None else f"{value}"
