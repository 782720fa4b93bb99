"""Checks of hyperparameters that many rules share."""

from __future__ import annotations

import math
from numbers import Integral


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
