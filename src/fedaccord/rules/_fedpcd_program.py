"""FedPCD's program, in inner products."""

from __future__ import annotations

import math
from dataclasses import dataclass

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
