"""Facts about labels of any kind as class numbers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fedaccord.data import encode_classes


@pytest.mark.parametrize(
    ("y", "codes", "names"),
    [
        (["no", "yes", "no"], [0, 1, 0], ("no", "yes")),
        (np.array(["b", "a"]), [1, 0], ("a", "b")),
        ([-1, 1, -1], [0, 1, 0], ("-1", "1")),
        ([10, 9, 10], [1, 0, 1], ("9", "10")),  # by value, not by text
        ([1.0, 3.0], [0, 1], ("1", "3")),
        ([[5], [2]], [1, 0], ("2", "5")),
        ([True, False], [1, 0], ("False", "True")),
        (torch.tensor([[2.0], [0.0]]), [1, 0], ("0", "2")),
        (np.array([1, "a", 1], dtype=object), [0, 1, 0], ("1", "a")),
    ],
)
def test_labels_become_numbers_in_increasing_order_with_their_names(y, codes, names):
    found, class_names = encode_classes(y)
    assert found.tolist() == codes
    assert found.dtype == np.int64
    assert class_names == names


def test_known_classes_give_test_data_the_same_numbers():
    _, names = encode_classes(["cat", "dog", "owl"])
    assert encode_classes(["owl", "cat"], class_names=names)[0].tolist() == [2, 0]
    assert encode_classes([], class_names=names) == (pytest.approx([]), names)


def test_an_unknown_class_is_refused_by_row_and_nearest_name():
    with pytest.raises(ValueError, match=r"Row 1 has class 'dgo'. Did you mean 'dog'\?"):
        encode_classes(["cat", "dgo"], class_names=("cat", "dog"))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0.0, 0.5], "row 1 is no class: 0.5"),
        ([0.0, float("nan")], "row 1 is missing"),
        ([0.0, 2.0**60], "row 1 is no class"),
        (["a", None], "Row 1 holds 'None'"),
        ([[0, 1], [1, 0]], r"y.argmax\(1\)"),
        ([[2, 1], [1, 0]], "one by one"),
        (np.array([1, "1"], dtype=object), "'1' occurs as text and as a number"),
        ([], "at least one label"),
        (np.array(["2020-01-01"], dtype="datetime64[D]"), "text or whole numbers"),
    ],
)
def test_what_is_no_class_is_refused(y, message):
    with pytest.raises(ValueError, match=message):
        encode_classes(y)
