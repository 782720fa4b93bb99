"""Files of comma-separated values, as one table that knows file and line of every row."""

from __future__ import annotations

import bisect
import codecs
import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import DataFileError
from ._table import Column, Table, number_in

MISSING = frozenset({"", "NA", "N/A", "NaN", "nan", "NULL", "null"})
"""What stands for a missing value in a file of text."""


@dataclass(frozen=True)
class TextTable:
    """The fields of one file.

    :param name: What to call the file in errors.
    :param header: Names of the columns; empty for an empty file.
    :param rows: The fields of each row, as many as the header has.
    :param lines: The line of each row in the file, counted from 1.
    """

    name: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    lines: tuple[int, ...]


def read_csv(path: Path, name: str, *, delimiter: str, encoding: str) -> TextTable:
    """Read a file whose first line names the columns; empty lines are passed over.

    :param path: The file.
    :param name: What to call it in errors.
    :param delimiter: What separates fields.
    :param encoding: Of the text; a byte-order mark is dropped.
    :raises LookupError: If there is no such encoding.
    :raises DataFileError: If the file cannot be read, a column has no name of its own, or a line
        has another number of fields; the message names file and line.
    """
    rows, lines = [], []
    is_utf8 = codecs.lookup(encoding).name == "utf-8"
    with path.open(encoding="utf-8-sig" if is_utf8 else encoding, newline="") as file:
        reader = csv.reader(file, delimiter=delimiter, strict=True)
        try:
            header = next(reader, [])
            _require_names(header, name, delimiter)
            for row in reader:
                if not row:
                    continue
                if len(row) != len(header):
                    raise DataFileError(
                        f"{name}, line {reader.line_num}: the header has {len(header)} fields, "
                        f"this line {len(row)}."
                    )
                rows.append(tuple(field.strip() for field in row))
                lines.append(reader.line_num)
        except csv.Error as error:
            raise DataFileError(
                f"{name}, line {reader.line_num}: it must be comma-separated text. "
                f"Python says: {error}."
            ) from error
        except UnicodeDecodeError as error:
            raise DataFileError(
                f"{name} must be text in {encoding}. Byte {error.object[error.start]:#x} is none. "
                "Pass its `encoding`, often 'cp1252' or 'utf-16'."
            ) from error
    return TextTable(name, tuple(field.strip() for field in header), tuple(rows), tuple(lines))


def joined(files: Sequence[TextTable]) -> Table:
    """Put the rows of several files below each other.

    A column holds numbers if all its values in all files are numbers.

    :param files: Their columns may be in different order; empty files add nothing.
    :raises DataFileError: If columns differ or all files are empty; the message names the files.
    """
    full = [file for file in files if file.header]
    if not full:
        raise DataFileError(f"At least one file must have columns. All {len(files)} are empty.")
    first = full[0]
    for file in full:
        require_columns(file.name, file.header, first.name, first.header)
    columns = {
        name: _column([row[file.header.index(name)] for file in full for row in file.rows])
        for name in first.header
    }
    starts = np.cumsum([0, *(len(file.rows) for file in full)]).tolist()

    def where(row: int) -> str:
        place = bisect.bisect_right(starts, row) - 1
        return f"{full[place].name}, line {full[place].lines[row - starts[place]]}"

    return Table(columns, starts[-1], where)


def require_columns(name: str, columns: Sequence[str], first: str, expected: Sequence[str]) -> None:
    """Check that a file has the columns of another one, in whatever order.

    :param name: What to call the file.
    :param columns: Its columns.
    :param first: What to call the other file.
    :param expected: That one's columns.
    :raises DataFileError: If it has not.
    """
    if set(columns) != set(expected):
        lacks = sorted(set(expected) - set(columns))
        adds = sorted(set(columns) - set(expected))
        raise DataFileError(
            f"{name} must have the columns of {first}. It lacks {lacks[:10]} and adds {adds[:10]}."
        )


def _require_names(header: list[str], name: str, delimiter: str) -> None:
    fields = [field.strip() for field in header]
    if len(fields) == 1:
        for other in (";", "\t", ",", "|"):
            if other != delimiter and other in fields[0]:
                raise DataFileError(
                    f"{name} has a single column, {fields[0][:60]!r}. Pass `delimiter={other!r}`."
                )
    for place, field in enumerate(fields):
        if not field or field in fields[:place]:
            what = f"the name {field!r} of an earlier one" if field else "no name"
            fix = "" if field or place else " pandas leaves out row numbers with `index=False`."
            raise DataFileError(
                f"{name}, line 1: each column must have a name of its own. "
                f"Column {place + 1} has {what}.{fix}"
            )
    counted = fields == [str(place) for place in range(len(fields))]  # pandas' names of none
    if fields and not counted and all(number_in(field) is not None for field in fields):
        raise DataFileError(
            f"{name}, line 1: the first line must name the columns. It holds numbers. Add such a "
            "line."
        )


def _column(fields: Sequence[str]) -> Column:
    missing = np.array([field in MISSING for field in fields], dtype=bool)
    numbers = np.zeros(len(fields))
    for row, field in enumerate(fields):
        if missing[row]:
            continue
        number = number_in(field)
        if number is None:
            text: npt.NDArray[Any] = np.array([*fields, None], dtype=object)[:-1]
            return Column(text, missing, "text")
        numbers[row] = number
    return Column(numbers, missing, "numbers")
