"""What every partition asks first: are the numbers numbers, and can the split be made at all."""

from __future__ import annotations

import math
import operator
from collections.abc import Sized
from numbers import Real
from typing import SupportsIndex

from ._labels import Labels


def counted(number: int, noun: str) -> str:
    """A number with its noun: ``1 sample``, ``2 samples``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def as_whole(name: str, value: SupportsIndex, *, least: int | None = None) -> int:
    """Take a whole number, of Python, NumPy or a tensor of one.

    :param name: The argument's name, for the message.
    :param value: What was given.
    :param least: The smallest that is allowed; ``None`` allows any.
    :raises ValueError: If it is no whole number, as 2.5 and ``True`` are none, or too small.
    """
    try:
        if isinstance(value, bool):
            raise TypeError
        whole = operator.index(value)
    except TypeError:
        raise ValueError(f"`{name}` must be a whole number. Got {value!r:.60}.") from None
    if least is not None and whole < least:
        raise ValueError(f"`{name}` must be at least {least}. Got {whole}.")
    return whole


def as_concentration(alpha: float) -> float:
    """Take a Dirichlet concentration.

    :raises ValueError: If it is not a positive finite number.
    """
    if not isinstance(alpha, Real) or isinstance(alpha, bool) or not 0 < alpha < math.inf:
        raise ValueError(f"`alpha` must be positive and finite. Got {alpha!s:.60}.")
    return float(alpha)


def count_samples(samples: SupportsIndex | Labels) -> int:
    """How many samples there are to split.

    :param samples: Their number, or anything with one entry for each.
    :raises ValueError: If it is neither, or negative.
    """
    # arrays and tensors of one entry pass for numbers, so those with a length are asked for it
    if isinstance(samples, Sized) and getattr(samples, "ndim", 1) > 0:
        return len(samples)
    if isinstance(samples, SupportsIndex):
        return as_whole("samples", samples, least=0)
    raise ValueError(
        f"`samples` must be a whole number, or have one entry for each sample. Got {samples!r:.60}."
    )


def require_clients(num_clients: int, num_samples: int, *, each: int = 1) -> None:
    """Check that each client can hold some samples of its own.

    :param num_clients: Number of clients, at least 1.
    :param num_samples: Number of samples.
    :param each: Least number of samples of a client, at least 0.
    :raises ValueError: If the samples do not suffice.
    """
    if num_clients * each > num_samples:
        need = "need" if num_clients > 1 else "needs"
        clients = f"{counted(num_clients, 'client')} {need} at least"
        fewer = num_samples // max(each, 1)
        use = f"Use at most {counted(fewer, 'client')}." if fewer else "Use more samples."
        raise ValueError(
            f"{clients} {counted(num_clients * each, 'sample')}. Got {num_samples}. {use}"
        )


def require_minimum(num_clients: int, min_samples: int, num_samples: int) -> None:
    """Check that every client can have the least number of samples.

    :raises ValueError: If it cannot; the message names the nearest settings that can.
    """
    if num_clients * min_samples > num_samples:
        raise ValueError(
            _too_few("min_samples", "at least ", num_clients, min_samples, num_samples)
        )


def require_supply(num_clients: int, samples_per_client: int, num_samples: int) -> None:
    """Check that equal parts of the wanted size fit into the samples.

    :raises ValueError: If they do not; the message names the nearest settings that do.
    """
    require_clients(num_clients, num_samples)
    if num_clients * samples_per_client > num_samples:
        raise ValueError(
            _too_few("samples_per_client", "", num_clients, samples_per_client, num_samples)
        )


def _too_few(name: str, at_least: str, num_clients: int, each: int, num_samples: int) -> str:
    needed = num_clients * each
    possible = [f"`{name}` of at most {num_samples // num_clients}"]
    if fewer := num_samples // each:
        possible.append(f"at most {counted(fewer, 'client')}")
    return (
        f"{counted(num_clients, 'client')} with {at_least}{counted(each, 'sample')} each "
        f"need{'s' if num_clients == 1 else ''} {counted(needed, 'sample')}. "
        f"Got {num_samples}. Use {' or '.join(possible)}."
    )
