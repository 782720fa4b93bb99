"""The answer to FedPCD's program, also when it has none."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import torch
from torch import Tensor

from ..errors import InfeasibleError, SolverError
from ..linalg import (
    INFEASIBLE_MARGIN,
    feasibility_margin,
    project_onto_halfspaces,
    project_with_protection,
    protectable,
)
from ._fedpcd_program import Program

Infeasible: TypeAlias = Literal["average", "protect", "raise"]


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


def solve(program: Program, *, infeasible: Infeasible) -> Solution:
    """Step 4: project the average, and say what to do when nothing serves everybody.

    :raises InfeasibleError: If nothing does and ``infeasible="raise"``.
    """
    nothing, gram = torch.zeros_like(program.scale), program.gram
    if program.average_length == 0 or not program.short(program.target).any():
        margin = feasibility_margin(gram, program.margins > 0)
        if program.average_length == 0:
            return Solution("no-average", nothing, margin)
        # without primary the target is zero, and so is the answer if nobody asks for more
        return Solution("average" if program.target.any() else "collapsed", nothing, margin)
    products = program.products(program.target)
    try:
        projection = project_onto_halfspaces(gram, products, program.margins)
    except SolverError:
        if infeasible != "average":
            raise
        return Solution("infeasible", nothing, math.nan, "unproven", 1)
    found = Solution(
        "projected",
        projection.multipliers,
        projection.margin,
        projection.method,
        projection.fallbacks,
    )
    # rows that are known to a few digits have a margin known to as many
    least = max(INFEASIBLE_MARGIN, float(program.rows.rounding.max()) / 2)
    if projection.feasible and projection.margin > least:
        return found
    return without_direction(program, found, infeasible=infeasible)


def without_direction(program: Program, solution: Solution, *, infeasible: Infeasible) -> Solution:
    """What to do when no direction, or only one of rounding errors, serves everybody.

    :raises InfeasibleError: If ``infeasible="raise"``.
    """
    gram = program.gram
    if not program.margins.any() or solution.outcome == "protected":
        return replace(solution, outcome="collapsed")
    if infeasible == "raise":
        raise InfeasibleError(
            f"No direction gives all of clients {list(program.rows.client_ids)} progress: the "
            f"feasibility margin is {solution.margin:.3g}, zero up to rounding. Choose "
            f'`infeasible="average"` or `"protect"`.'
        )
    if infeasible == "average":
        return replace(
            solution,
            outcome="infeasible",
            multipliers=torch.zeros_like(solution.multipliers),
            solver="none",
            protected=protectable(gram),  # to name those who cannot be given progress
        )
    answer = project_with_protection(gram, program.products(program.target), program.margins)
    return replace(
        solution,
        outcome="stalled" if answer.stalled else "protected",
        multipliers=answer.coefficients,
        solver=answer.method,
        fallbacks=solution.fallbacks + answer.fallbacks,
        protected=answer.protected,
    )
