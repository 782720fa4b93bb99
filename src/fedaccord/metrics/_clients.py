"""Clients' accuracies from a few rows each, without the noise of a few rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ._values import Values


def class_shares(
    labels: npt.NDArray[np.int64] | Tensor | Sequence[int],
    parts: Sequence[npt.NDArray[np.int64]],
    *,
    num_classes: int,
) -> Tensor:
    """Return which fraction of each client's training samples is of each class.

    :param labels: ``[n]``, the class of every training sample of one task, in ``[0, C)``.
    :param parts: The samples of each client, ``N`` index arrays.
    :param num_classes: Number of classes ``C``.
    :return: ``[N, C]`` float64 with rows that sum to 1; NaN for a client without samples.
    :raises ValueError: If labels are not ``[n]`` or out of range, or an index is no integer in
        ``[0, n)``; the message names the client.
    """
    classes = np.asarray(labels)
    if classes.ndim != 1:
        raise ValueError(
            f"`labels` must be [n], those of one task. Got shape {classes.shape}. "
            "Take one column: `labels[:, task]`."
        )
    if len(classes) and not (classes.min() >= 0 and classes.max() < num_classes):
        raise ValueError(
            f"`labels` must be in [0, {num_classes}). Got {classes.min()} to {classes.max()}."
        )
    counts = [
        np.bincount(classes[_checked(part, client, len(classes))], minlength=num_classes)
        for client, part in enumerate(parts)
    ]
    table = torch.tensor(np.array(counts, dtype=np.float64).reshape(-1, num_classes))
    return table / table.sum(1, keepdim=True)


def client_accuracies(class_accuracies: Values, shares: Tensor) -> Tensor:
    """Return each client's accuracy under its own mixture of classes.

    The sum over classes of the client's training share of the class times the accuracy on that
    class over the whole test set: one pass over the test set serves all clients, and a client with
    few samples has no noisier value than others. It assumes that a client meets its classes'
    samples at random from the test set's.

    :param class_accuracies: ``[C]`` in ``[0, 1]``; NaN for a class without test examples.
    :param shares: ``[N, C]``, rows that sum to 1, from ``class_shares``.
    :return: ``[N]`` float64; NaN (never zero) for a client without samples, and for one that has a
        class without test examples. ``fairness_summary`` excludes and counts those.
    :raises ValueError: If the numbers of classes differ.
    """
    accuracies = torch.as_tensor(class_accuracies, dtype=torch.float64)
    if shares.ndim != 2 or accuracies.shape != shares.shape[1:]:
        raise ValueError(
            "`class_accuracies` must be [C] and `shares` [N, C]. "
            f"Got {tuple(accuracies.shape)} and {tuple(shares.shape)}."
        )
    # a class the client does not have must not spoil its value: 0 * NaN is NaN
    terms = torch.where(shares == 0, 0.0, shares * accuracies)
    return terms.sum(1)


def _checked(part: npt.ArrayLike, client: int, num_samples: int) -> npt.NDArray[np.int64]:
    rows = np.asarray(part)
    if rows.size == 0:
        return np.zeros(0, dtype=np.int64)
    if rows.ndim != 1 or rows.dtype.kind not in "iu":
        raise ValueError(
            f"The part of client {client} must be integers [k]. Got {rows.dtype} of shape "
            f"{rows.shape}. Use `numpy.flatnonzero` on a mask."
        )
    if rows.min() < 0 or rows.max() >= num_samples:
        raise ValueError(
            f"The part of client {client} must hold indices in [0, {num_samples}). "
            f"Got {rows.min()} to {rows.max()}."
        )
    return rows.astype(np.int64)
