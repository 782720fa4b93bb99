"""FedPW's accumulated weights and the rates at which entries are dropped."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ..errors import NonFiniteError


@dataclass(frozen=True)
class Trace:
    """Weights accumulated from one kind of evidence.

    :param running: The running mean of the evidence, float64 ``[num_clients]``; :math:`a`.
    :param weights: What accumulated, float64 ``[num_clients]``; :math:`P`.
    :param first: The first round's mean evidence; NaN before it.
    """

    running: Tensor
    weights: Tensor
    first: float = math.nan


def accumulate(
    trace: Trace,
    evidence: Tensor,
    here: Tensor,
    seen: Tensor,
    *,
    beta: float,
    bounded: bool,
    noise: float = 0.0,
) -> tuple[Trace, bool]:
    """Steps 1 and 2 for one kind of evidence, and whether old weights had to be kept.

    :param evidence: Losses, or products with the sum of the updates, ``[n]``.
    :param here: The clients they are of.
    :param seen: Who took part before, bool ``[num_clients]``.
    :param beta: Share of the newest evidence, in ``(0, 1]``, in the first round; later it goes with
        the mean evidence.
    :param bounded: Whether it stays in ``[0, 1]``. Beyond 2 the running mean diverges.
    :param noise: How large a sum can be that is rounding alone.
    :raises NonFiniteError: If the running mean has diverged.
    """
    total, mean = float(evidence.sum()), float(evidence.mean())
    share = evidence / total if total > noise else torch.full_like(evidence, 1 / len(evidence))
    first = mean if math.isnan(trace.first) else trace.first
    share_of_new = beta * (mean / first if first > 0 else 1.0)
    if bounded:
        share_of_new = min(max(share_of_new, 0.0), 1.0)
    running, weights = trace.running.clone(), trace.weights.clone()
    running[here] = (1 - share_of_new) * running[here] + share_of_new * share
    if not torch.isfinite(running).all():
        raise NonFiniteError(
            f"FedPW's running evidence has diverged: the mean evidence is {mean / first:.3g} times "
            f"that of the first round, and `beta` times that is above 2. Use `bounded=True`."
        )
    new = weights[here] + running[here]
    unseen = torch.full_like(new, 1 / len(seen))
    before = float(torch.where(seen[here], weights[here], unseen).sum())
    usable = 0 < float(new.sum()) < math.inf and before > 0
    weights[here] = before * new / new.sum() if usable else weights[here]
    return replace(trace, running=running, weights=weights, first=first), not usable


def mixed(by_loss: Tensor, by_product: Tensor) -> tuple[Tensor, float]:
    """Step 3: the weights ``[n]``, and how much those of losses count in them.

    Where negative weights of direction leave no positive sum, losses alone decide; where not even
    they do, all clients count equally and the share of losses is NaN.
    """
    share = mixing(by_loss, by_product)
    weights = share * by_loss + (1 - share) * by_product
    if weights.sum() <= 0:
        weights, share = by_loss, 1.0
    if weights.sum() <= 0:
        weights, share = torch.ones_like(by_loss), math.nan
    return weights / weights.sum(), share


def mixing(by_loss: Tensor, by_product: Tensor) -> float:
    """How much the weights of losses count: by their spread; one half where nobody differs."""
    if len(by_loss) < 2:
        return 0.5
    one, other = float(by_loss.std()), float(by_product.std())
    return one / (one + other) if one + other > 0 else 0.5


def drop_rates(losses: Tensor, mean: float) -> Tensor:
    """Step 4: inverse to the loss. Clients with loss 0, if there are any, take it all."""
    inverse = (losses == 0).to(torch.float64)
    if not inverse.any():
        inverse = losses.min() / losses
    return (inverse / inverse.sum() * len(losses) * mean).clamp(max=1.0)
