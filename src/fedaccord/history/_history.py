"""The last update of every client seen recently, with all their inner products."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..cohort import Cohort
from ..errors import NonFiniteError, StaleHistoryError
from ..linalg import combine, gramian, norm
from ._memory import Memory

_DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


@dataclass(frozen=True)
class Represented:
    """A cohort beside the absent clients that a history still holds.

    :param client_ids: Cohort first, then absent clients, each part sorted by id: ``r`` rows.
    :param num_current: How many of the rows belong to the cohort.
    :param gram: All inner products of the rows, float64 ``[r, r]``.
    """

    client_ids: tuple[int, ...]
    num_current: int
    gram: Tensor
    _current: Tensor
    _vectors: Tensor
    _slots: tuple[int, ...]

    @property
    def rounding(self) -> Tensor:
        """Machine epsilon of each row's dtype, ``[r]``: how exactly its entries are known."""
        kept = [torch.finfo(self._vectors.dtype).eps] * len(self._slots)
        return torch.tensor(
            [torch.finfo(self._current.dtype).eps] * self.num_current + kept, dtype=torch.float64
        )

    @property
    def lengths(self) -> Tensor:
        """The length of each row, float64 ``[r]``."""
        return self.gram.diagonal().sqrt()

    def block(self, columns: slice) -> Represented:
        """The same rows in some of their columns, with the products of those.

        :param columns: Which entries, for example those of one layer.
        """
        current, vectors = self._current[:, columns], self._vectors[list(self._slots), columns]
        n, gram = self.num_current, torch.zeros_like(self.gram)
        gram[:n, :n] = gramian(current)
        if self._slots:
            gram[:n, n:] = gramian(current, vectors)
            gram[n:, :n] = gram[:n, n:].T
            gram[n:, n:] = gramian(vectors)
        slots = tuple(range(len(self._slots)))
        return Represented(self.client_ids, n, gram, current, vectors, slots)

    def combine(self, coefficients: Tensor) -> Tensor:
        """``coefficients @ rows``, accumulated in float64, ``[dim]``; zero rows are not read.

        :param coefficients: One number a row, ``[r]``.
        """
        total = combine(self._current, coefficients[: self.num_current])
        if self._slots and coefficients[self.num_current :].any():
            scattered = coefficients.new_zeros(len(self._vectors))
            scattered[list(self._slots)] = coefficients[self.num_current :]
            total += combine(self._vectors, scattered)
        return total


@dataclass(frozen=True)
class _Pending:
    cohort: Cohort
    represented: Represented
    kept: tuple[int, ...]  # rows of the cohort to write
    rows: Tensor  # those rows, as they will be kept


