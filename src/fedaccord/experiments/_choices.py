"""A partition or a model by name, with all its options spelt out."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from torch import nn

from ..data import Dataset, Holdout, Partition, hold_out
from ..errors import UnknownNameError
from ._names import (
    canonical,
    model_factories,
    model_factory,
    options_of,
    partition_function,
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
        parameters = self.options_of(name)
        object.__setattr__(self, "name", name)
        options = _checked(f"partition `{name}`", parameters, self.options)
        object.__setattr__(self, "options", options)

    @staticmethod
    def options_of(name: str) -> dict[str, inspect.Parameter]:
        """A partition's keyword-only arguments; the natural one has none.

        :raises UnknownNameError: If there is no such partition.
        """
        known = options_of(partition_function(name))
        return {key: value for key, value in known.items() if value.kind is value.KEYWORD_ONLY}

    def split(self, dataset: Dataset) -> Partition:
        """Split a dataset's training samples.

        :raises ValueError: If the split is impossible with these data.
        """
        function = partition_functions()[self.name]
        # what is split is told by the name of the argument
        of = next(iter(inspect.signature(function).parameters))
        if of == "client_ids":
            if dataset.client_ids is None:
                raise ValueError(
                    f"Partition `{self.name}` needs data that come by client. `{dataset.name}` "
                    f"does not; choose another partition."
                )
            return function(dataset.client_ids.numpy(), **self.options)
        if of == "samples":
            return function(len(dataset.train), **self.options)
        values = dataset.train.inputs if of == "inputs" else dataset.labels
        return function(values, **self.options)


@dataclass(frozen=True)
class HoldoutChoice:
    """What clients keep back; see :func:`~fedaccord.data.hold_out`.

    :param test: Part of every client's samples to test on, in ``[0, 1)``.
    :param validation: Part to tune on, likewise.
    :param clients: Part of the clients that never train.
    :param seed: Determines which.
    :raises ValueError: If a part is out of range.
    """

    test: float = 0.0
    validation: float = 0.0
    clients: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("test", "validation", "clients"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"`holdout.{name}` must be in [0, 1). Got {getattr(self, name)}.")

    def of(self, partition: Partition, dataset: Dataset) -> Holdout:
        """Hold back; where tasks have classes every part has a client's proportions of them.

        :raises ValueError: If rows are wanted and no client has enough.
        """
        classes = all(kind == "classes" for kind in dataset.kinds)
        held = hold_out(
            partition,
            test=self.test,
            validation=self.validation,
            clients=self.clients,
            stratify=dataset.labels if classes and (self.test or self.validation) else None,
            seed=self.seed,
        )
        for name, part in (("test", held.test), ("validation", held.validation)):
            if getattr(self, name) and not any(part.sizes):
                raise ValueError(
                    f"`holdout.{name}` leaves no client a row: the largest has "
                    f"{max(partition.sizes)}. Got {getattr(self, name)}; give more."
                )
        return held


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
        options = _checked(f"model `{name}`", self.options_of(name), self.options)
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "options", options)

    @staticmethod
    def options_of(name: str) -> dict[str, inspect.Parameter]:
        """What a model takes beside what follows from the data.

        :raises UnknownNameError: If there is no such model.
        """
        known = options_of(model_factory(name))
        return {key: value for key, value in known.items() if key not in _FROM_DATA}

    def factory(self, dataset: Dataset) -> Callable[[], nn.Module]:
        """The factory of models for a dataset's inputs and classes."""
        function = model_factories()[self.name]
        parameters = options_of(function)
        shape = dataset.input_shape
        one = parameters["num_classes"].annotation is int if "num_classes" in parameters else True
        known = {
            "num_classes": dataset.num_classes[0] if one else dataset.num_classes,
            "num_outputs": dataset.num_outputs,
            "in_channels": shape[0] if shape else 1,
            "in_features": math.prod(shape),
        }
        given = {key: value for key, value in known.items() if key in parameters}
        return partial(function, **given, **self.options)


_FROM_DATA = ("num_classes", "num_outputs", "in_channels", "in_features")


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
