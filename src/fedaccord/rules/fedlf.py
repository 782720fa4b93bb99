"""FedLF: in every layer, the shortest combination that serves clients and fairness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ..cohort import Cohort
from ..history import History
from ..layout import Spec
from ..linalg import gramian, norm
from ..rule import Aggregation, Claims, Diagnostic, Rule
from ._blocks import Blocks, blocks_of, check_blocks
from ._checks import check_rounds_advance, check_server_lr, check_state
from ._diagnostics import SMALLEST, by_client, chosen, cosines
from ._fedlf_layers import Layer, fairness_vector, safe_length, solve_layers


@dataclass(frozen=True)
class FedLFState:
    """What FedLF remembers.

    :param history: Last update of every client that may still count.
    :param seen: Every client that ever took part, sorted.
    """

    history: History = field(default_factory=History)
    seen: tuple[int, ...] = ()


@dataclass(frozen=True)
class FedLF(Rule[FedLFState]):
    r"""Layer-wise minimum-norm direction of all updates, a fairness row and absent clients.

    In each block all rows get the length of the mean row. The fairness row is the combination of
    updates that brings losses nearer to each other.

    :param blocks: What a layer is: ``"tensors"``, each parameter, as in the authors' code;
        ``"modules"``, weight and bias together; ``"model"``, the whole vector.
    :param merge: Whether a block without common direction is merged with the next one (the last
        with the one before) and solved again, as in the paper. The authors' code leaves it at zero.
    :param server_lr: Factor of the step, positive; 1 is the length of the plain mean.

    Deviations: updates stand for gradients, which is the same when all clients of a round use one
    learning rate; the safeguard's tolerance is relative to the longest update.
    """

    blocks: Blocks = "tensors"
    merge: bool = True
    server_lr: float = 1.0

    paper = "Pan et al., AAAI 2024, FedLF"
    state_types = (FedLFState, History)

    def __post_init__(self) -> None:
        check_blocks(self.blocks)
        check_server_lr(self.server_lr)

    @property
    def needs(self) -> Mapping[str, tuple[str, ...]]:
        """The update, and the loss of the received model."""
        return {"train": ("update", "loss")}

    @property
    def claims(self) -> Claims:
        """A block's shortest combination is against no row of it."""
        return Claims(non_conflicting=True, scale_equivariant=True)

    def init(self, spec: Spec) -> FedLFState:
        """Nobody seen yet."""
        return FedLFState()

    def aggregate(self, state: FedLFState, cohort: Cohort) -> Aggregation[FedLFState]:
        """Solve every layer, and give the whole the length of the mean.

        :raises NonFiniteError: If an update is too large to square.
        :raises SolverError: If no solver's weights could be proven optimal.
        :raises ValueError: If the cohort's round is not after those remembered.
        """
        check_state(state, FedLFState)
        check_rounds_advance(state.history.rounds.values(), cohort.round)
        n = len(cohort)
        seen = tuple(sorted({*state.seen, *cohort.client_ids}))
        window = len(seen) // n if len(seen) > n else 0
        recent = state.history.forget(before=cohort.round - window)
        rows = recent.join(cohort)
        fairness = fairness_vector(cohort.losses)
        layers = blocks_of(cohort, self.blocks)
        solved = solve_layers(rows, fairness, layers, merge=self.merge)

        updates = cohort.updates
        direction = torch.zeros(updates.shape[1], dtype=torch.float64, device=updates.device)
        for layer in solved:
            direction[layer.columns] = layer.direction
        mean = torch.zeros(len(rows.client_ids), dtype=torch.float64)
        mean[:n] = 1 / n
        length, size = norm(rows.combine(mean)), norm(direction)
        lengths = rows.lengths[:n] * (rows.lengths[:n] ** 2 >= SMALLEST)
        if size > 0:
            progress = gramian(updates, direction[None])[:, 0] / size
            length = safe_length(length, size, float(-progress.min()), float(lengths.max()))
            direction *= length / size
        step = (self.server_lr * direction).to(updates.dtype)
        facts: dict[str, Diagnostic] = {
            "outcome": "moved" if step.any() else "no-average" if size > 0 else "stationary",
            "fairness": by_client(cohort, _at_scale(fairness, cohort.losses)),
            "absent_clients": rows.client_ids[n:],
            "zero_updates": chosen(cohort, lengths == 0),
            "layers": len(layers),
            "layers_after_merging": len(solved),
            "layers_without_step": sum(layer.stuck for layer in solved),
            "weights": dict(
                zip(rows.client_ids, _mean_weights(solved, len(rows.client_ids)), strict=True)
            ),
            "direction_length": size,
            "cosines": cosines(cohort, step, lengths=lengths),
        }
        return Aggregation(step, FedLFState(recent.record(cohort, rows), seen), facts)


def _at_scale(fairness: Tensor, losses: Tensor) -> Tensor:
    """The paper's own fairness vector."""
    size = float(losses.to(torch.float64).norm())
    return fairness / size if size > 0 else fairness


def _mean_weights(layers: Sequence[Layer], count: int) -> list[float]:
    total: Tensor = sum((layer.weights for layer in layers), torch.zeros(count).double())
    return (total / len(layers)).tolist()
