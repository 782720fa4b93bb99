"""A split of samples over clients, as a value."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import overload

import numpy as np
import numpy.typing as npt

from ._labels import Indices


@dataclass(frozen=True, eq=False)
class Partition(Sequence[Indices]):
    """Which samples each client holds: a sequence with one int64 index array per client.

    :param parts: The indices of each client, each ``[n_i]`` in ``[0, num_samples)``; kept as
        read-only copies, in the order given.
    :param num_samples: How many samples there were to give, at least 0.
    :param name: How the split was made, for records, for example ``"iid"``.
    :param seed: Its seed, ``None`` where nothing was drawn.
    :param parameters: Its other parameters, for records.
    :param client_names: The clients' own names where they have some, in the order of ``parts``.
    :raises ValueError: If an index is out of range or the number of names is another.
    """

    parts: Sequence[Indices]
    num_samples: int
    name: str = "custom"
    seed: int | None = None
    parameters: Mapping[str, float] = field(default_factory=dict)
    client_names: tuple[Hashable, ...] = ()

    def __post_init__(self) -> None:
        frozen = tuple(_frozen(part, client) for client, part in enumerate(self.parts))
        object.__setattr__(self, "parts", frozen)
        for client, part in enumerate(frozen):
            if len(part) and not (part.min() >= 0 and part.max() < self.num_samples):
                raise ValueError(
                    f"Indices must be in [0, {self.num_samples}). "
                    f"Client {client} has {part.min()} to {part.max()}."
                )
        if self.client_names and len(self.client_names) != len(frozen):
            raise ValueError(
                f"`client_names` must have one entry per client. "
                f"Got {len(self.client_names)} for {len(frozen)} clients."
            )

    def __len__(self) -> int:
        return len(self.parts)

    @overload
    def __getitem__(self, client: int) -> Indices: ...
    @overload
    def __getitem__(self, client: slice) -> Sequence[Indices]: ...
    def __getitem__(self, client: int | slice) -> Indices | Sequence[Indices]:
        return self.parts[client]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of samples of each client."""
        return tuple(len(part) for part in self.parts)

    @cached_property
    def _times_given(self) -> Indices:
        every = np.concatenate([*self.parts, np.empty(0, dtype=np.int64)])
        return np.bincount(every, minlength=self.num_samples)

    @property
    def unassigned(self) -> Indices:
        """Samples that no client holds, in increasing order."""
        return np.flatnonzero(self._times_given == 0)

    @property
    def repeated(self) -> Indices:
        """Samples that were given more than once, in increasing order."""
        return np.flatnonzero(self._times_given > 1)

    def digest(self) -> str:
        """Return the SHA-256 of the split: sizes and indices, in the order of the clients."""
        content = hashlib.sha256(f"{self.num_samples} {self.sizes}".encode())
        for part in self.parts:
            content.update(part.astype("<i8").tobytes())
        return content.hexdigest()

    def __repr__(self) -> str:
        sizes = f"{min(self.sizes)} to {max(self.sizes)}" if self.parts else "0"
        return (
            f"Partition({self.name}, {len(self)} clients of {sizes} samples, "
            f"{len(self.unassigned)} of {self.num_samples} unassigned, "
            f"{len(self.repeated)} repeated)"
        )


def _frozen(part: npt.ArrayLike | Iterable[int], client: int) -> Indices:
    array = np.array(part)
    if array.size == 0:
        array = array.astype(np.int64)
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise ValueError(
            "Each client needs a one-dimensional array of integer indices. "
            f"Client {client} has shape {array.shape} and dtype {array.dtype}."
        )
    copy = array.astype(np.int64)
    copy.setflags(write=False)
    return copy


def require_clients(num_clients: int, num_samples: int | None = None) -> None:
    """Check that there is a client, and that each can hold a sample of its own.

    :param num_clients: Number of clients.
    :param num_samples: Number of samples; ``None`` where clients may share them.
    :raises ValueError: If ``num_clients`` is smaller than 1 or larger than ``num_samples``.
    """
    if num_clients < 1:
        raise ValueError(f"`num_clients` must be at least 1. Got {num_clients}.")
    if num_samples is not None and num_clients > num_samples:
        raise ValueError(
            f"{num_clients} clients need at least {num_clients} samples. Got {num_samples}. "
            f"Use at most {num_samples} clients."
        )


def require_supply(num_clients: int, samples_per_client: int, num_samples: int) -> None:
    """Check that equal parts of the wanted size fit into the samples.

    :raises ValueError: If they do not; the message names the nearest sizes that do.
    """
    require_clients(num_clients, num_samples)
    if samples_per_client < 1:
        raise ValueError(f"`samples_per_client` must be at least 1. Got {samples_per_client}.")
    needed = num_clients * samples_per_client
    if needed > num_samples:
        fewer = num_samples // samples_per_client
        alternative = f" or at most {fewer} clients" if fewer else ""
        raise ValueError(
            f"{num_clients} clients with {samples_per_client} samples each need {needed} samples. "
            f"Got {num_samples}. Use `samples_per_client` of at most "
            f"{num_samples // num_clients}{alternative}."
        )


def require_concentration(alpha: float) -> None:
    """Check a Dirichlet concentration.

    :raises ValueError: If it is not a positive finite number.
    """
    if not 0 < alpha < float("inf"):
        raise ValueError(f"`alpha` must be positive and finite. Got {alpha}.")
