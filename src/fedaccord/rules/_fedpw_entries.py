"""What FedPW does to the entries of one tensor: prune the small, amplify the agreed."""

from __future__ import annotations

import math

import torch
from torch import Tensor

# the authors' means run over every tenth entry only
STRIDE = 10


def pruned(rows: Tensor, rates: Tensor) -> tuple[Tensor, float]:
    """Each client's rows without the smallest entries, and their mean size before.

    :param rows: One tensor's updates, float64 ``[n, entries]``.
    :param rates: The share of entries each client drops, ``[n]``.
    :returns: The rows, and the mean over clients of the mean size of every tenth dropped entry;
        NaN if a client drops nothing.
    """
    rows = rows.clone()
    sizes = []
    for row, rate in zip(rows, rates.tolist(), strict=True):
        # 10 * .3 is below 3 in floating point
        count = min(math.floor(len(row) * rate + 1e-9), len(row))
        smallest = torch.sort(row.abs(), stable=True).indices[:count]
        sizes.append(float(row[smallest[::STRIDE]].abs().mean()) if count else math.nan)
        row[smallest] = 0.0
    return rows, sum(sizes) / len(sizes)


def amplified(
    rows: Tensor, combined: Tensor, *, share: float, dropped: float
) -> tuple[Tensor, float]:
    """The combination with its most agreed entries enlarged, and the factor; 1 if none is.

    :param rows: The pruned rows, float64 ``[n, entries]``.
    :param combined: Their weighted sum, ``[entries]``.
    :param share: The share of entries to enlarge.
    :param dropped: What :func:`pruned` gives; the more was dropped, the more is made up for.
    """
    spread = _disagreement(rows)
    count = math.floor(rows.shape[1] * share + 1e-9)
    agreed = torch.sort(spread, stable=True).indices[:count]
    if spread.isinf().all() or not count:
        return combined, 1.0
    size = float(combined[agreed[::STRIDE]].abs().mean())
    if not (size > 0 and dropped / size < 1):
        return combined, 1.0
    factor = 1 + dropped / size
    enlarged = combined.clone()
    enlarged[agreed] *= factor
    return enlarged, factor


def _disagreement(rows: Tensor) -> Tensor:
    """How much clients disagree on each entry, ``[entries]``; infinite where nothing is left.

    The standard deviation over clients, after each client's row and then each entry's column got
    unit length. Clients with nothing left are left out; fewer than two cannot agree.
    """
    largest = rows.abs().amax(dim=1, keepdim=True)
    rows = (rows / largest)[largest[:, 0] > 0]
    if len(rows) < 2:
        return rows.new_full((rows.shape[1],), math.inf)
    rows = rows / rows.norm(dim=1, keepdim=True)
    columns = rows.norm(dim=0)
    spread = (rows / columns).std(dim=0)
    return torch.where(columns > 0, spread, math.inf)
