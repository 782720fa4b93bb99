"""Rows with missing values: refused or left out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ._features import Missing
from ._table import Rows, Table

_SHOWN = 10


def complete_rows(
    table: Table, special: Sequence[str], features: Sequence[str], missing: Missing
) -> Rows:
    """Say which rows are kept, ``[n]``.

    :param table: All rows.
    :param special: Columns of clients, targets and test marks, where nothing can be filled in.
    :param features: Columns of inputs.
    :param missing: What to do.
    :raises ValueError: If values are missing that may not be; the message names the columns.
    """
    checked = [*special, *features] if missing != "mean" else special
    gaps = {name: table[name].missing for name in dict.fromkeys(checked)}
    incomplete: Rows = np.any([np.zeros(table.num_rows, dtype=bool), *gaps.values()], axis=0)
    if missing == "drop":
        if incomplete.all():
            counts = {name: int(rows.sum()) for name, rows in gaps.items() if rows.any()}
            raise ValueError(
                f"`missing='drop'` must leave a row. Every row misses a value; missing in each "
                f"column: {counts}. Leave such columns out of `features`."
            )
        return np.logical_not(incomplete)
    for name in special:
        if gaps[name].any():
            raise ValueError(
                f"Column `{name}` must have no missing value, since it is no input. "
                f"{_count(gaps[name], table)} Use `missing='drop'`."
            )
    if incomplete.any():
        found = [f"`{name}` {int(rows.sum())}" for name, rows in gaps.items() if rows.any()]
        more = f" and {len(found) - _SHOWN} more columns" if len(found) > _SHOWN else ""
        raise ValueError(
            f"The inputs must have no missing value. Missing: {', '.join(found[:_SHOWN])}{more}; "
            f"the first in {table.first(incomplete)}. Use `missing='mean'` or `missing='drop'`."
        )
    return np.ones(table.num_rows, dtype=bool)


def _count(rows: Rows, table: Table) -> str:
    return f"{int(rows.sum())} missing, the first in {table.first(rows)}."
