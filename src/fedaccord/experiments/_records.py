"""A round as one line of JSON, and the file of those lines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from ..errors import CheckpointError
from ..files import write_whole
from ..training import RoundResult
from ._json import parse, plain

Record: TypeAlias = dict[str, Any]

# what every reader of records relies on
_KINDS: Mapping[str, type] = {
    "round": int,
    "asked": list,
    "answered": list,
    "failures": dict,
    "without_examples": list,
    "empty": bool,
    "diagnostics": dict,
}


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


def line_of(record: Mapping[str, Any]) -> str:
    """The line of a record; the same record always gives the same bytes."""
    return json.dumps(record, allow_nan=False, ensure_ascii=False, separators=(",", ":")) + "\n"


def read_records(path: Path) -> list[Record]:
    """Read the records of a file; a line that was cut off, at the end, is left out.

    :param path: The file; none at all counts as an empty one.

    :raises CheckpointError: If another line cannot be read, or rounds are out of order.
    """
    records: list[Record] = []
    for number, line in enumerate(lines_of(path)):
        record = _record(line, f"{path}, line {number + 1}")
        if record["round"] != number:
            raise CheckpointError(
                f"{path}, line {number + 1} must be round {number}. Found round {record['round']}."
            )
        records.append(record)
    return records


def keep_rounds(path: Path, rounds: int) -> None:
    """Cut a file of records after so many rounds, whole or not at all.

    :param path: The file; none at all counts as an empty one.
    :param rounds: How many to keep.
    :raises CheckpointError: If it holds fewer.
    """
    records = read_records(path)
    if len(records) < rounds:
        raise CheckpointError(
            f"{path} must hold every round before the checkpoint, {rounds} in all. "
            f"Found {len(records)}."
        )
    write_whole(path, b"".join(line + b"\n" for line in lines_of(path)[:rounds]))


def lines_of(path: Path) -> list[bytes]:
    """The whole lines of a file of records; what follows the last line feed was cut off."""
    return path.read_bytes().split(b"\n")[:-1] if path.exists() else []


def _record(line: bytes, place: str) -> Record:
    try:
        record = parse(line)
        good = all(type(record[key]) is kind for key, kind in _KINDS.items())
        good = good and isinstance(record.get("evaluation", {}), dict)
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{place} is no record of a round.") from error
    if not good:
        raise CheckpointError(f"{place} is no record of a round: a value is of the wrong kind.")
    assert isinstance(record, dict)
    return record
