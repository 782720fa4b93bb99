"""Rules inside rules: passing a round on, and refusing what makes no sense together."""

from __future__ import annotations

import inspect
from collections.abc import Generator, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeAlias

from torch import Tensor

from ..clients import ClientAlgorithm, LocalTraining
from ..cohort import Cohort
from ..rule import Aggregation, Flow, Request, Rule, S

Relay: TypeAlias = Generator[Request, Cohort, tuple[Cohort, Aggregation[S]]]
"""A round that also returns what clients answered in phase ``"train"``."""


def relay(flow: Flow[S], payload: Mapping[str, Tensor] | None = None) -> Relay[S]:
    """Carry out another rule's round.

    :param flow: That rule's round.
    :param payload: Sent with every request, beside what the rule sends.
    :returns: The cohort of the last request of phase ``"train"``, and the aggregation.
    """
    request = next(flow)
    trained: Cohort | None = None
    while True:
        sent = {**request.payload, **(payload or {})}
        cohort = yield Request(request.phase, request.params, sent)
        if request.phase == "train" or trained is None:
            trained = cohort
        try:
            request = flow.send(cohort)
        except StopIteration as stop:
            return trained, stop.value


def parts(rule: Rule[Any]) -> Iterator[Rule[Any]]:
    """A rule and all rules inside it."""
    yield rule
    if is_dataclass(rule):
        for part in fields(rule):
            inner = getattr(rule, part.name)
            if isinstance(inner, Rule):
                yield from parts(inner)


def check_inner(
    outer: Rule[Any], inner: Any, *, name: str, refused: Mapping[type[Any], str]
) -> None:
    """Refuse a rule that makes no sense inside another.

    :param outer: The rule that holds it.
    :param inner: What was given for it.
    :param name: The hyperparameter it was given for.
    :param refused: Rules that must not be inside at any depth, and why.
    :raises ValueError: If it is no rule, has no phase ``"train"``, or is refused.
    """
    if not isinstance(inner, Rule):
        raise ValueError(f"`{name}` must be a rule, such as `FedAvg()`. Got {inner!r}.")
    if "train" not in inner.needs:
        raise ValueError(
            f"`{name}` must train in a phase 'train'. {type(inner).__name__} has "
            f"{sorted(inner.needs)}."
        )
    for part in parts(inner):
        for kind, reason in refused.items():
            if isinstance(part, kind):
                raise ValueError(
                    f"{type(outer).__name__} cannot have {type(part).__name__} inside: {reason}"
                )


def check_hooks(outer: Rule[Any], local: LocalTraining) -> None:
    """Refuse local training that cannot be given another objective or corrected gradients.

    :param outer: The rule that changes what clients do.
    :raises ValueError: If its call takes neither ``objective`` nor ``correct``.
    """
    try:
        inspect.signature(local).bind(None, None, objective=None, correct=None)
    except TypeError as error:
        raise ValueError(
            f"{type(outer).__name__} changes how clients train. `local` must be callable as "
            f"`local(job, model, objective=..., correct=...)`, like `LocalSGD`. Got "
            f"{type(local).__name__}: {error}."
        ) from error


def check_follows(outer: Rule[Any], inner: Rule[Any], algorithm: ClientAlgorithm) -> None:
    """Refuse a rule whose clients do not train once, as local training does.

    :param outer: The rule that changes what clients do.
    :param inner: The rule inside it.
    :param algorithm: What clients of ``inner`` do in phase ``"train"``.
    :raises ValueError: If a client trains in a way of its own.
    """
    if not isinstance(algorithm, LocalTraining):
        raise ValueError(
            f"{type(outer).__name__} follows one path of local training, but clients of "
            f"{type(inner).__name__} do something else ({type(algorithm).__name__})."
        )
