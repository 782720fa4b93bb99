"""Rows of updates and their inner products, in memory that is overwritten in place."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch
from torch import Tensor


class Memory:
    """Rows and inner products that successive histories of one run take turns to own.

    :param vectors: The rows, ``[capacity, dim]``.
    :param products: Their inner products, float64 ``[capacity, capacity]``.
    """

    def __init__(self, vectors: Tensor, products: Tensor) -> None:
        self.vectors = vectors
        self.products = products
        self.owner = 0

    @classmethod
    def like(cls, rows: Tensor, *, capacity: int = 0) -> Memory:
        """Empty memory for rows like these."""
        return cls(
            rows.new_zeros(capacity, rows.shape[1]),
            torch.zeros(capacity, capacity, dtype=torch.float64),
        )

    def __len__(self) -> int:
        return len(self.vectors)

    def clone(self) -> Memory:
        """The same content elsewhere."""
        return Memory(self.vectors.clone(), self.products.clone())

    def pass_on(self) -> int:
        """End the present owner's right to the memory; the number of the next one."""
        self.owner += 1
        return self.owner

    def claim(self, taken: Collection[int], count: int) -> list[int]:
        """Slots for ``count`` more rows beside those ``taken``, in order; grows if need be."""
        free = [slot for slot in range(len(self)) if slot not in taken]
        if len(free) < count:
            before = len(self)
            self._grow(max(before + count - len(free), 2 * before))
            free += range(before, len(self))
        return free[:count]

    def write(
        self,
        slots: Sequence[int],
        rows: Tensor,
        own: Tensor,
        others: Sequence[int],
        crossed: Tensor,
    ) -> None:
        """Put rows into slots.

        :param slots: Where to, ``k`` of them.
        :param rows: ``[k, dim]``.
        :param own: The rows' inner products with each other, ``[k, k]``.
        :param others: The slots of ``q`` rows that stay.
        :param crossed: Products with those, ``[k, q]``; with all further rows they are forgotten.
        """
        index = torch.tensor(slots, dtype=torch.int64)
        columns = torch.tensor(others, dtype=torch.int64)
        self.vectors[index] = rows
        self.products[index] = self.products[:, index] = 0
        self.products[index[:, None], index] = own
        self.products[index[:, None], columns] = crossed
        self.products[columns[:, None], index] = crossed.T

    def erase(self, slot: int) -> None:
        """Overwrite a row and its products with zeros."""
        self.vectors[slot] = 0
        self.products[slot] = self.products[:, slot] = 0

    def _grow(self, capacity: int) -> None:
        before = len(self)
        vectors = self.vectors.new_zeros(capacity, self.vectors.shape[1])
        products = self.products.new_zeros(capacity, capacity)
        vectors[:before] = self.vectors
        products[:before, :before] = self.products
        self.vectors, self.products = vectors, products
