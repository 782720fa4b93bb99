"""From the rows of a table to clients with inputs and targets."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, get_args

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ._arrays import ArrayData
from ._classes import encode_classes
from ._features import Missing, Standardise, encode_features
from ._iid import natural_partition
from ._labels import Indices
from ._missing import complete_rows
from ._own import OwnData, TargetKind, split_by, split_off
from ._partition import Partition
from ._table import Column, Rows, Table


@dataclass(frozen=True)
class Encoding:
    """How the columns of a table become inputs and targets; see ``clients_from_frame``.

    Beyond that, ``test`` may mark the rows itself ``[n]``, and ``class_names`` gives the classes of
    a target in the order of their numbers.
    """

    target: str | Sequence[str]
    kind: TargetKind = "classes"
    features: Sequence[str] | None = None
    categories: Collection[str] = ()
    missing: Missing = "raise"
    standardise: Standardise | None = "all"
    max_levels: int = 50
    test_fraction: float = 0.0
    test: str | Rows | None = None
    seed: int = 0
    dtype: torch.dtype = torch.float32
    class_names: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, allowed in (
            ("kind", get_args(TargetKind)),
            ("missing", get_args(Missing)),
            ("standardise", (*get_args(Standardise), None)),
        ):
            if getattr(self, name) not in allowed:
                raise ValueError(f"`{name}` must be in {allowed}. Got {getattr(self, name)!r}.")
        for name in ("features", "categories"):
            if isinstance(getattr(self, name), str):
                raise ValueError(
                    f"`{name}` must be a list of columns. Got {getattr(self, name)!r}."
                )
        if self.test is not None and self.test_fraction:
            raise ValueError("Give `test` or `test_fraction`, not both.")


def from_table(
    table: Table,
    client: str | Partition | Sequence[Indices],
    encoding: Encoding,
    *,
    given: Tensor | None = None,
) -> OwnData:
    """Make clients of the rows of a table.

    :param table: The table.
    :param client: The column that says whose each row is, or a split of the rows.
    :param encoding: What to make of the columns.
    :param given: Inputs ``[n, ...]`` that lie beside the table, instead of columns.
    """
    targets = (encoding.target,) if isinstance(encoding.target, str) else tuple(encoding.target)
    special = [*targets, *(name for name in (encoding.test, client) if isinstance(name, str))]
    features = encoding.features
    if given is not None:
        features = ()
    elif features is None:
        features = [name for name in table.columns if name not in special]
    for name in (*special, *features, *encoding.categories):
        table[name]
    if both := [name for name in features if name in special]:
        raise ValueError(f"`features` must not hold client, target or test columns. Got {both}.")
    if not targets or not (features or given is not None):
        raise ValueError("At least one column of inputs and one target are needed.")
    if table.num_rows == 0:
        raise ValueError("The table must have at least one row.")

    kept = complete_rows(table, special, features, encoding.missing)
    parts = _owners(table, client)
    if not kept.all():
        table, parts = _rows_of(table, kept), _kept_parts(parts, kept)
    if encoding.test is None:
        train, test = split_off(parts, test_fraction=encoding.test_fraction, seed=encoding.seed)
    elif isinstance(encoding.test, str):
        train, test = split_by(parts, _flags(table[encoding.test], encoding.test))
    else:
        train, test = split_by(parts, encoding.test[kept])
    inputs = encode_features(
        table,
        features,
        categories=encoding.categories,
        max_levels=encoding.max_levels,
        train=tuple(train),
        standardise=encoding.standardise,
        owned=tuple(parts),
    )
    y, class_names = _targets(table, targets, encoding)
    return OwnData(
        samples=ArrayData.of(
            inputs.values if given is None else given[torch.from_numpy(kept)],
            y,
            dtype=encoding.dtype,
        ),
        parts=train,
        test_parts=test,
        tasks=targets,
        class_names=class_names,
        feature_names=inputs.names,
        notes={**inputs.notes, "rows left out": int((~kept).sum())},
    )


def _owners(table: Table, client: str | Partition | Sequence[Indices]) -> Partition:
    if not isinstance(client, str):
        parts = client if isinstance(client, Partition) else Partition(client, table.num_rows)
        if parts.num_samples != table.num_rows:
            raise ValueError(
                f"`client` splits {parts.num_samples} rows, but the table has {table.num_rows}."
            )
        return parts
    column = table[client]
    known = np.flatnonzero(~column.missing)
    labels = column.values[known]
    if labels.dtype.kind == "f" and (labels % 1 == 0).all():
        labels = labels.astype(np.int64)  # integers beside a missing one
    natural = natural_partition(labels)
    return Partition(
        [known[part] for part in natural],
        table.num_rows,
        name=natural.name,
        client_names=natural.client_names,
    )


def _rows_of(table: Table, kept: Rows) -> Table:
    rows = np.flatnonzero(kept)
    columns = {
        name: Column(column.values[rows], column.missing[rows], column.kind)
        for name, column in table.columns.items()
    }
    return Table(columns, len(rows), lambda row: table.where(int(rows[row])))


def _kept_parts(parts: Partition, kept: Rows) -> Partition:
    new = np.cumsum(kept) - 1
    return replace(
        parts, parts=[new[part[kept[part]]] for part in parts], num_samples=int(kept.sum())
    )


def _flags(column: Column, name: str) -> Rows:
    if column.kind == "text" or not np.isin(column.values, (0, 1)).all():
        raise ValueError(f"Column `{name}` must hold booleans, or zeros and ones.")
    marked: Rows = column.values.astype(bool)
    return marked


def _targets(
    table: Table, targets: Sequence[str], encoding: Encoding
) -> tuple[npt.NDArray[Any], tuple[tuple[str, ...], ...]]:
    columns: list[npt.NDArray[Any]] = []
    names: list[tuple[str, ...]] = []
    for name in targets:
        column = table[name]
        if encoding.kind == "values":
            if column.kind == "text":
                raise ValueError(
                    f"Column `{name}` must hold numbers to be predicted as values. "
                    "Text is predicted with `kind='classes'`."
                )
            columns.append(column.values.astype(np.float64))
            names.append(())
            continue
        try:
            codes, found = encode_classes(column.values, class_names=encoding.class_names.get(name))
        except ValueError as error:
            raise ValueError(
                f"Column `{name}` must hold classes: {error} Use `kind='values'`."
            ) from error
        columns.append(codes)
        names.append(found)
    return columns[0] if len(columns) == 1 else np.stack(columns, axis=1), tuple(names)
