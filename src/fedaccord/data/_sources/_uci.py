"""The comma-separated files of the UCI repository, as the arrays of the datasets' archives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import numpy as np

from ...errors import DataFileError
from .._formats import Arrays, read_file

_LIMIT = 2**25  # the largest of them has 4 MB
_Value = TypeVar("_Value")


def read_adult(paths: tuple[Path, ...]) -> Arrays:
    """Read ``adult.data`` and ``adult.test``.

    :param paths: The two files.
    :return: The arrays of ``adult.npz``; levels are in alphabetical order, ``?`` is -1.
    :raises DataFileError: If a line has not 15 fields or one of them is of another kind.
    """
    # a test file's first line is a remark, and its labels end with a full stop
    rows = [[row for row in _rows(path, 15) if not row[1][0].startswith("|")] for path in paths]
    arrays: Arrays = {}
    numeric = {0: "age", 2: "fnlwgt", 4: "education-num", 10: "capital-gain", 11: "capital-loss"}
    numeric[12] = "hours-per-week"
    categories = {1: "workclass", 3: "education", 5: "marital-status", 6: "occupation"}
    categories |= {7: "relationship", 8: "race", 9: "sex", 13: "native-country"}
    levels = {
        name: sorted({fields[at] for part in rows for _, fields in part} - {"?"})
        for at, name in categories.items()
    }
    for split, part in zip(("train", "test"), rows, strict=True):
        numbers = [[_integer(where, fields[at]) for at in numeric] for where, fields in part]
        codes = [
            [
                levels[name].index(fields[at]) if fields[at] != "?" else -1
                for at, name in categories.items()
            ]
            for _, fields in part
        ]
        labels = [_label(where, fields[14]) for where, fields in part]
        arrays[f"xnum_{split}"] = np.array(numbers, dtype=np.int32).reshape(-1, len(numeric))
        arrays[f"xcat_{split}"] = np.array(codes, dtype=np.int8).reshape(-1, len(categories))
        arrays[f"y_{split}"] = np.array(labels, dtype=np.int8)
    arrays["num_names"] = np.array(list(numeric.values()))
    arrays["cat_names"] = np.array(list(categories.values()))
    for name, found in levels.items():
        arrays[f"cat_{name.replace('-', '_')}"] = np.array(found)
    return arrays


def read_parkinsons(paths: tuple[Path, ...]) -> Arrays:
    """Read ``parkinsons_updrs.data``.

    :param paths: The one file.
    :return: The arrays of ``parkinsons.npz``; patients are numbered from 0.
    :raises DataFileError: If the columns are others, or a field is no number.
    """
    rows = list(_rows(paths[0], 22))
    header = rows[0][1] if rows else []
    if header[:6] != ["subject#", "age", "sex", "test_time", "motor_UPDRS", "total_UPDRS"]:
        raise DataFileError(
            f"`{paths[0]}` must begin with the columns subject#, age, sex, test_time, motor_UPDRS, "
            f"total_UPDRS. Got {', '.join(header[:6])[:100]}."
        )
    table = np.array([[_number(where, field) for field in row] for where, row in rows[1:]])
    table = table.reshape(-1, 22)
    with np.errstate(over="ignore"):  # infinities are refused with the other arrays
        values = table.astype(np.float32)
    return {
        "x": np.concatenate([values[:, 1:3], values[:, 6:]], axis=1),
        "y": values[:, 4:6],
        "client": np.array([_integer(where, row[0], 127) - 1 for where, row in rows[1:]], np.int8),
        "test_time": values[:, 3],
        "feature_names": np.array([*header[1:3], *header[6:]]),
        "target_names": np.array(header[4:6]),
    }


def _rows(path: Path, num_fields: int) -> Iterator[tuple[str, list[str]]]:
    """The lines that are not empty, each with its place for messages."""
    for number, line in enumerate(read_file(path, _LIMIT).decode("latin-1").splitlines(), start=1):
        fields = [field.strip() for field in line.split(",")]
        where = f"Line {number} of `{path}`"
        if fields[0].startswith("|"):
            yield where, fields
        elif line.strip():
            if len(fields) != num_fields:
                raise DataFileError(
                    f"{where} must have {num_fields} fields between commas. Got {len(fields)}."
                )
            yield where, fields


def _integer(where: str, field: str, largest: int = 2**31 - 1) -> int:
    value = _parsed(where, field, int, "a whole number")
    if abs(value) > largest:
        raise DataFileError(f"{where} must hold numbers up to {largest:,}. Got {field[:40]!r}.")
    return value


def _number(where: str, field: str) -> float:
    return _parsed(where, field, float, "a number")


def _parsed(where: str, field: str, read: Callable[[str], _Value], kind: str) -> _Value:
    try:
        return read(field)
    except ValueError as error:
        raise DataFileError(f"{where} must hold {kind}. Got {field[:40]!r}.") from error


def _label(where: str, field: str) -> int:
    found = field.removesuffix(".")
    if found not in ("<=50K", ">50K"):
        raise DataFileError(f"{where} must end with <=50K or >50K. Got {field[:40]!r}.")
    return int(found == ">50K")
