"""One client's answer, and what to do if it cannot be used."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from .errors import MalformedReplyError
from .layout import Layout, Spec


@dataclass(frozen=True)
class Policy:
    """What to do with contributions that cannot be used and with rounds that have none.

    :param on_invalid: ``"raise"`` stops at the first contribution that is non-finite, malformed or
        failed, before anything has changed. ``"drop"`` goes on exactly as if that client had not
        been asked; the record lists it.
    :param on_empty: ``"raise"`` stops when no contribution is left or the total weight is zero.
        ``"skip"`` keeps model and rule state and marks the round as empty.
    :raises ValueError: If a value is none of these.
    """

    on_invalid: Literal["raise", "drop"] = "raise"
    on_empty: Literal["raise", "skip"] = "raise"

    def __post_init__(self) -> None:
        for name, allowed in (("on_invalid", ("raise", "drop")), ("on_empty", ("raise", "skip"))):
            if getattr(self, name) not in allowed:
                raise ValueError(f"`{name}` must be in {allowed}. Got {getattr(self, name)!r}.")


@dataclass(frozen=True)
class Reply:
    """One client's answer to one request.

    :param client_id: The client; its data's index, not its position in a round.
    :param num_examples: Size of its training set, at least 0.
    :param fields: What it reports: ``update`` ``[dim]`` (local minus received parameters),
        ``loss`` ``[]`` and ``task_loss`` ``[m]`` (of the received model, before training),
        ``client_lr`` ``[]``, ``train_loss`` ``[]``, ``task_update`` ``[m, dim]``.
    :raises ValueError: If the id or the number is negative or no whole number.
    """

    client_id: int
    num_examples: int
    fields: Mapping[str, Tensor]

    def __post_init__(self) -> None:
        for name in ("client_id", "num_examples"):
            value = getattr(self, name)
            try:
                whole = operator.index(value)  # NumPy's integers and tensors of one count too
            except TypeError:
                whole = -1
            if not 0 <= whole < 2**63:
                raise ValueError(f"`{name}` must be a whole number of at least 0. Got {value!r}.")
            object.__setattr__(self, name, whole)


def malformed(reply: Reply) -> MalformedReplyError | None:
    """Say which field is no tensor, or an update that is no vector, or nothing."""
    who = f"from client {reply.client_id}"
    for name, value in reply.fields.items():
        if not isinstance(value, Tensor):
            return MalformedReplyError(
                f"Every field must be a tensor. Got `{name}` of type {type(value).__name__} {who}. "
                f"Write `torch.as_tensor(...)`."
            )
        if name == "update" and not (value.dim() == 1 and value.is_floating_point()):
            return MalformedReplyError(
                f"`update` must be a floating-point vector [dim]. Got shape {tuple(value.shape)} "
                f"of {value.dtype} {who}."
            )
        if name == "client_lr" and not (value.dim() == 0 and (value > 0 or not value.isfinite())):
            return MalformedReplyError(
                f"`client_lr` must be one positive number. Got {value} {who}."
            )
    return None


def misfit(reply: Reply, spec: Spec) -> MalformedReplyError | None:
    """Say what does not fit the model, the tasks or the number of clients, or nothing.

    :param spec: What ``rule.init`` was given.
    """
    who = f"from client {reply.client_id}"
    if reply.client_id >= spec.num_clients:
        return MalformedReplyError(
            f"Client ids must be in [0, {spec.num_clients}), the federation's clients. Got a reply "
            f"{who}."
        )
    shapes: dict[str, tuple[int, ...]] = {
        "update": (spec.dim,),
        "loss": (),
        "train_loss": (),
        "client_lr": (),
        "task_loss": (spec.num_tasks,),
        "task_update": (spec.num_tasks, spec.dim),
        "control_update": (spec.dim,),
    }
    for name, value in reply.fields.items():
        if name in shapes and tuple(value.shape) != shapes[name]:
            return MalformedReplyError(
                f"`{name}` must have shape {shapes[name]}. Got {tuple(value.shape)} {who}."
            )
    return None


def not_finite(name: str, value: Tensor, layout: Layout | None) -> str | None:
    """Say where a field contains NaN or infinity, or nothing if it is finite.

    :param name: The field.
    :param value: Its value.
    :param layout: If given, an update's parameter is named.
    """
    finite = torch.isfinite(value)
    if finite.all():
        return None
    if name == "update" and layout is not None and value.shape == (layout.dim,):
        first = int((~finite).nonzero()[0])
        parameter = next(p for p, block in layout.blocks.items() if first < block.stop)
        return f"`{name}` contains NaN or infinity in parameter `{parameter}`"
    return f"`{name}` contains NaN or infinity"
