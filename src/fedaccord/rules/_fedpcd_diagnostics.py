"""What a round of FedPCD tells, by client id."""

from __future__ import annotations

import math

from torch import Tensor

from ..rule import Diagnostic
from ._fedpcd_program import Program
from ._fedpcd_solution import Solution


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
