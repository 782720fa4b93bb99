"""A round as one line of JSON, and the file of those lines."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any, TypeAlias

import torch

from ..errors import CheckpointError
from ..training import RoundResult

Record: TypeAlias = dict[str, Any]


def record_of(result: RoundResult, evaluation: Mapping[str, Any] | None = None) -> Record:
    """Say what a round did, in values that JSON has.

    :param result: The round.
    :param evaluation: What the model achieved after it, where that was measured.
    """
    silent = {*result.failures, *result.without_examples}
    record: Record = {
        "round": result.round,
        "asked": list(result.client_ids),
        "answered": [client for client in result.client_ids if client not in silent],
        "num_examples": plain(result.num_examples),
        "failures": plain(result.failures),
        "without_examples": list(result.without_examples),
        "empty": result.empty,
        "step_norm": plain(result.step_norm),
        "diagnostics": plain(result.diagnostics),
    }
    if evaluation is not None:
        record["evaluation"] = plain(evaluation)
    return record


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


def line_of(record: Mapping[str, Any]) -> str:
    """The line of a record; the same record always gives the same bytes."""
    return json.dumps(record, allow_nan=False, ensure_ascii=False, separators=(",", ":")) + "\n"


def read_records(path: Path) -> list[Record]:
    """Read the records of a file. A line that was cut off, at the end, is left out.

    :raises CheckpointError: If another line cannot be read, or rounds are out of order.
    """
    lines = path.read_bytes().split(b"\n")
    records: list[Record] = []
    for number, line in enumerate(lines[:-1]):  # what follows the last line feed was cut off
        try:
            record = json.loads(line)
            found = record["round"]
        except (ValueError, KeyError, TypeError) as error:
            raise CheckpointError(f"{path}, line {number + 1} is no record of a round.") from error
        if found != number:
            raise CheckpointError(
                f"{path}, line {number + 1} must be round {number}. Found round {found}."
            )
        records.append(record)
    return records


def keep_rounds(path: Path, rounds: int) -> None:
    """Cut a file of records after so many rounds, whole or not at all.

    :param path: The file; none at all counts as an empty one.
    :param rounds: How many to keep.
    :raises CheckpointError: If it holds fewer.
    """
    records = read_records(path) if path.exists() else []
    if len(records) < rounds:
        raise CheckpointError(
            f"{path} must hold the {rounds} rounds that the checkpoint was made after. "
            f"Found {len(records)}."
        )
    lines = path.read_bytes().split(b"\n")[:rounds] if records else []
    write_whole(path, b"".join(line + b"\n" for line in lines))


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that it appears complete, or the old one stays."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
