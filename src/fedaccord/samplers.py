"""Which clients take part in a round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Protocol

import torch


class Sampler(Protocol):
    """Chooses the clients of a round."""

    def size(self, num_clients: int, /) -> int:
        """How many it chooses among ``num_clients``.

        :raises ValueError: If it cannot choose that many.
        """
        ...

    def __call__(self, num_clients: int, rng: torch.Generator, /) -> Sequence[int]:
        """Distinct client ids below ``num_clients``, drawn from ``rng``."""
        ...


def _check(count: int | None, fraction: float | None) -> None:
    if (count is None) == (fraction is None):
        raise ValueError(f"Give either `count` or `fraction`. Got {count} and {fraction}.")
    if count is not None and (not isinstance(count, int) or isinstance(count, bool) or count < 1):
        part = isinstance(count, float) and 0 < count < 1
        hint = f" Write `fraction={count}` for a part of the clients." if part else ""
        raise ValueError(f"`count` must be an integer of at least 1. Got {count!r}.{hint}")
    number = isinstance(fraction, int | float) and not isinstance(fraction, bool)
    if fraction is not None and not (number and 0 < fraction <= 1):
        raise ValueError(f"`fraction` must be in (0, 1]. Got {fraction!r}.")


def _size(count: int | None, fraction: float | None, num_clients: int) -> int:
    if fraction is not None:
        # the fraction as it is written: in binary, 0.29 * 100 is below 29
        exact = Decimal(repr(float(fraction))) * num_clients
        return max(1, int(exact.to_integral_value(ROUND_HALF_UP)))
    assert count is not None
    if count > num_clients:
        raise ValueError(
            f"`count` must be in [1, {num_clients}], the number of clients. Got {count}."
        )
    return count


@dataclass(frozen=True)
class UniformSampler:
    """The same number of clients every round, uniformly without replacement.

    :param count: How many, at least 1.
    :param fraction: Instead of ``count``: which part ``f`` of ``N`` clients, in ``(0, 1]``; means
        ``max(1, floor(f N + 0.5))`` clients.
    :raises ValueError: If neither or both are given, or out of range.
    """

    count: int | None = None
    fraction: float | None = None

    def __post_init__(self) -> None:
        _check(self.count, self.fraction)

    def size(self, num_clients: int, /) -> int:
        """How many clients a round has.

        :raises ValueError: If ``count`` exceeds ``num_clients``.
        """
        return _size(self.count, self.fraction, num_clients)

    def __call__(self, num_clients: int, rng: torch.Generator, /) -> Sequence[int]:
        """Draw the clients of a round, sorted."""
        chosen = torch.randperm(num_clients, generator=rng)[: self.size(num_clients)]
        return sorted(chosen.tolist())


@dataclass(frozen=True)
class SizeProportionalSampler:
    """The same number of clients every round, without replacement, larger ones more often.

    Each draw picks among the clients left with probability proportional to their size. Do not
    combine it with a rule that weights by number of examples: large clients would count twice.

    :param sizes: Number of examples of every client, by id; not negative.
    :param count: How many clients, at least 1.
    :param fraction: Instead of ``count``, as for :class:`UniformSampler`.
    :raises ValueError: If an argument is out of range.
    """

    sizes: Sequence[int]
    count: int | None = None
    fraction: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", tuple(int(size) for size in self.sizes))
        _check(self.count, self.fraction)
        if min(self.sizes, default=-1) < 0:
            raise ValueError("`sizes` must hold a number of at least 0 for every client.")

    def size(self, num_clients: int, /) -> int:
        """How many clients a round has.

        :raises ValueError: If there are fewer clients, or fewer with examples.
        """
        if len(self.sizes) != num_clients:
            raise ValueError(
                f"`sizes` must have one number for each of {num_clients} clients. "
                f"Got {len(self.sizes)}."
            )
        size = _size(self.count, self.fraction, num_clients)
        if (nonempty := sum(s > 0 for s in self.sizes)) < size:
            raise ValueError(
                f"{size} clients a round need as many with examples. Got {nonempty} of them."
            )
        return size

    def __call__(self, num_clients: int, rng: torch.Generator, /) -> Sequence[int]:
        """Draw the clients of a round, sorted."""
        sizes = torch.tensor(self.sizes, dtype=torch.float64)
        chosen = torch.multinomial(sizes, self.size(num_clients), generator=rng)
        return sorted(chosen.tolist())
