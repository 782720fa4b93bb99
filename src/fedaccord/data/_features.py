"""From the columns of a table to the inputs of a model."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from ._labels import Indices
from ._table import Column, Table, as_text, number_in

Missing: TypeAlias = Literal["raise", "mean", "drop"]
Standardise: TypeAlias = Literal["all", "clients"]


@dataclass(frozen=True, eq=False)
class Inputs:
    """A matrix and what it was made of.

    :param values: ``[n, d]`` float64.
    :param names: Of its columns, ``d`` of them; ``column=level`` for a level of a text column.
    :param notes: What was filled in and how columns were standardised.
    """

    values: npt.NDArray[np.float64]
    names: tuple[str, ...]
    notes: Mapping[str, Any]


def encode_features(
    table: Table,
    features: Sequence[str],
    *,
    categories: Collection[str],
    max_levels: int,
    train: Sequence[Indices],
    standardise: Standardise | None,
    owned: Sequence[Indices],
) -> Inputs:
    """Turn columns into a matrix: numbers as they are, a column of zeros and ones a level of text.

    Missing numbers become the mean over the training rows, missing text a level of its own.

    :param table: The columns, of the rows to encode.
    :param features: Which columns.
    :param categories: Those to take as categories though they hold numbers.
    :param max_levels: How many levels a column may have.
    :param train: The training rows of each client; means and scales come from these alone.
    :param standardise: Bring numbers to mean 0 and variance 1 over all training rows or over each
        client's own; flags and levels stay as they are.
    :param owned: All rows of each client.
    :raises ValueError: If a column holds numbers written as text or too many levels, or there is no
        training row to take a mean from.
    """
    blocks, names, numbers = [], [], []
    fitted = np.unique(np.concatenate([*train, np.empty(0, dtype=np.int64)]))
    filled = {}
    for name in features:
        column = table[name]
        if count := int(column.missing.sum()):
            filled[name] = count
        if name in categories or column.kind == "text":
            if name not in categories:
                _require_no_numbers(column, name, table)
            block, levels = _one_hot(column, name, max_levels)
            names += levels
        else:
            block = _filled(column, name, fitted)[:, None]
            if column.kind == "numbers":
                numbers.append(len(names))
            names.append(name)
        blocks.append(block)
    values = np.concatenate([np.empty((table.num_rows, 0)), *blocks], axis=1)
    if infinite := [names[place] for place in np.flatnonzero(~np.isfinite(values).all(0))]:
        row = table.first(~np.isfinite(values).all(1))
        raise ValueError(f"Columns {infinite} must be finite. They hold infinity, first in {row}.")
    notes: dict[str, Any] = {"filled": filled}
    if standardise == "all":
        mean, scale = _moments(values, fitted, numbers)
        values[:, numbers] = (values[:, numbers] - mean) / scale
        notes["standardised"] = {
            names[place]: (float(mean[i]), float(scale[i])) for i, place in enumerate(numbers)
        }
    elif standardise == "clients":
        _standardise_each(values, numbers, train=train, owned=owned, fitted=fitted)
    return Inputs(values, tuple(names), notes)


def _require_no_numbers(column: Column, name: str, table: Table) -> None:
    """Refuse a column of numbers that one stray word has made text."""
    present = np.flatnonzero(~column.missing)
    texts = column.values[present]
    is_number = {text: number_in(text) is not None for text in set(texts)}
    numeric = np.array([is_number[text] for text in texts], dtype=bool)
    if len(texts) == 0 or 2 * numeric.sum() < len(texts):
        return
    as_category = f"or, if they are categories, name it in `categories=['{name}']`"
    if numeric.all():
        raise ValueError(
            f"Column `{name}` holds numbers written as text. Convert them with "
            f"`.astype(float)`, {as_category}."
        )
    row = present[np.flatnonzero(~numeric)[0]]
    raise ValueError(
        f"Column `{name}` holds text, of which {int(numeric.sum())} of {len(texts)} values are "
        f"numbers. The first that is none is {column.values[row][:40]!r} in {table.where(row)}. "
        f"Correct it or mark it as missing (`na_values=` when reading), {as_category}."
    )


def _one_hot(
    column: Column, name: str, max_levels: int
) -> tuple[npt.NDArray[np.float64], list[str]]:
    text = as_text(column.values, column.missing)
    levels = np.unique(text[~column.missing].astype(str))
    if len(levels) > max_levels:
        raise ValueError(
            f"Column `{name}` must have at most `max_levels` = {max_levels} different values to be "
            f"a category. Got {len(levels)}, such as {', '.join(map(repr, levels[:3].tolist()))}. "
            "Leave it out of `features`, or allow more."
        )
    codes = np.full(len(text), len(levels))
    codes[~column.missing] = np.searchsorted(levels, text[~column.missing].astype(str))
    names = [f"{name}={level}" for level in levels]
    if column.missing.any():
        names.append(f"{name} is missing")
    return np.eye(len(levels) + 1)[codes][:, : len(names)], names


def _filled(column: Column, name: str, fitted: Indices) -> npt.NDArray[np.float64]:
    values = column.values.astype(np.float64)
    if column.missing.any():
        known = fitted[~column.missing[fitted]]
        if len(known) == 0:
            raise ValueError(
                f"Column `{name}` has no value in any training row to take the mean of. "
                "Leave it out of `features`."
            )
        values[column.missing] = values[known].mean()
    return values


def _moments(
    values: npt.NDArray[np.float64], rows: Indices, columns: Sequence[int]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Mean and sample standard deviation of each column; 1 where it is constant."""
    scale = np.ones(len(columns))
    if len(rows) == 0:
        return np.zeros(len(columns)), scale
    chosen = values[rows[:, None], columns]
    if (varies := np.ptp(chosen, axis=0) > 0).any():
        scale[varies] = chosen[:, varies].std(0, ddof=1)
    return chosen.mean(0), scale


def _standardise_each(
    values: npt.NDArray[np.float64],
    columns: Sequence[int],
    *,
    train: Sequence[Indices],
    owned: Sequence[Indices],
    fitted: Indices,
) -> None:
    """Standardise each client's rows by its own training rows, by everybody's if it has none."""
    every = np.concatenate([*owned, np.empty(0, dtype=np.int64)])
    if len(every) != len(values) or len(np.unique(every)) != len(every):
        raise ValueError(
            "`standardise='clients'` needs every row to belong to one client. "
            "Give each row to one, or use `standardise='all'`."
        )
    everybody = _moments(values, fitted, columns)
    for mine, rows in zip(train, owned, strict=True):
        mean, scale = _moments(values, mine, columns) if len(mine) else everybody
        values[rows[:, None], columns] = (values[rows[:, None], columns] - mean) / scale
