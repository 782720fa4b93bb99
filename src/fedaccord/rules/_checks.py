"""Checks of hyperparameters that many rules share."""

from __future__ import annotations

import math


def check_server_lr(server_lr: float) -> None:
    """Refuse a server learning rate that is not positive and finite.

    :raises ValueError: If it is not.
    """
    if not (server_lr > 0 and math.isfinite(server_lr)):
        raise ValueError(f"`server_lr` must be positive and finite. Got {server_lr}.")
