"""The inputs of the heart disease task, made from the hospitals' records."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ._standardise import standardise

_CATEGORIES = {2: (2, 3, 4), 6: (1, 2)}  # chest pain type and resting ECG, first level left out


def heart_inputs(
    records: npt.NDArray[np.float32],
    hospital: npt.NDArray[np.integer],
    is_train: npt.NDArray[np.bool_],
) -> npt.NDArray[np.float32]:
    """Encode categories and standardise every column within each hospital.

    Protocol of FLamby (Ogier du Terrail et al., NeurIPS 2022, Fed-Heart-Disease): mean and sample
    standard deviation of a hospital's training rows, used for all its rows.

    Deviation: a column that is constant on a hospital's training rows is only centred, because its
    standard deviation is zero (cholesterol in Switzerland was recorded as 0 throughout).

    :param records: ``[n, 10]``, the first ten columns of the UCI files, without missing values.
    :param hospital: ``[n]``, which hospital a row is from.
    :param is_train: ``[n]``, whether a row is in the training part.
    :return: ``[n, 13]``: the eight numeric columns in their order, then one column per level of
        chest pain type and of resting ECG.
    """
    numeric = [column for column in range(records.shape[1]) if column not in _CATEGORIES]
    encoded = [records[:, column] for column in numeric]
    for column, levels in _CATEGORIES.items():
        encoded += [records[:, column] == level for level in levels]
    inputs = np.stack(encoded, axis=1).astype(np.float64)
    for number in np.unique(hospital):
        rows = hospital == number
        inputs[rows], _ = standardise(inputs[rows], is_train[rows])
    return inputs.astype(np.float32)
