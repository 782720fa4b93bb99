"""PCD, the parent method of FedPCD, for training one model with several losses."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, finfo
from torchjd.aggregation import GramianWeightedAggregator, Weighting
from torchjd.linalg import Matrix

from torchjd import Stateful

from ..linalg import combine, gramian, norm
from ._pcd_weighting import PCDWeighting


class PCD(GramianWeightedAggregator, Stateful):
    r"""Priority-constrained descent: the admissible direction nearest to the primary gradient.

    The first row :math:`g_0` is the primary loss's gradient, the others are secondary. Each is
    scaled, :math:`\tilde g_i = g_i / \sqrt{\hat v_i + \varepsilon}`, by a running mean
    :math:`\hat v_i` of its squared length. The direction is the projection of :math:`\tilde g_0` on
    :math:`\tilde g_i^\top d \ge \tau_i \lVert \tilde g_i \rVert^2`, at the length of :math:`g_0`;
    :math:`g_0` itself, bit for bit, when every secondary loss has its share.

    :param tau: Share of progress of the secondary losses, in ``[0, 1]``; one number, or one each.
    :param beta: Decay of the running means, in ``[0, 1)``.
    :param eps: Added to the running means, at least 0.

    Attributes: ``outcome`` says what the last call was: ``"primary"`` (nobody falls short),
    ``"projected"``, ``"infeasible"`` (no direction serves every secondary loss: the primary
    gradient), ``"no-primary"`` (it is zero: zero), ``"collapsed"`` (zero is the only answer) or
    ``"unproven"`` (as infeasible, because no solver's answer could be proven). The running means
    are in ``state_dict()``; :meth:`reset` forgets them.

    Source: Varam and AlHajri, "Not all objectives are born equal", TMLR 2026.
    """

    gramian_weighting: PCDWeighting

    def __init__(
        self, tau: float | Sequence[float] = 0.02, *, beta: float = 0.999, eps: float = 1e-8
    ) -> None:
        super().__init__(PCDWeighting(tau, beta=beta, eps=eps))
        self.weighting = _OfRows(self.gramian_weighting)

    @property
    def outcome(self) -> str:
        """What the last call was."""
        return self.gramian_weighting.outcome

    def reset(self) -> None:
        """Forget the running means."""
        self.gramian_weighting.reset()

    def forward(self, matrix: Matrix, /) -> Tensor:
        """Combine the rows, ``[dim]``.

        :param matrix: Gradients ``[m, dim]``, the primary loss's first.
        :raises NonFiniteError: If one is not finite, or too large to square.
        :raises ValueError: If the number of rows is not that of earlier calls, or of ``tau``.
        """
        direction = combine(matrix, self.weighting(matrix))
        if self.outcome == "projected":  # inner products of nearly opposite rows give fewer digits
            direction *= norm(matrix[0].detach()) / norm(direction)
        return direction.to(matrix.dtype)

    def __repr__(self) -> str:
        return self.gramian_weighting.arguments("PCD")


class _OfRows(Weighting[Matrix]):
    """The weights of rows, from inner products that are accumulated in float64."""

    def __init__(self, weighting: PCDWeighting) -> None:
        super().__init__()
        self._weighting = (weighting,)  # in a tuple, or its state would be saved twice

    def forward(self, matrix: Matrix, /) -> Tensor:
        return self._weighting[0].weigh(gramian(matrix), finfo(matrix.dtype).eps)
