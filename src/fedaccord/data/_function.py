"""Clients whose data a function makes when they are needed."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, overload

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from ..clients import Batch, ClientData
from ..clients.randomness import forbid_global_draws
from ..errors import UncontrolledRandomnessError
from ._arrays import ArrayData

Make: TypeAlias = Callable[[int], ClientData | Sequence[Any]]
"""From a client's number to its data, or to arrays: inputs, targets."""


@dataclass(frozen=True, eq=False)
class MadeData:
    """One client's data, made when they are looked at.

    :param source: Where they come from.
    :param client: The client's number.
    """

    source: MadeClients
    client: int

    def __len__(self) -> int:
        return self.source.size(self.client)

    def batch(self, index: Tensor) -> Batch:
        """The samples at ``index``, int64 ``[b]``."""
        return self.source.made(self.client).batch(index)


class MadeClients(Sequence[MadeData]):
    """Clients whose data are made on demand, of which some are kept; safe with threads.

    :param make: Makes a client's data.
    :param num_clients: Number of clients, at least 1.
    :param cache: How many clients' data are kept, at least 1.
    """

    def __init__(self, make: Make, num_clients: int, *, cache: int) -> None:
        self._make = make
        self._num_clients = num_clients
        self._capacity = cache
        self._kept: OrderedDict[int, ClientData] = OrderedDict()
        self._sizes: dict[int, int] = {}
        self._lock = threading.Lock()
        self._making: dict[int, threading.Lock] = {}

    def __len__(self) -> int:
        return self._num_clients

    @overload
    def __getitem__(self, client: int) -> MadeData: ...
    @overload
    def __getitem__(self, client: slice) -> Sequence[MadeData]: ...
    def __getitem__(self, client: int | slice) -> MadeData | Sequence[MadeData]:
        if isinstance(client, slice):
            return tuple(MadeData(self, number) for number in range(self._num_clients)[client])
        return MadeData(self, range(self._num_clients)[client])

    def size(self, client: int) -> int:
        """Number of samples of a client, which is remembered."""
        with self._lock:
            known = self._sizes.get(client)
        return len(self.made(client)) if known is None else known

    def made(self, client: int) -> ClientData:
        """A client's data, kept or made anew."""
        with self._lock:
            if client in self._kept:
                self._kept.move_to_end(client)
                return self._kept[client]
            making = self._making.setdefault(client, threading.Lock())
        with making:  # whoever else wants these data waits for them
            with self._lock:
                if client in self._kept:
                    return self._kept[client]
            data = self._checked(client)
            with self._lock:
                self._kept[client] = data
                while len(self._kept) > self._capacity:
                    self._kept.popitem(last=False)
                self._making.pop(client, None)
        return data

    def _checked(self, client: int) -> ClientData:
        with forbid_global_draws(), _NoDraws():  # type: ignore[no-untyped-call]
            made: Any = self._make(client)
            data: Any = made
            if isinstance(made, tuple | list):
                try:
                    data = ArrayData.of(*made)
                except ValueError as error:
                    raise ValueError(f"Client {client}: {error}") from error
        if not (hasattr(data, "batch") and hasattr(data, "__len__")):
            raise TypeError(
                f"`make({client})` must give `(inputs, targets)`, or data with `len` and "
                f"`batch(index)`. Got {type(data).__name__}."
            )
        size = self._sizes.setdefault(client, len(data))
        if size != len(data):
            raise ValueError(
                f"`make({client})` must give the same data every time. It gave {size} samples "
                f"before and {len(data)} now."
            )
        checked: ClientData = data
        return checked


def clients_from_function(make: Make, num_clients: int, *, cache: int = 64) -> MadeClients:
    """Make clients whose data a function of the client's number makes when they are needed.

    Data that fell out of the cache are made again, so ``make`` must give the same ones every time:
    it may read files, or draw from ``fedaccord.random.generator(seed, "data", client)``, but not
    from a global generator, which is refused. It is called from several threads at once with the
    executor ``Threads``, for different clients.

    :param make: From the client's number to ``(inputs, targets)``, which become ``ArrayData``, or
        to anything with ``len`` and ``batch(index)``.
    :param num_clients: Number of clients, at least 1.
    :param cache: How many clients' data are kept in memory, at least 1; no less than the
        executor's threads, or batches would make data over and over. Sizes are kept for all.
    :return: A sequence for ``Federation``. Nothing is made yet.
    :raises ValueError: If a number is below 1.
    """
    for name, value in (("num_clients", num_clients), ("cache", cache)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f"`{name}` must be an integer of at least 1. Got {value!r}.")
    if not callable(make):
        raise TypeError(f"`make` must be a function of the client's number. Got {make!r}.")
    return MadeClients(make, num_clients, cache=cache)


class _NoDraws(TorchDispatchMode):
    """Refuses PyTorch's random operations without a generator of their own.

    In a job they would be led to the job's generator, and the data depend on when they were made.
    """

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if torch.Tag.nondeterministic_seeded in func.tags and kwargs.get("generator") is None:
            raise UncontrolledRandomnessError(
                f"`make` must give a client the same data every time. `{func}` drew from a global "
                "generator. Draw from `fedaccord.random.generator(seed, 'data', client)`."
            )
        return func(*args, **kwargs)
