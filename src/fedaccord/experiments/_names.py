"""Names that users type, found among what the package defines: there is no list to keep."""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Callable, Mapping
from typing import Any

from torch import nn

from .. import data, models, rules
from ..errors import UnknownNameError
from ..rule import Rule


def rule_classes() -> dict[str, type[Rule[Any]]]:
    """Every rule by name."""
    exported = {name: getattr(rules, name) for name in rules.__all__}
    return {name: value for name, value in exported.items() if issubclass(value, Rule)}


def partition_functions() -> dict[str, Callable[..., data.Partition]]:
    """Every partition by name, as a command line spells it: ``client-dirichlet``."""
    suffix = "_partition"
    named = {name: getattr(data, name) for name in data.__all__ if name.endswith(suffix)}
    return {
        name.removesuffix(suffix).replace("_", "-"): function
        for name, function in named.items()
        # those read and write files, or take a partitioner
        if next(iter(inspect.signature(function).parameters)) not in ("path", "partitioner")
    }


def partition_function(name: str) -> Callable[..., data.Partition]:
    """Find a partition by its name; case and hyphens do not matter.

    :raises UnknownNameError: If there is none.
    """
    found: Callable[..., data.Partition] = _find("partition", name, partition_functions())
    return found


def model_factories() -> dict[str, Callable[..., nn.Module]]:
    """Every function of :mod:`fedaccord.models` that makes a model, by name."""
    return {
        name: value
        for name, value in vars(models).items()
        if not name.startswith("_")
        and f"{getattr(value, '__module__', '')}.".startswith(f"{models.__name__}.")
        and _makes_a_model(value)
    }


def model_factory(name: str) -> Callable[..., nn.Module]:
    """Find a model by its name; case and hyphens do not matter.

    :raises UnknownNameError: If there is none.
    """
    found: Callable[..., nn.Module] = _find("model", name, model_factories())
    return found


def canonical(kind: str, name: str, known: Mapping[str, Any]) -> str:
    """The spelling of ``name`` among ``known``; case, hyphens and underscores do not matter.

    :param kind: What is looked for, for the message.
    :raises UnknownNameError: If nothing has this name.
    """
    spelt = {fold(candidate): candidate for candidate in known}
    if fold(name) not in spelt:
        raise UnknownNameError.among(kind, name, known)
    return spelt[fold(name)]


def hyperparameters(rule: type[Rule[Any]]) -> dict[str, tuple[Any, Any]]:
    """A rule's hyperparameters: name to (type hint, default); ``MISSING`` without a default."""
    hints = typing.get_type_hints(rule)
    return {
        part.name: (hints[part.name], part.default)
        for part in dataclasses.fields(rule)  # type: ignore[arg-type]
        if part.init
    }


def options_of(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The keyword-only arguments of a partition, or all arguments of a model."""
    parameters = inspect.signature(function, eval_str=True).parameters
    keywords = {n: p for n, p in parameters.items() if p.kind is p.KEYWORD_ONLY}
    return keywords or dict(parameters)


def _find(kind: str, name: str, known: Mapping[str, Any]) -> Any:
    return known[canonical(kind, name, known)]


def fold(name: str) -> str:
    """A name without what does not matter in it: case, hyphens, underscores."""
    return name.casefold().replace("-", "").replace("_", "")


def _makes_a_model(value: Any) -> bool:
    if inspect.isclass(value):
        return issubclass(value, nn.Module)
    made = typing.get_type_hints(value).get("return") if inspect.isfunction(value) else None
    return inspect.isclass(made) and issubclass(made, nn.Module)
