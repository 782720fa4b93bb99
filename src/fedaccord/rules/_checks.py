"""Checks of hyperparameters that many rules share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from numbers import Integral

from torch import Tensor

from ..errors import MalformedReplyError


def check_server_lr(server_lr: float) -> None:
    """Refuse a server learning rate that is not positive and finite.

    :raises ValueError: If it is not.
    """
    if not (server_lr > 0 and math.isfinite(server_lr)):
        raise ValueError(f"`server_lr` must be positive and finite. Got {server_lr}.")


def check_report(report: object) -> None:
    """Refuse a report budget that is none.

    :raises ValueError: If it is neither ``"all"`` nor a number of minibatches of at least 1.
    """
    number = isinstance(report, Integral) and not isinstance(report, bool) and int(report) >= 1
    if not (report == "all" or number):
        raise ValueError(
            f"`report` must be 'all' or a number of minibatches of at least 1. Got {report!r}."
        )


def check_nonnegative_losses(
    losses: Tensor, client_ids: Sequence[int], *, name: str, rule: str
) -> None:
    """Refuse a loss below zero, of which a power or a share has no meaning.

    :param losses: One number a client, ``[n]``.
    :param client_ids: Whose they are.
    :param name: The field, for the message.
    :param rule: The rule, for the message.
    :raises MalformedReplyError: If there is one.
    """
    for client, loss in zip(client_ids, losses.tolist(), strict=True):
        if loss < 0:
            raise MalformedReplyError(
                f"{rule} needs losses of at least 0. `{name}` of client {client} is {loss}. Add a "
                f"constant to the loss."
            )


def check_known_clients(client_ids: Sequence[int], num_clients: int) -> None:
    """Refuse a client that the federation does not have.

    :raises ValueError: If there is one.
    """
    if client_ids[-1] >= num_clients:
        raise ValueError(
            f"Client ids must be below the {num_clients} clients of the `Spec`. Got "
            f"{client_ids[-1]}."
        )


def check_state(state: object, kind: type) -> None:
    """Refuse what is no state of a rule, such as the ``None`` of a rule without state.

    :raises TypeError: If it is of another class.
    """
    if not isinstance(state, kind):
        raise TypeError(f"`state` must come from `rule.init(spec)`. Got {type(state).__name__}.")


def check_rounds_advance(remembered: Iterable[int], round: int) -> None:
    """Refuse a round that does not come after those remembered.

    :param remembered: Rounds in a history.
    :param round: The cohort's.
    :raises ValueError: If it is not later than all of them.
    """
    latest = max(remembered, default=-1)
    if round <= latest:
        raise ValueError(
            f"Rounds must advance, or nothing would ever leave the history. Got round {round} "
            f"after round {latest}. Pass `round=` to `Cohort.stack`."
        )
