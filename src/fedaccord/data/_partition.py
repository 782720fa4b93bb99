"""A split of samples over clients, as a value."""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
    parameters: Mapping[str, float | str] = field(default_factory=dict)
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

    def take(self, clients: Iterable[int]) -> Partition:
        """The split of some of the clients.

        :param clients: Which, in ``[0, len(self))``, in the order wanted.
        :return: Their parts, unchanged; ``client_names`` are their own names, or else their numbers
            in this split.
        :raises ValueError: If there is no such client or one is named twice.
        """
        chosen = tuple(operator.index(client) for client in clients)
        if len(set(chosen)) < len(chosen) or not all(0 <= c < len(self) for c in chosen):
            raise ValueError(
                f"`clients` must be distinct numbers in [0, {len(self)}). Got "
                f"{', '.join(map(str, chosen[:10]))}{', ...' * (len(chosen) > 10)}."
            )
        names = self.client_names or tuple(range(len(self)))
        return replace(
            self,
            parts=[self.parts[client] for client in chosen],
            client_names=tuple(names[client] for client in chosen),
        )

    def verify(self, *, num_samples: int | None = None, digest: str | None = None) -> None:
        """Check that this is the split of these samples, and the one that was recorded.

        :param num_samples: How many samples the data have.
        :param digest: What :meth:`digest` gave when the split was made.
        :raises ValueError: If it is not.
        """
        if num_samples is not None and num_samples != self.num_samples:
            raise ValueError(
                f"The split must be of the data's {num_samples} samples. It is of "
                f"{self.num_samples}."
            )
        if digest is not None and digest != self.digest():
            raise ValueError(
                f"The split must have the SHA-256 {digest}. It has {self.digest()}: other samples, "
                f"or another release of NumPy drew it."
            )

    def digest(self) -> str:
        """Return the SHA-256 of the split: sizes and indices, in the order of the clients."""
        content = hashlib.sha256(f"{self.num_samples} {self.sizes}".encode())
        for part in self.parts:
            content.update(part.astype("<i8").tobytes())
        return content.hexdigest()

    def __repr__(self) -> str:
        ends = sorted({min(self.sizes, default=0), max(self.sizes, default=0)})
        sizes = " to ".join(map(str, ends))
        clients = f"{len(self)} client{'s' * (len(self) != 1)}"
        return (
            f"Partition({self.name}, {clients} of {sizes} samples, "
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
