"""Any aggregator or weighting of TorchJD as a rule."""

from __future__ import annotations

import copy
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor
from torchjd.aggregation import Aggregator, Weighting

from torchjd import Stateful

from ..clients import SeededOperations
from ..cohort import Cohort
from ..errors import NonFiniteError
from ..linalg import combine, gramian, norm
from ..random import generator
from ..rule import Aggregation, Claims, Diagnostic, StatelessRule
from ..rules._checks import check_server_lr
from ..rules._diagnostics import by_client, checked_lengths, cosines, update_lengths
from ._fingerprint import fingerprint
from ._reading import AnyAggregator, read


@dataclass(frozen=True)
class FromTorchJD(StatelessRule):
    r"""What an aggregator of TorchJD makes of the clients' updates.

    Its rows are the deltas (minus the updates) in the place of gradients, each with the same say
    whatever its client's number of examples. They are divided by their root mean square length, and
    the answer gets that length back and is subtracted. So the scale of the updates never meets the
    thresholds inside an aggregator, such as ``norm_eps=1e-4``, below which UPGrad is the mean.

    :param aggregator: An ``Aggregator``, or a ``Weighting`` of a Gramian or a matrix. What weighs
        rows by their Gramian gets ours, accumulated in float64. It is copied here and every round.
    :param server_lr: Factor of the step, positive. 1 is the aggregator's own length in units of
        updates; ``Mean()`` then makes FedAvg's step for clients of equal size.
    :param dtype: The type of the matrix for aggregators that want all of it: ``"float64"``, or
        ``None`` for the updates' own, which takes half the memory for float32 models.
    :raises ValueError: If an argument is out of range, or the aggregator keeps something from call
        to call.

    Deviation: TorchJD's stateful aggregators are refused. What they keep belongs to row numbers,
    and row 2 may be another client in the next round. Random ones draw from the cohort's seed.
    """

    aggregator: AnyAggregator = field(compare=False)  # modules compare by identity
    server_lr: float = 1.0
    dtype: Literal["float64"] | None = "float64"
    _value: Hashable = field(init=False, repr=False)

    paper = "Quinton and Rey, Jacobian descent, arXiv:2406.16232, and the aggregator's own"
    claims = Claims(scale_equivariant=True)

    def __post_init__(self) -> None:
        module = self.aggregator
        if not isinstance(module, Aggregator | Weighting):
            raise ValueError(
                f"`aggregator` must be an aggregator or a weighting of TorchJD, such as "
                f"`UPGrad()`. Got {module!r}."
            )
        if kept := sorted({type(m).__name__ for m in module.modules() if isinstance(m, Stateful)}):
            raise ValueError(
                f"`aggregator` must not keep anything from call to call. {' and '.join(kept)} "
                f"would, by row number, and rows are other clients every round. `FedPCD` remembers "
                f"clients by id."
            )
        check_server_lr(self.server_lr)
        if self.dtype not in ("float64", None):
            raise ValueError(f"`dtype` must be 'float64' or None. Got {self.dtype!r}.")
        read(module)
        object.__setattr__(self, "aggregator", copy.deepcopy(module))
        object.__setattr__(self, "_value", fingerprint(module))

    def aggregate(self, state: None, cohort: Cohort) -> Aggregation[None]:
        """Ask the aggregator.

        :raises NonFiniteError: If its answer is not finite, or an update is too large to square.
        :raises ValueError: If its answer has the wrong shape.
        """
        reading = read(copy.deepcopy(self.aggregator))
        rows = cohort.updates
        if reading.wants_gramian:
            given = gramian(rows)
            lengths = checked_lengths(cohort, given.diagonal())
        else:
            given = -rows.to(torch.float64) if self.dtype else -rows
            lengths = update_lengths(cohort)
        size = float(lengths.square().mean().sqrt())
        seen: dict[str, Diagnostic] = {"outcome": "all-zero"}
        if size == 0:
            return Aggregation(torch.zeros_like(rows[0]), None, seen)
        given = given / size / size if reading.wants_gramian else given / size
        draws = generator(cohort.seed, "torchjd", cohort.round, device=given.device)
        with torch.no_grad(), SeededOperations(draws):
            answer = reading.module(given)
        self._check(answer, len(rows) if reading.gives_weights else rows.shape[1])
        if reading.gives_weights:
            direction = combine(rows, answer)
            longest = float((answer.to(lengths) * lengths).norm())
            seen["weights"] = by_client(cohort, answer)
        else:
            direction, longest = -size * answer.to(torch.float64), size
        # updates that cancel leave rounding errors, whose direction is nobody's
        moves = norm(direction) > torch.finfo(rows.dtype).eps * longest
        seen["outcome"] = "moved" if moves else "stationary"
        step = self.server_lr * (direction if moves else 0 * direction).to(rows.dtype)
        seen["cosines"] = cosines(cohort, step, lengths=lengths)
        return Aggregation(step, None, seen)

    def _check(self, answer: Tensor, length: int) -> None:
        if tuple(answer.shape) != (length,):
            raise ValueError(
                f"The aggregator must answer with shape ({length},). {self.aggregator} gave "
                f"{tuple(answer.shape)}."
            )
        if not torch.isfinite(answer).all():
            raise NonFiniteError(
                f"The aggregator must answer with finite numbers. {self.aggregator} gave NaN or "
                f"infinity."
            )
