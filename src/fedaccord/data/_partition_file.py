"""A split in a file: JSON, so that it can be read, compared and published without us.

The file holds ``format`` (``"fedaccord-partition"``), ``version`` (1), ``name``, ``seed``,
``parameters``, ``num_samples``, ``client_names`` (or null), ``sha256`` (the split's digest) and
``parts``, one list of sample indices for each client.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from ..errors import DataFileError
from ..files import write_whole
from ._partition import Partition

FORMAT = "fedaccord-partition"
VERSION = 1
_TIGHT = (",", ":")
_KEYS = ("name", "seed", "parameters", "num_samples", "client_names", "sha256", "parts")


def save_partition(path: Path | str, partition: Partition) -> None:
    """Write a split; the file appears complete, or the old one stays.

    :param path: Where to; its folder must exist.
    :param partition: The split.
    :raises ValueError: If a client's name is none that JSON has.
    :raises OSError: If the file cannot be written.
    """
    names = [_plain(name) for name in partition.client_names]
    content = {
        "format": FORMAT,
        "version": VERSION,
        "name": partition.name,
        "seed": partition.seed,
        "parameters": {key: _plain(value) for key, value in partition.parameters.items()},
        "num_samples": partition.num_samples,
        "client_names": names or None,
        "sha256": partition.digest(),
    }
    head = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    # a line for each client: a reader finds one's samples without a program
    lines = ",\n".join(f"  {json.dumps(part.tolist(), separators=_TIGHT)}" for part in partition)
    write_whole(Path(path), f'{head[:-2]},\n "parts": [\n{lines}\n ]\n}}\n'.encode())


def load_partition(path: Path | str) -> Partition:
    """Read a split that :func:`save_partition` wrote, or that somebody wrote in its form.

    :param path: The file.
    :raises DataFileError: If the file is damaged, of another form or version, or its indices are
        not those its digest was made of.
    :raises OSError: If it cannot be read.
    """
    try:
        content = json.loads(Path(path).read_bytes(), parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise DataFileError(f"{path} must hold a split in JSON. It is damaged: {error}.") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise DataFileError(f'{path} must hold a split, `"format": "{FORMAT}"`. It does not.')
    if type(content.get("version")) is not int or content["version"] != VERSION:
        raise DataFileError(
            f"{path} must have version {VERSION}, which this release reads. Got "
            f"{content.get('version')!r}."
        )
    if missing := [key for key in _KEYS if key not in content]:
        raise DataFileError(f"{path} lacks {', '.join(f'`{key}`' for key in missing)}.")
    try:
        partition = Partition(
            [_indices(part) for part in content["parts"]],
            _whole("num_samples", content["num_samples"]),
            name=_of_kind("name", content["name"], str),
            seed=None if content["seed"] is None else _whole("seed", content["seed"]),
            parameters=_of_kind("parameters", content["parameters"], dict),
            client_names=tuple(map(_name, content["client_names"] or ())),
        )
    except (ValueError, TypeError, OverflowError) as error:
        raise DataFileError(f"{path} holds no usable split: {error}") from error
    if partition.digest() != content["sha256"]:
        raise DataFileError(
            f"{path} is damaged or was edited: its indices do not have the SHA-256 it names, "
            f"{content['sha256']!r}."
        )
    return partition


def _plain(value: Hashable) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise ValueError(
        f"A split in a file needs names and parameters that are text or numbers. Got {value!r}."
    )


def _name(value: Any) -> Hashable:
    if isinstance(value, list):
        return tuple(map(_name, value))
    if isinstance(value, Mapping):
        raise TypeError(f"A client's name must be text or a number. Got {value!r}.")
    named: Hashable = value
    return named


def _indices(part: Any) -> np.typing.NDArray[np.int64]:
    if not isinstance(part, list) or not all(type(index) is int for index in part):
        raise TypeError("`parts` must hold lists of whole numbers.")
    return np.array(part, dtype=np.int64)


def _whole(name: str, value: Any) -> int:
    if type(value) is not int or (name == "num_samples" and value < 0):
        raise TypeError(f"`{name}` must be a whole number. Got {value!r}.")
    return value


def _of_kind(name: str, value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"`{name}` has the wrong kind: {value!r}.")
    return value


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")
