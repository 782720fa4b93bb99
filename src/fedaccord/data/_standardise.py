"""Columns with mean zero and deviation one on the training rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Columns = npt.NDArray[np.float64]


def standardise(values: Columns, is_train: npt.NDArray[np.bool_]) -> tuple[Columns, Columns]:
    """Shift and scale every column by what its training rows show.

    A column that is constant on the training rows is only centred, because its deviation is zero.

    :param values: ``[n, columns]``.
    :param is_train: ``[n]``, whether a row is in the training part; at least two are.
    :return: The result ``[n, columns]``; and ``[2, columns]``, the mean and the scale, with
        ``value = mean + scale * result``.
    """
    train = values[is_train]
    mean, deviation = train.mean(axis=0), train.std(axis=0, ddof=1)
    scale = np.where(deviation > 0, deviation, 1)
    return (values - mean) / scale, np.stack([mean, scale])
