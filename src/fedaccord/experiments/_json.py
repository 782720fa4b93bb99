"""Values as strict JSON, and files of it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any, NoReturn

import torch

from ..errors import CheckpointError
from ..files import write_whole


def plain(value: Any) -> Any:
    """Numbers, words, lists and mappings for a value; what is not finite becomes ``None``."""
    if isinstance(value, torch.Tensor):
        return plain(value.tolist())
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def parse(text: bytes) -> Any:
    """Read JSON as the standard has it: no NaN, no infinity.

    :raises ValueError: If it is none, or is nested too deep.
    """
    try:
        return json.loads(text, parse_constant=_refuse)
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def read_json(path: Path) -> Any:
    """Read a file of JSON.

    :raises CheckpointError: If it is damaged.
    :raises OSError: If it cannot be read.
    """
    try:
        return parse(path.read_bytes())
    except ValueError as error:
        raise CheckpointError(f"{path} is damaged: {error}.") from error


def dumps(content: Any) -> str:
    """JSON for people and programs, ending with a line feed."""
    return json.dumps(plain(content), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def write_json(path: Path, content: Any) -> None:
    """Write a file of JSON, whole or not at all."""
    write_whole(path, dumps(content).encode())


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")
