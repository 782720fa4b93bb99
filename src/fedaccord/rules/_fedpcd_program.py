"""FedPCD's program, in inner products."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..history import Represented

# a client short by less than this part of the numbers compared is short by rounding only
ROUNDING = 1e-12
# in units of the rows' machine epsilon: their error is about a third of it, all entries together
NOISE = 2.0


@dataclass(frozen=True)
class Program:
    """Find the direction nearest to the target whose product with each row reaches its margin.

    The ``r`` rows are the represented clients' updates, each times its ``scale``; a direction is
    given by its coefficients over the *unscaled* updates.

    :param rows: The represented clients.
    :param scale: Of each row, ``[r]``; zero for a zero update.
    :param margins: What each product must reach, ``[r]``.
    :param average: Coefficients of the scaled average, ``[r]``.
    :param average_length: Its length.
    :param target: Coefficients of the target: the scaled average, or zero. ``[r]``.
    """

    rows: Represented
    scale: Tensor
    margins: Tensor
    average: Tensor
    average_length: float
    target: Tensor

    @property
    def gram(self) -> Tensor:
        """Inner products of the scaled rows."""
        return self.rows.gram * self.scale[:, None] * self.scale

    def products(self, coefficients: Tensor) -> Tensor:
        """Products of the scaled rows with a direction, ``[r]``: the clients' progress."""
        return self.scale * (self.rows.gram @ coefficients)

    def noise(self, coefficients: Tensor) -> float:
        """How long a direction may be by the rounding of the updates alone.

        Rows are known up to a part of their length, and their errors are independent.
        """
        errors = coefficients * self.rows.lengths * self.rows.rounding
        return NOISE * float(errors.norm())

    def short(self, coefficients: Tensor) -> Tensor:
        """Which clients a direction leaves below their margin, beyond rounding."""
        size = math.sqrt(max(float(coefficients @ self.rows.gram @ coefficients), 0.0))
        lengths = self.scale * self.rows.lengths
        missing = self.margins - self.products(coefficients)
        return missing > ROUNDING * (lengths * size + self.margins)


def pose(
    rows: Represented,
    shares: Tensor,
    length: float,
    rates: Mapping[int, float],
    *,
    tau: float | Sequence[float],
    eps: float,
    normalize: bool,
    primary: bool,
) -> Program:
    """Steps 1 to 3: normalise rows and average; one margin a client.

    :param rows: The represented clients' updates.
    :param shares: Coefficients of the average, ``[r]``.
    :param length: The average's length; zero if it has no direction.
    :param rates: Client learning rates, by id; 1 for others.
    :raises ValueError: If ``tau`` holds one value a client, but not for each of these.
    """
    rate = torch.tensor([rates.get(client, 1.0) for client in rows.client_ids], dtype=torch.float64)
    if normalize:
        # Delta / (|Delta| + eps client_lr) is the normalised pseudo-gradient
        scale = 1 / (rows.lengths + eps * rate)
        target = 1 / (length + eps * float(shares @ rate)) if length else 0.0
    else:
        scale, target = 1 / rate, 1 / float(shares @ rate) if length else 0.0
    # a row whose squared length is below the smallest normal number has no direction left
    tiny = torch.finfo(torch.float64).tiny
    scale = torch.where((scale * rows.lengths) ** 2 >= tiny, scale, 0.0)
    taus = torch.tensor(tau, dtype=torch.float64)
    if taus.dim():
        if max(rows.client_ids) >= len(taus):
            raise ValueError(
                f"`tau` must have one value for each client. Got {len(taus)}, but client "
                f"{max(rows.client_ids)} takes part."
            )
        taus = taus[list(rows.client_ids)]
    return Program(
        rows=rows,
        scale=scale,
        margins=taus * (scale * rows.lengths) ** 2,
        average=target * shares,
        average_length=target * length,
        target=target * shares if primary else torch.zeros_like(shares),
    )
