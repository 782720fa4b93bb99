"""What the clients of one round answered, as a matrix with one row per client."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor

from .errors import EmptyRoundError, MalformedReplyError, MissingFieldError, NonFiniteError
from .layout import Layout, Spec
from .reply import Reply, malformed, misfit, not_finite


@dataclass(frozen=True)
class Cohort:
    """The contributions of a round: row ``i`` of every field belongs to ``client_ids[i]``.

    Build it with :meth:`stack`, which sorts and checks.

    :param client_ids: The ``n`` clients, strictly increasing.
    :param num_examples: Their training set sizes, int64 ``[n]``.
    :param fields: Tensors ``[n, ...]``.
    :param round: The round they answered in, counted from 0.
    :param seed: The run's seed, for rules that draw.
    :param layout: The layout of the vectors, for rules that work per layer.
    :param dropped: Clients left out and why.
    :raises ValueError: If ids are not strictly increasing or a field has another number of rows.
    """

    client_ids: tuple[int, ...]
    num_examples: Tensor
    fields: Mapping[str, Tensor]
    round: int = 0
    seed: int = 0
    layout: Layout | None = None
    dropped: Mapping[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if any(a >= b for a, b in itertools.pairwise(self.client_ids)):
            raise ValueError(f"`client_ids` must be strictly increasing. Got {self.client_ids}.")
        for name, values in {"num_examples": self.num_examples, **self.fields}.items():
            if values.dim() == 0 or len(values) != len(self.client_ids):
                raise ValueError(
                    f"`{name}` must have one row for each of {len(self.client_ids)} clients. "
                    f"Got shape {tuple(values.shape)}."
                )

    @classmethod
    def stack(
        cls,
        replies: Iterable[Reply],
        *,
        round: int = 0,
        seed: int = 0,
        layout: Layout | None = None,
        spec: Spec | None = None,
        non_finite: Literal["raise", "drop"] = "raise",
    ) -> Cohort:
        """Sort replies by client id, check them and copy them into matrices.

        :param replies: In any order; the result does not depend on it.
        :param round: The round they answered, counted from 0.
        :param seed: The run's seed.
        :param layout: If given, every ``update`` must have its ``dim``.
        :param spec: What ``rule.init`` was given. Brings the layout, and every client must be one
            of the federation's and send fields of its shapes.
        :param non_finite: Whether NaN and infinity raise or drop the client.
        :raises EmptyRoundError: If no reply is left, or none has any example.
        :raises MalformedReplyError: If an id repeats, fields, shapes or dtypes differ, or something
            does not fit ``spec``.
        :raises NonFiniteError: If a field holds NaN or infinity and ``non_finite="raise"``.
        """
        if non_finite not in ("raise", "drop"):
            raise ValueError(f"`non_finite` must be in ('raise', 'drop'). Got {non_finite!r}.")
        if spec is not None and layout is not None and layout != spec.layout:
            raise ValueError("`layout` must be that of `spec`. Got another; leave it out.")
        layout = spec.layout if spec is not None else layout
        kept: list[Reply] = []
        dropped: dict[int, str] = {}
        for reply in sorted(replies, key=lambda reply: reply.client_id):
            problem = malformed(reply)
            if problem is None and spec is not None:
                problem = misfit(reply, spec)
            if problem is not None:
                raise problem
            found = (not_finite(name, value, layout) for name, value in reply.fields.items())
            reason = next((what for what in found if what is not None), None)
            if reason is None:
                kept.append(reply)
                continue
            if non_finite == "raise":
                raise NonFiniteError(
                    f"Every contribution must be finite. In round {round}, {reason} at client "
                    f"{reply.client_id}. Lower the learning rate, or drop such clients with "
                    f'`Policy(on_invalid="drop")`.'
                )
            dropped[reply.client_id] = reason
        if not kept:
            why = f" Dropped: {dropped}." if dropped else ""
            raise EmptyRoundError(f"Round {round} has no contribution left to aggregate.{why}")
        _check_alike(kept, layout, round)
        check_examples([reply.client_id for reply in kept], [r.num_examples for r in kept], round)
        return cls(
            client_ids=tuple(reply.client_id for reply in kept),
            num_examples=torch.tensor([reply.num_examples for reply in kept]),
            fields={
                name: torch.stack([reply.fields[name].detach() for reply in kept])
                for name in kept[0].fields
            },
            round=round,
            seed=seed,
            layout=layout,
            dropped=dropped,
        )

    def __len__(self) -> int:
        return len(self.client_ids)

    def __getitem__(self, name: str) -> Tensor:
        """One field, ``[n, ...]``.

        :raises MissingFieldError: If it was not reported; the message names what was.
        """
        if name not in self.fields:
            raise MissingFieldError(
                f"`{name}` was not reported in round {self.round}. Clients {list(self.client_ids)} "
                f"reported {sorted(self.fields)}. Use a client algorithm that reports it, or put "
                f"it into every `Reply`."
            )
        return self.fields[name]

    @property
    def updates(self) -> Tensor:
        """Local minus received parameters, ``[n, dim]``."""
        return self["update"]

    @property
    def deltas(self) -> Tensor:
        """Received minus local parameters, ``[n, dim]``: the sign of most papers."""
        return -self["update"]

    @property
    def losses(self) -> Tensor:
        """Loss of the received model on each client's data, ``[n]``."""
        return self["loss"]

    @property
    def task_losses(self) -> Tensor:
        """The same for each task, ``[n, m]``."""
        return self["task_loss"]

    @property
    def task_updates(self) -> Tensor:
        """One update for each task, ``[n, m, dim]``."""
        return self["task_update"]

    @cached_property
    def shares(self) -> Tensor:
        """Each client's fraction of the cohort's examples, float64 ``[n]``, sum 1.

        :raises EmptyRoundError: If the clients hold no example at all.
        """
        check_examples(self.client_ids, self.num_examples.tolist(), self.round)
        counts = self.num_examples.to(torch.float64)  # a sum of int64 may overflow
        return counts / counts.sum()

    @property
    def blocks(self) -> Mapping[str, slice]:
        """Where each named parameter sits in the vector.

        :raises MissingFieldError: If the cohort was stacked without a layout.
        """
        if self.layout is None:
            raise MissingFieldError(
                "Rules that work per layer need the layout. Pass `spec=` or `layout=` to "
                "`Cohort.stack`."
            )
        return self.layout.blocks


