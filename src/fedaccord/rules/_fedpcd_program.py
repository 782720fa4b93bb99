"""FedPCD's program in inner products, and what a round tells about it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from ..history import Represented
from ..rule import Diagnostic

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


@dataclass(frozen=True)
class Solution:
    """What was done about a program.

    :param outcome: ``"average"`` (nobody falls short), ``"projected"``, ``"infeasible"`` (the
        average, because no direction serves everybody), ``"protected"`` (progress for those who can
        have it), ``"stalled"`` (nobody can), ``"no-average"`` (it is zero) or ``"collapsed"`` (zero
        is the only answer).
    :param multipliers: Coefficients of the scaled rows beside the target, ``[r]``.
    :param margin: Feasibility margin of the program.
    :param solver: Which method found the multipliers.
    :param fallbacks: How many methods gave up before.
    :param protected: Which clients some step that hurts nobody gives progress, ``[r]``; ``None``
        where every client is served.
    """

    outcome: str
    multipliers: Tensor
    margin: float
    solver: str = "none"
    fallbacks: int = 0
    protected: Tensor | None = None

    @property
    def moves(self) -> bool:
        """Whether there is a step."""
        return self.outcome not in ("no-average", "stalled", "collapsed")


def diagnostics(program: Program, solution: Solution) -> dict[str, Diagnostic]:
    """What the round saw and did, by client id.

    Progress is the product of a client's scaled row with the scaled average, or with the projected
    direction before it gets the average's length.
    """
    rows, ids, n = program.rows, program.rows.client_ids, program.rows.num_current
    lengths = program.scale * rows.lengths
    moving = lengths > 0
    start = program.average if solution.outcome == "infeasible" else program.target
    taken = (start + solution.multipliers * program.scale) * solution.moves
    progress = program.products(taken)
    size, reference = (
        math.sqrt(max(float(c @ rows.gram @ c), 0.0)) for c in (taken, program.average)
    )
    angle = alignment = math.nan
    if size and reference:
        cosine = float(taken @ rows.gram @ program.average) / (size * reference)
        angle = math.degrees(math.acos(min(1.0, max(-1.0, cosine))))
        alignment = float((progress / lengths)[moving].min()) / size

    def of(mask: Tensor) -> tuple[int, ...]:
        return tuple(c for c, chosen in zip(ids, mask.tolist(), strict=True) if chosen)

    def by_client(values: Tensor) -> dict[int, float]:
        return dict(zip(ids, values.tolist(), strict=True))

    left_out = moving & ~solution.protected if solution.protected is not None else moving & False
    return {
        "outcome": solution.outcome,
        "constrained_now": int(moving[:n].sum()),
        "constrained_cached": int(moving[n:].sum()),
        "cached_clients": ids[n:],
        "zero_updates": of(~moving),
        "violated": of(program.short(program.average)),
        "active": of(solution.multipliers != 0),
        "multipliers": by_client(solution.multipliers),
        "progress_average": by_client(program.products(program.average)),
        "progress_step": by_client(progress),
        "angle_degrees": angle,
        "alignment_margin": alignment,
        "feasibility_margin": solution.margin,
        "unprotected": of(left_out),
        "solver": solution.solver,
        "solver_fallbacks": solution.fallbacks,
    }
