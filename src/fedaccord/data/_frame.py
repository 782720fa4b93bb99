"""Clients from a table: a data frame of pandas or polars, or a mapping of columns."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import torch

from ._features import Missing, Standardise
from ._labels import Indices
from ._own import OwnData, TargetKind
from ._partition import Partition
from ._rows import Encoding, from_table
from ._table import read_table


def clients_from_frame(
    frame: Any,
    *,
    client: str | Partition | Sequence[Indices],
    target: str | Sequence[str],
    kind: TargetKind = "classes",
    features: Sequence[str] | None = None,
    categories: Collection[str] = (),
    missing: Missing = "raise",
    standardise: Standardise | None = "all",
    max_levels: int = 50,
    test_fraction: float = 0.0,
    test: str | None = None,
    seed: int = 0,
    dtype: torch.dtype = torch.float32,
) -> OwnData:
    """Make clients of the rows of a data frame.

    Numbers become inputs as they are, booleans 0 and 1, and text (or a categorical column) one
    input of 0 and 1 a level, over the levels of the whole frame. What is called what is in the
    result's ``feature_names`` and ``class_names``.

    :param frame: A data frame of pandas or polars, or a mapping from names to columns.
    :param client: The column that says whose each row is; the clients are in its increasing order.
        Or a split of the rows, such as that of ``iid_partition(len(frame), num_clients=10)``.
    :param target: The column to predict; several columns are several tasks.
    :param kind: Whether targets are classes, which are numbered as ``encode_classes`` does, or
        values to predict as they are.
    :param features: The columns of inputs, in this order; all others if not given.
    :param categories: Columns of numbers to take as categories.
    :param missing: What to do with missing values: refuse them; put the mean over the training rows
        in their place (in text a level of its own); or leave out rows with any. A row that misses
        its client or its target is refused or left out.
    :param standardise: Bring columns of numbers to mean 0 and variance 1: over everybody's training
        rows, or each client's over its own; ``None`` leaves them. Constant ones are centred only.
    :param max_levels: How many levels a column may have, at least 1.
    :param test_fraction: Share of each client's rows to test on, in ``[0, 1)``.
    :param test: A column of booleans, or zeros and ones, that marks the rows to test on instead.
    :param seed: Decides which rows are tested on.
    :param dtype: The model's floating-point type.
    :raises TypeError: If ``frame`` is no table.
    :raises UnknownNameError: If there is no such column; the message names the nearest.
    :raises ValueError: If values are missing, infinite or of mixed kinds, a column of text holds
        numbers or too many levels, or an option is out of range; the message names the column.
    """
    encoding = Encoding(
        target=target,
        kind=kind,
        features=features,
        categories=categories,
        missing=missing,
        standardise=standardise,
        max_levels=max_levels,
        test_fraction=test_fraction,
        test=test,
        seed=seed,
        dtype=dtype,
    )
    return from_table(read_table(frame), client, encoding)