class History:
    """Last update per client and their inner products, in memory it owns.

    A history is used like a value: :meth:`record` and :meth:`forget` return a new one. The rows lie
    in memory that is handed on, never copied: recording writes nothing until the *new* history is
    first read, so a round that fails leaves the old one intact; from then on the old one raises
    :class:`~fedaccord.errors.StaleHistoryError`. Take a :meth:`copy` to go on from both.

    :param dtype: Keep rows in this floating-point type instead of the updates' own. The inner
        products are those of the rounded rows.
    """

    def __init__(self, *, dtype: torch.dtype | None = None) -> None:
        if dtype is not None and dtype not in _DTYPES:
            raise ValueError(f"`dtype` must be one of {_DTYPES}. Got {dtype}.")
        self._dtype = dtype
        self._memory: Memory | None = None
        self._owner = 0
        self._slots: dict[int, int] = {}
        self._rounds: dict[int, int] = {}
        self._pending: _Pending | None = None

    @property
    def rounds(self) -> Mapping[int, int]:
        """The round each represented client was last recorded in."""
        return dict(sorted(self._rounds.items()))

    @property
    def updates(self) -> Mapping[int, Tensor]:
        """A copy of each represented client's last update, ``[dim]``."""
        memory = self._settle()
        return (
            {c: memory.vectors[self._slots[c]].clone() for c in self.rounds}
            if memory is not None
            else {}
        )

    def __len__(self) -> int:
        return len(self._rounds)

    def __repr__(self) -> str:
        return f"History(rounds={dict(self.rounds)})"

    def forget(self, *, before: int) -> History:
        """Drop clients that were last recorded before round ``before``."""
        return self._without({c for c, seen in self._rounds.items() if seen < before})

    def forget_client(self, client_id: int) -> History:
        """Drop one client; its row is overwritten with zeros at once.

        :raises KeyError: If the client is not represented.
        """
        if client_id not in self._rounds:
            raise KeyError(f"Client {client_id} is not in the history. It holds {[*self.rounds]}.")
        kept, slot = self._without({client_id}), self._slots[client_id]
        assert kept._memory is not None  # a represented client has a row
        kept._memory.erase(slot)
        # this history misses a row now: only the new one may go on
        kept._owner = kept._memory.pass_on()
        return kept

    def absent(self, cohort: Cohort) -> dict[int, Tensor]:
        """Last updates of the represented clients that are not in ``cohort``, by id."""
        return {c: row for c, row in self.updates.items() if c not in set(cohort.client_ids)}

    def join(self, cohort: Cohort) -> Represented:
        """Put the cohort's updates beside the absent clients' rows.

        Only products with the cohort's rows are computed: ``n x (n + c)`` of them.

        :raises StaleHistoryError: If a later history took over the memory.
        """
        memory = self._settle()
        here = set(cohort.client_ids)
        absent = tuple(c for c in self.rounds if c not in here)
        slots = tuple(self._slots[c] for c in absent)
        n, current = len(cohort), cohort.updates
        if memory is not None and (
            memory.vectors.shape[1] != current.shape[1]
            or memory.vectors.device != current.device
            or (self._dtype is None and memory.vectors.dtype != current.dtype)
        ):
            raise ValueError(
                f"All updates of a run must be alike. Got [n, {current.shape[1]}] of "
                f"{current.dtype} on {current.device} after [n, {memory.vectors.shape[1]}] of "
                f"{memory.vectors.dtype} on {memory.vectors.device}."
            )
        gram = torch.zeros(n + len(absent), n + len(absent), dtype=torch.float64)
        gram[:n, :n] = gramian(current)
        if not torch.isfinite(gram.diagonal()).all():
            first = int(gram.diagonal().isfinite().logical_not().nonzero()[0])
            raise NonFiniteError(
                f"Updates must be small enough to square. That of client "
                f"{cohort.client_ids[first]} in round {cohort.round} is not. Lower the learning "
                f"rate."
            )
        vectors = memory.vectors if memory is not None else current[:0]
        if memory is not None and absent:
            index = torch.tensor(slots)
            # whole memory, then columns: gathering rows first would copy them
            crossed = gramian(current, vectors)[:, index]
            gram[:n, n:], gram[n:, :n] = crossed, crossed.T
            gram[n:, n:] = memory.products[index][:, index]
        return Represented((*cohort.client_ids, *absent), n, gram, current, vectors, slots)

    def record(self, cohort: Cohort, represented: Represented | None = None) -> History:
        """Store the cohort's updates, replacing those of clients that came back.

        A client whose update is zero is not stored, and what was stored of it is dropped.

        :param cohort: The round's contributions.
        :param represented: What :meth:`join` gave for this cohort, to reuse its products.
        """
        represented = represented or self.join(cohort)
        self._settle()
        lengths = represented.gram.diagonal()[: len(cohort)]
        kept = tuple(i for i, squared in enumerate(lengths.tolist()) if squared > 0)
        rows = self._rounded(cohort, kept)
        new = self._without(set(cohort.client_ids))
        new._rounds |= {cohort.client_ids[i]: cohort.round for i in kept}
        new._pending = _Pending(cohort, represented, kept, rows)
        return new

    def copy(self) -> History:
        """A history of its own memory, for going on twice from one point."""
        memory, new = self._settle(), self._without(set())
        if memory is not None:
            new._memory, new._owner = memory.clone(), 0
        return new

    def pack(self) -> dict[str, Any]:
        """Everything needed to rebuild this history, as plain values and tensors."""
        memory = self._settle()
        slots = [self._slots[c] for c in self.rounds]
        index = torch.tensor(slots, dtype=torch.int64)
        return {
            "clients": tuple(self.rounds),
            "rounds": tuple(self.rounds.values()),
            "slots": tuple(slots),
            # products may differ in their last bit with the number of rows they are taken over
            "capacity": len(memory.vectors) if memory is not None else 0,
            "dtype": None if self._dtype is None else str(self._dtype).removeprefix("torch."),
            "vectors": memory.vectors[index] if memory is not None else None,
            "products": memory.products[index][:, index] if memory is not None else None,
        }

    @classmethod
    def unpack(cls, packed: Mapping[str, Any]) -> History:
        """Rebuild what :meth:`pack` wrote.

        :raises ValueError: If the parts do not fit together.
        """
        dtypes = {str(t).removeprefix("torch."): t for t in _DTYPES}
        new = cls(dtype=None if packed["dtype"] is None else dtypes[packed["dtype"]])
        clients, slots = packed["clients"], packed["slots"]
        vectors, products, capacity = packed["vectors"], packed["products"], packed["capacity"]
        if vectors is None:
            return new
        if not (isinstance(vectors, Tensor) and isinstance(products, Tensor)):
            raise TypeError("the packed history's rows are no tensors")
        new._rounds = dict(zip(clients, packed["rounds"], strict=True))
        new._slots = dict(zip(clients, slots, strict=True))
        fits = vectors.dim() == 2 and products.shape == (len(clients), len(clients))
        if not (fits and len(vectors) == len(set(clients)) == len(set(slots)) <= capacity):
            raise ValueError("the parts of the packed history do not fit together")
        if not (vectors.dtype in _DTYPES and torch.isfinite(vectors).all()):
            raise ValueError("the packed history's rows are no finite numbers")
        if any(not 0 <= slot < capacity for slot in slots):
            raise ValueError("the packed history places a row outside its memory")
        new._memory = Memory.like(vectors, capacity=capacity)
        new._memory.write(slots, vectors, products, (), products[:, :0])
        return new

    def _rounded(self, cohort: Cohort, kept: tuple[int, ...]) -> Tensor:
        """The rows to keep, in the dtype they are kept in."""
        rows = cohort.updates[list(kept)]
        if self._dtype is None or self._dtype == rows.dtype:
            return rows
        stored = rows.to(self._dtype)
        for i, row, rounded in zip(kept, rows, stored, strict=True):
            if not norm(rounded.to(torch.float64) - row) <= 0.01 * norm(row):
                raise NonFiniteError(
                    f"Updates must fit into the history's dtype. For {self._dtype}, that of client "
                    f"{cohort.client_ids[i]} in round {cohort.round} is too large or too small; "
                    f"use bfloat16 or float32."
                )
        return stored

    def _without(self, clients: set[int]) -> History:
        memory, new = self._settle(), History(dtype=self._dtype)
        new._memory, new._owner = memory, self._owner
        new._slots = {c: slot for c, slot in self._slots.items() if c not in clients}
        new._rounds = {c: seen for c, seen in self._rounds.items() if c not in clients}
        return new

    def _settle(self) -> Memory | None:
        """Check that the memory is still this history's, and write what is pending."""
        if self._memory is not None and self._memory.owner != self._owner:
            raise StaleHistoryError(
                "This history's memory belongs to a later one by now. Go on from the latest state; "
                "save a state, or take `history.copy()`, before the next round if it is needed "
                "again."
            )
        if self._pending is not None:
            with torch.inference_mode(mode=False):  # memory is written in place for many rounds
                self._write(self._pending)
            self._pending = None
        return self._memory

    def _write(self, pending: _Pending) -> None:
        cohort, represented = pending.cohort, pending.represented
        stored = pending.rows
        if self._memory is None:
            self._memory, self._owner = Memory.like(stored), 0
        memory = self._memory
        slots = memory.claim(set(self._slots.values()), len(pending.kept))
        self._owner = memory.pass_on()
        if not slots:
            return
        others = dict(self._slots)
        self._slots |= {cohort.client_ids[i]: s for i, s in zip(pending.kept, slots, strict=True)}
        if stored.dtype == cohort.updates.dtype:
            row_of = {c: i for i, c in enumerate(represented.client_ids)}
            products = represented.gram[list(pending.kept)]
            own, crossed = products[:, list(pending.kept)], products[:, [row_of[c] for c in others]]
        else:  # the rounded rows have other products
            own = gramian(stored)
            crossed = gramian(stored, memory.vectors)[:, list(others.values())]
        memory.write(slots, stored, own, tuple(others.values()), crossed)
