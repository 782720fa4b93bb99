"""The two versions of CIFAR-10 and CIFAR-100: binary records, and pickled dictionaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import DataFileError
from .pickles import plain_pickle

PIXELS = 3 * 32 * 32


def binary_batch(content: bytes, name: str, *, label_bytes: int) -> dict[str, npt.NDArray[Any]]:
    """Read records of labels and one picture each.

    :param content: The file's bytes.
    :param name: The file, for messages.
    :param label_bytes: Labels before each picture: 1 in CIFAR-10, 2 (coarse, fine) in CIFAR-100.
    :return: ``pixels [n, 32, 32, 3]`` and ``labels [n, label_bytes]``, uint8.
    :raises DataFileError: If the bytes are no whole number of records, at least one.
    """
    record = label_bytes + PIXELS
    if not content or len(content) % record:
        raise DataFileError(
            f"`{name}` must be records of {record:,} bytes, at least one. "
            f"Got {len(content):,} bytes."
        )
    rows = np.frombuffer(content, np.uint8).reshape(-1, record)
    return {
        "pixels": channels_last(rows[:, label_bytes:]),
        "labels": rows[:, :label_bytes].copy(),
    }


def python_batch(
    content: bytes, name: str, *, label_keys: Sequence[str]
) -> dict[str, npt.NDArray[Any]]:
    """Read a pickled dictionary without executing it.

    :param content: The file's bytes.
    :param name: The file, for messages.
    :param label_keys: Its lists of labels, such as ``("coarse_labels", "fine_labels")``.
    :return: As :func:`binary_batch`.
    :raises DataFileError: If it is no such dictionary, or anything in it would have to be executed.
    """
    batch = plain_pickle(content, name)
    if not isinstance(batch, Mapping):
        raise DataFileError(f"`{name}` must hold a pickled dictionary. Got {type(batch).__name__}.")
    fields = {_text(key): value for key, value in batch.items()}
    if missing := [key for key in ("data", *label_keys) if key not in fields]:
        raise DataFileError(f"`{name}` must hold `{missing[0]}`, which is missing.")
    pixels = fields["data"]
    if not isinstance(pixels, np.ndarray) or pixels.dtype != np.uint8:
        raise DataFileError(f"`data` of `{name}` must be an array of uint8.")
    if pixels.ndim != 2 or pixels.shape[1] != PIXELS or not len(pixels):
        raise DataFileError(
            f"`data` of `{name}` must be [n, {PIXELS}] with n at least 1. Got {pixels.shape}."
        )
    labels = [_labels(fields[key], len(pixels), key, name) for key in label_keys]
    return {"pixels": channels_last(pixels), "labels": np.stack(labels, axis=1)}


def channels_last(planes: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Turn planes ``[n, 3072]``, all red, all green, all blue, into ``[n, 32, 32, 3]``."""
    return np.ascontiguousarray(planes.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))


def channel_planes(pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Turn pictures ``[n, 32, 32, 3]`` into planes ``[n, 3072]``; the inverse."""
    return np.ascontiguousarray(pixels.transpose(0, 3, 1, 2)).reshape(-1, PIXELS)


def _labels(found: Any, count: int, key: str, name: str) -> npt.NDArray[np.uint8]:
    if isinstance(found, np.ndarray) and found.dtype.kind in "iu":
        found = found.reshape(-1).tolist()
    small = isinstance(found, list) and all(type(v) is int and 0 <= v < 256 for v in found)
    if not small or len(found) != count:
        raise DataFileError(
            f"`{key}` of `{name}` must be {count:,} whole numbers from 0 to 255, one per picture."
        )
    return np.array(found, dtype=np.uint8)


def _text(key: Any) -> Any:
    """The key as text: Python 2 wrote its strings as bytes."""
    return key.decode("latin-1") if isinstance(key, bytes) else key
