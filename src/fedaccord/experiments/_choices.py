"""A partition or a model by name, with all its options spelt out."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from torch import nn

from ..data import Dataset, Partition
from ..errors import UnknownNameError
from ._names import (
    canonical,
    model_factories,
    options_of,
    partition_functions,
)
from ._values import convert


@dataclass(frozen=True)
class PartitionChoice:
    """A way of splitting samples over clients, and its parameters.

    :param name: The partition's name, for example ``"client-dirichlet"``.
    :param options: Its arguments.
    :raises UnknownNameError: If partition or option is unknown.
    :raises ValueError: If a required option is missing or of the wrong kind.
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        name = canonical("partition", self.name, partition_functions())
        parameters = _split_options(partition_functions()[name])
        object.__setattr__(self, "name", name)
        options = _checked(f"partition `{name}`", parameters, self.options)
        object.__setattr__(self, "options", options)

    def split(self, dataset: Dataset) -> Partition:
        """Split a dataset's training samples.

        :raises ValueError: If the split is impossible with these data.
        """
        function = partition_functions()[self.name]
        if self.name != "natural":
            return function(dataset.labels, **self.options)
        if dataset.client_ids is None:
            raise ValueError(
                f"Partition `natural` needs data that come by client. `{dataset.name}` does not; "
                f"choose another partition."
            )
        return function(dataset.client_ids.numpy())


@dataclass(frozen=True)
class ModelChoice:
    """A model of :mod:`fedaccord.models`.

    :param name: The model's name; case and hyphens do not matter.
    :param options: Arguments beside those that follow from the data.
    :raises UnknownNameError: If model or option is unknown.
    :raises ValueError: If an option is of the wrong kind.
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        name = canonical("model", self.name, model_factories())
        known = options_of(model_factories()[name])
        known = {key: value for key, value in known.items() if key not in _FROM_DATA}
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "options", _checked(f"model `{name}`", known, self.options))

    def factory(self, dataset: Dataset) -> Callable[[], nn.Module]:
        """The factory of models for a dataset's inputs and classes."""
        function = model_factories()[self.name]
        parameters = options_of(function)
        shape = tuple(dataset.train.inputs.shape[1:])
        one = parameters["num_classes"].annotation is int if "num_classes" in parameters else True
        known = {
            "num_classes": dataset.num_classes[0] if one else dataset.num_classes,
            "in_channels": shape[0],
            "in_features": shape[0],
        }
        given = {key: value for key, value in known.items() if key in parameters}
        return partial(function, **given, **self.options)


_FROM_DATA = ("num_classes", "in_channels", "in_features")


def _split_options(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """A partition's keyword-only arguments; the natural one has none."""
    known = options_of(function)
    return {key: value for key, value in known.items() if value.kind is value.KEYWORD_ONLY}


def _checked(
    owner: str, known: Mapping[str, inspect.Parameter], given: Mapping[str, Any]
) -> dict[str, Any]:
    for key in given:
        if key not in known:
            if not known:
                raise UnknownNameError(f"The {owner} has no option `{key}`. It has none.")
            raise UnknownNameError.among(f"option of {owner}", key, known)
    options = {}
    for key, parameter in known.items():
        if key in given:
            options[key] = convert(given[key], parameter.annotation, name=key)
        elif parameter.default is not parameter.empty:
            options[key] = parameter.default
        else:
            raise ValueError(f"The {owner} needs `{key}`.")
    return options
