"""CRAFT: the last direction, changed so that every client gets exactly its weight of progress."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..cohort import Cohort
from ..layout import Spec
from ..linalg import norm
from ..rule import Aggregation, Diagnostic, Rule
from ._blocks import Blocks, blocks_of, check_blocks
from ._checks import check_server_lr, check_state
from ._craft_block import resolve
from ._diagnostics import by_client, chosen, cosines, update_lengths


@dataclass(frozen=True)
class CRAFTState:
    """What CRAFT remembers.

    :param previous: The last direction, float64 ``[dim]``; ``None`` before the first round.
    """

    previous: Tensor | None = None


@dataclass(frozen=True)
class CRAFT(Rule[CRAFTState]):
    r"""In every block, the vector nearest to the last direction with equal progress by share.

    .. math:: d = \hat g + U^+ (\rho - U \hat g), \quad \text{so that} \quad
              \langle u_i, d \rangle = \rho_i \ \text{where that can be.}

    Here :math:`u_i` is client :math:`i`'s unit update in the block and :math:`\rho_i` its share of
    the examples.

    :param blocks: ``"modules"``, the paper's: weight, bias and following normalisation of a layer;
        ``"tensors"``: each parameter; ``"model"``: the whole vector.
    :param server_lr: Factor of the direction, positive; :math:`\eta_s`. The length of a block's
        direction does not depend on the updates' lengths (unless one client alone moves it).

    Deviations: blocks are read from names and shapes of the parameters; directions in which unit
    updates extend by less than about 1e-7 count as none.
    """

    blocks: Blocks = "modules"
    server_lr: float = 0.1

    paper = "Wang, Liu, Thuerey, arXiv 2605.21317, 2026, CRAFT"
    state_types = (CRAFTState,)

    def __post_init__(self) -> None:
        check_blocks(self.blocks)
        check_server_lr(self.server_lr)

    def init(self, spec: Spec) -> CRAFTState:
        """No direction yet."""
        return CRAFTState()

    def aggregate(self, state: CRAFTState, cohort: Cohort) -> Aggregation[CRAFTState]:
        """Solve every block.

        :raises NonFiniteError: If an update is too large to square.
        """
        check_state(state, CRAFTState)
        updates, shares = cohort.updates, cohort.shares
        direction = torch.zeros(updates.shape[1], dtype=torch.float64, device=updates.device)
        previous = direction if state.previous is None else state.previous.to(direction.device)
        blocks = blocks_of(cohort, self.blocks)
        idle, worst = 0, 0.0
        for block in blocks:
            direction[block], residual = resolve(cohort, updates[:, block], shares, previous[block])
            idle += not direction[block].any()
            worst = max(worst, residual)
        step = (self.server_lr * direction).to(updates.dtype)
        lengths = update_lengths(cohort)
        seen: dict[str, Diagnostic] = {
            "outcome": "moved" if step.any() else "stationary",
            "weights": by_client(cohort, shares),
            "zero_updates": chosen(cohort, lengths == 0),
            "blocks": len(blocks),
            "blocks_without_step": idle,
            "largest_residual": worst,
            "direction_length": norm(direction),
            "cosines": cosines(cohort, step, lengths=lengths),
        }
        return Aggregation(step, CRAFTState(direction), seen)
