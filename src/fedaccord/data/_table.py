"""A table of named columns, from whatever holds one."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from ..errors import UnknownNameError

Rows: TypeAlias = npt.NDArray[np.bool_]
ColumnKind: TypeAlias = Literal["numbers", "flags", "text"]


@dataclass(frozen=True, eq=False)
class Column:
    """One column.

    :param values: ``[n]``: integers or floating-point numbers, booleans, or strings as objects;
        anything where they are missing.
    :param missing: ``[n]``, which values are.
    :param kind: What the values are.
    """

    values: npt.NDArray[Any]
    missing: Rows
    kind: ColumnKind


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of equal length.

    :param columns: By name, in order.
    :param num_rows: Their length.
    :param where: Says of a row number where the user finds that row.
    """

    columns: Mapping[str, Column]
    num_rows: int
    where: Callable[[int], str] = "row {}".format

    def __getitem__(self, name: str) -> Column:
        if name not in self.columns:
            raise UnknownNameError.among("column", name, self.columns)
        return self.columns[name]

    def first(self, rows: Rows) -> str:
        """Where the first of the marked rows is."""
        return self.where(int(np.flatnonzero(rows)[0]))


def read_table(frame: Any) -> Table:
    """Read a data frame of pandas or polars, or a mapping from names to columns.

    :param frame: Any object with ``columns`` and ``frame[name]``, or a mapping.
    :raises TypeError: If it is neither.
    :raises ValueError: If a name occurs twice, lengths differ, or a column holds anything but
        numbers, booleans and text; the message names column and row.
    """
    if isinstance(frame, Mapping):
        names = list(frame)
    elif hasattr(frame, "collect"):
        raise TypeError("The frame must hold its rows. Got a lazy one; call `.collect()` first.")
    elif hasattr(frame, "columns") and hasattr(frame, "__getitem__"):
        names = list(frame.columns)
    else:
        raise TypeError(
            f"`frame` must be a data frame or a mapping from names to columns. "
            f"Got {type(frame).__name__}."
        )
    if not_text := [name for name in names if not isinstance(name, str)]:
        raise ValueError(f"Columns must have names that are text. Got {not_text[:5]}.")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"Columns must have different names. Got `{twice}` twice.")
    columns = {name: _read(frame[name], name) for name in names}
    lengths = {name: len(column.values) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"All columns must have the same length. Got {lengths}.")
    return Table(columns, next(iter(lengths.values()), 0))


def number_in(text: str) -> float | None:
    """The number that a text writes out, or ``None``; ``1_000`` is none."""
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def _read(series: Any, name: str) -> Column:
    if hasattr(series, "isna"):  # pandas
        missing = np.asarray(series.isna(), dtype=bool)
    elif hasattr(series, "is_null"):  # polars
        missing = np.asarray(series.is_null().to_numpy(), dtype=bool)
    else:
        missing = np.zeros(len(series), dtype=bool)
    values = np.asarray(series.to_numpy() if hasattr(series, "to_numpy") else series)
    if values.ndim != 1:
        raise ValueError(f"Column `{name}` must be one-dimensional. Got {list(values.shape)}.")
    if isinstance(series, list | tuple) and values.dtype.kind not in "fiub":
        values = np.array([*series, None], dtype=object)[:-1]  # NumPy makes text of [1, "a"]
    if values.dtype.kind == "U":
        values = values.astype(object)
    if values.dtype == object:
        missing = missing | np.array([_is_missing(value) for value in values], dtype=bool)
    elif values.dtype.kind == "f":
        missing = missing | np.isnan(values)
    elif values.dtype.kind not in "iub":
        times = values.dtype.kind in "mM"
        fix = " Turn times into numbers, for example days since the first." if times else ""
        raise ValueError(
            f"Column `{name}` must hold numbers, booleans or text. Got {values.dtype}.{fix}"
        )
    if str(getattr(series, "dtype", "")).lower().startswith(("category", "categorical", "enum")):
        return Column(as_text(values, missing), missing, "text")
    if values.dtype == object:
        return _of_objects(values, missing, name)
    return Column(values, missing, "flags" if values.dtype == bool else "numbers")


def as_text(values: npt.NDArray[Any], missing: Rows) -> npt.NDArray[Any]:
    """Write the values out, whole floating-point numbers without their point.

    Integers become floating-point numbers where a value is missing beside them.
    """
    text = np.empty(len(values), dtype=object)
    for row in np.flatnonzero(~missing):
        value = values[row]
        whole = isinstance(value, float | np.floating) and float(value).is_integer()
        text[row] = str(int(value)) if whole else str(value)
    return text


def _is_missing(value: object) -> bool:
    return value is None or (isinstance(value, float | np.floating) and math.isnan(value))


def _of_objects(values: npt.NDArray[Any], missing: Rows, name: str) -> Column:
    rows = np.flatnonzero(~missing)
    if len(rows) == 0:
        return Column(np.zeros(len(values)), missing, "numbers")
    kind = _kind_of(values[rows[0]])
    for row in rows:
        if kind is None or _kind_of(values[row]) != kind:
            raise ValueError(
                f"Column `{name}` must hold numbers, booleans or text, one kind throughout. "
                f"Row {row} holds {str(values[row])[:40]!r}, a `{type(values[row]).__name__}`; "
                f"the first value is {str(values[rows[0]])[:40]!r}. Convert the column first."
            )
    assert kind is not None
    if kind == "text":
        return Column(values, missing, kind)
    common = np.array([values[row] for row in rows])
    plain = np.zeros(len(values), dtype=common.dtype)
    plain[rows] = common
    return Column(plain, missing, kind)


def _kind_of(value: object) -> ColumnKind | None:
    if isinstance(value, str):
        return "text"
    if isinstance(value, bool | np.bool_):
        return "flags"
    return "numbers" if isinstance(value, int | float | np.integer | np.floating) else None
