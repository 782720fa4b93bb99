"""Labels of any kind are told apart exactly."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch

from fedaccord.data import natural_partition


def parts_of(labels: Any) -> list[list[int]]:
    return [part.tolist() for part in natural_partition(labels)]


BIG = 2**53


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([BIG, BIG + 1, 0.5], [[2], [0], [1]]),  # 2**53 + 1 is no float64
        ([BIG + 1, float(BIG), BIG], [[1, 2], [0]]),  # equal numbers are equal whatever their type
        ([2**63, 2**63 + 1, -1], [[2], [0], [1]]),  # no type of NumPy's holds all three
        ([2**70, 2**70 + 1], [[0], [1]]),
        ([np.uint64(2**63 + 1), np.int64(-1), np.uint64(2**63)], [[1], [2], [0]]),
        ([np.int64(BIG + 1), np.float64(BIG)], [[1], [0]]),
        ([True, 1, 2], [[0, 1], [2]]),
        ([np.float32(0.1), 0.1], [[1], [0]]),  # 0.1f is a little larger
        ([torch.tensor(BIG + 1), BIG, 1.5], [[2], [1], [0]]),
        (np.array([BIG + 1, BIG, 1.5], dtype=object), [[2], [1], [0]]),
        ([[1, 2], [1, 2], [0, 3]], [[2], [0, 1]]),
        ([[[1], [2]], [[1], [3]], [[1], [2]]], [[0, 2], [1]]),
    ],
    ids=repr,
)
def test_numbers_are_told_apart_exactly(labels: Any, expected: list[list[int]]):
    assert parts_of(labels) == expected


@pytest.mark.parametrize(
    "labels",
    [
        [[0.0, 1.0], [0.0, float("nan")]],
        [("a", 1.0), ("b", float("nan"))],
        np.array(["2020-01-01", "NaT"], dtype="M8[D]"),
        [np.datetime64("2020-01-01"), np.datetime64("NaT")],
        torch.tensor([1.0, float("nan")]),
    ],
    ids=["rows", "tuples", "dates", "list of dates", "tensor"],
)
def test_a_missing_label_is_found_wherever_it_hides(labels: Any):
    with pytest.raises(ValueError, match="label of sample 1 is NaN"):
        natural_partition(labels)


def test_a_missing_label_of_pandas_is_found():
    pd = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match="label of sample 1 is NaN"):
        natural_partition(pd.Series([1, None, 2], dtype="Int64"))
    assert parts_of(pd.Series(["b", "a", "b"], dtype="category")) == [[1], [0, 2]]


def test_a_label_that_cannot_be_hashed_is_named():
    with pytest.raises(ValueError, match="The label of sample 1 is a dict"):
        natural_partition(["a", {}])


@pytest.mark.slow
def test_sets_have_the_same_order_in_every_process():
    code = (
        "from fedaccord.data import natural_partition as split; "
        "print(split([frozenset(s) for s in ('ab', 'cd', 'bc', 'ab')]).digest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(digests) == 1
