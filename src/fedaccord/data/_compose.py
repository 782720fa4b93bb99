"""Two images in one: the construction of the two-task image sets.

Source of MultiMNIST and MNIST-FMNIST: Askin, Sharma, Joshi, Joe-Wong, "Federated Communication-
Efficient Multi-Objective Optimization", AISTATS 2025, and its public code.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Images = npt.NDArray[np.uint8]
Indices = npt.NDArray[np.int64]


def nearest_index(source: int, target: int) -> Indices:
    """Return which source row each target row of a nearest-neighbour resize shows.

    :param source: Side of the large image, at least 1.
    :param target: Side of the small image, at least 1.
    :return: ``[target]``, the integer part of ``source * o / target`` for each ``o``.
    :raises ValueError: If a side is smaller than 1.
    """
    if min(source, target) < 1:
        raise ValueError(f"`source` and `target` must be at least 1. Got {source} and {target}.")
    return np.arange(target, dtype=np.int64) * source // target


def overlay(first: Images, second: Images, *, offset: int) -> Images:
    """Lay the second image over the first, shifted down and right, and shrink to the old size.

    The canvas has side ``side + offset``. Where both images lie, the brighter pixel is kept.
    ``offset=14`` gives MNIST-FMNIST (canvas 42).

    :param first: ``[n, side, side]``, the images in the upper left corner.
    :param second: ``[n, side, side]``, the images in the lower right corner.
    :param offset: Shift of the second image in pixels, in ``[0, side]``.
    :return: ``[n, side, side]``, new memory.
    :raises ValueError: If the shapes differ, an image is not square or the offset is out of range.
    """
    if first.ndim != 3 or first.shape != second.shape or first.shape[1] != first.shape[2]:
        raise ValueError(
            "Both image arrays must have the same shape [n, side, side]. "
            f"Got {first.shape} and {second.shape}."
        )
    count, side, _ = first.shape
    if not 0 <= offset <= side:
        raise ValueError(f"`offset` must be in [0, {side}]. Got {offset}.")
    canvas = np.zeros((count, side + offset, side + offset), dtype=np.uint8)
    canvas[:, :side, :side] = first
    lower_right = canvas[:, offset:, offset:]
    np.maximum(lower_right, second, out=lower_right)
    kept = nearest_index(side + offset, side)
    return canvas[:, kept[:, None], kept]