def check_examples(client_ids: Sequence[int], num_examples: Sequence[int], round: int) -> None:
    """Refuse a round in which no client holds any example.

    :raises EmptyRoundError: If all numbers are zero.
    """
    if not any(num_examples):
        raise EmptyRoundError(
            f"At least one client must have examples. In round {round} the total weight is zero: "
            f"clients {list(client_ids)} have 0 examples each."
        )


def _check_alike(replies: Sequence[Reply], layout: Layout | None, round: int) -> None:
    first = replies[0]
    for before, reply in itertools.pairwise(replies):
        if before.client_id == reply.client_id:
            raise MalformedReplyError(
                f"Each client may answer once. Client {reply.client_id} answered twice in round "
                f"{round}."
            )
        if reply.fields.keys() != first.fields.keys():
            raise MalformedReplyError(
                f"All clients must report the same fields. Client {first.client_id} reported "
                f"{sorted(first.fields)}, client {reply.client_id} {sorted(reply.fields)}."
            )
        for name, value in reply.fields.items():
            here, there = first.fields[name], value
            if here.shape != there.shape or here.dtype != there.dtype:
                raise MalformedReplyError(
                    f"`{name}` must have one shape and dtype at all clients. Client "
                    f"{first.client_id} sent {tuple(here.shape)} {here.dtype}, client "
                    f"{reply.client_id} {tuple(there.shape)} {there.dtype}."
                )
    if layout is not None and "update" in first.fields:
        found = tuple(first.fields["update"].shape)
        if found != (layout.dim,):
            raise MalformedReplyError(
                f"`update` must have shape ({layout.dim},). Got {found} from client "
                f"{first.client_id}."
            )
