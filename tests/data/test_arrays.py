"""Facts about clients' data in memory."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fedaccord.data import ArrayData, clients_from_arrays, iid_partition

X = np.arange(12, dtype=np.float64).reshape(6, 2)
Y = np.array([0, 1, 2, 0, 1, 2], dtype=np.int32)


def test_a_batch_holds_the_rows_asked_for_in_that_order():
    x, y = ArrayData.of(X, Y).batch(torch.tensor([4, 0, 4]))
    assert x.tolist() == [[8, 9], [0, 1], [8, 9]]
    assert y.tolist() == [1, 0, 1]


def test_floating_point_becomes_the_models_type_and_integers_int64():
    data = ArrayData.of(X, Y)
    assert (data.inputs.dtype, data.targets.dtype) == (torch.float32, torch.int64)


def test_a_double_precision_model_gets_double_precision():
    assert ArrayData.of(X, Y, dtype=torch.float64).inputs.dtype == torch.float64


def test_nested_lists_tensors_and_big_endian_arrays_are_taken():
    for x in (X.tolist(), torch.tensor(X), X.astype(">f8")):
        assert torch.equal(ArrayData.of(x, Y).inputs, ArrayData.of(X, Y).inputs)


def test_token_numbers_stay_integers():
    assert ArrayData.of(np.array([[1, 2]], dtype=np.uint16), [0]).inputs.dtype == torch.int64


def test_more_arrays_than_two_come_in_every_batch():
    batch = ArrayData.of(X, Y, Y * 10).batch(torch.tensor([2]))
    assert [part.tolist() for part in batch] == [[[4, 5]], [2], [20]]


def test_a_subset_of_a_subset_refers_to_the_subset():
    data = ArrayData.of(X, Y).subset([5, 3, 1]).subset([2, 0])
    assert len(data) == 2
    assert data.inputs.tolist() == [[2, 3], [10, 11]]
    assert data.batch(torch.tensor([1]))[1].tolist() == [2]


def test_a_subset_shares_the_memory_of_the_whole():
    whole = ArrayData.of(X, Y)
    assert whole.subset([0]).tensors[0].data_ptr() == whole.tensors[0].data_ptr()


def test_arrays_are_copied_so_that_later_changes_do_not_reach_the_clients():
    mine = X.astype(np.float32)
    data = ArrayData.of(mine, Y)
    mine[:] = -1
    assert data.inputs[0].tolist() == [0, 1]


def test_each_client_holds_its_part():
    clients = clients_from_arrays(X, Y, [[0, 5], np.array([2])])
    assert [client.inputs[:, 0].tolist() for client in clients] == [[0, 10], [4]]
    assert [client.targets.tolist() for client in clients] == [[0, 2], [2]]


def test_c09_clients_of_0_1_3_and_200_samples_keep_their_sizes():
    x, y = np.zeros((204, 2)), np.zeros(204, dtype=int)
    clients = clients_from_arrays(x, y, [[], [0], [1, 2, 3], range(4, 204)])
    assert [len(client) for client in clients] == [0, 1, 3, 200]
    assert clients[0].inputs.shape == (0, 2)
    assert clients[0].batch(torch.arange(0))[0].shape == (0, 2)


def test_arrays_of_unequal_length_are_refused():
    with pytest.raises(ValueError, match=r"same length. Got \[6, 5\]"):
        ArrayData.of(X, Y[:5])


def test_unscaled_pixels_are_refused_with_the_fix():
    with pytest.raises(ValueError, match="x.astype"):
        ArrayData.of(np.zeros((2, 28, 28), dtype=np.uint8), [0, 1])


def test_labels_may_be_uint8():
    assert ArrayData.of(X, Y.astype(np.uint8)).targets.dtype == torch.int64


def test_names_as_labels_are_refused_with_the_fix():
    with pytest.raises(ValueError, match=r"targets must be numbers.*encode_classes"):
        ArrayData.of(X, ["a"] * 6)


def test_a_missing_value_is_refused_by_row():
    x = X.copy()
    x[3, 1] = np.nan
    with pytest.raises(ValueError, match="Row 3 holds NaN"):
        ArrayData.of(x, Y)


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ([6], r"Client 1: Indices must be in \[0, 6\). Got 6 to 6"),
        ([-1], "Client 1: Indices must be in"),
        ([0.5], "Client 1: Indices must be integers"),
        ([True, False], "numpy.flatnonzero"),
        ([[0, 1]], "one-dimensional"),
    ],
)
def test_indices_that_do_not_fit_name_the_client(part, message):
    with pytest.raises(ValueError, match=message):
        clients_from_arrays(X, Y, [[0], part])


def test_a_partition_of_other_data_is_refused():
    with pytest.raises(ValueError, match="splits 4 samples, but the arrays have 6"):
        clients_from_arrays(X, Y, iid_partition(4, num_clients=2))


def test_no_array_is_refused():
    with pytest.raises(ValueError, match="At least one array"):
        ArrayData.of()


def test_a_number_is_no_array():
    with pytest.raises(ValueError, match="first dimension"):
        ArrayData.of(X, 3)


@pytest.mark.parametrize("x", [X + 1j, torch.tensor(X + 1j)])
def test_complex_numbers_are_refused(x):
    with pytest.raises(ValueError, match=r"inputs must be real numbers.*complex128"):
        ArrayData.of(x, Y)


@pytest.mark.parametrize("kind", [np.asarray, torch.tensor])
def test_an_integer_beyond_int64_is_refused_by_row(kind):
    x = kind(np.array([1, 2**63, 3], dtype=np.uint64))
    with pytest.raises(ValueError, match=r"fit into int64.*Row 1 holds 9223372036854775808"):
        ArrayData.of(x, [0, 1, 2])


def test_unsigned_integers_within_int64_keep_their_value():
    largest = np.iinfo(np.int64).max
    x = np.array([0, largest], dtype=np.uint64)
    assert ArrayData.of(x, [0, 1]).inputs.tolist() == [0, largest]


def test_a_value_beyond_single_precision_is_refused_by_row():
    x = np.array([[1.0], [1e39]])  # the largest float32 is about 3.4e38
    with pytest.raises(ValueError, match=r"fit into torch.float32. Row 1 holds 1e\+39"):
        ArrayData.of(x, [0, 1])
    assert ArrayData.of(x, [0, 1], dtype=torch.float64).inputs[1, 0] == 1e39


def test_objects_that_are_all_numbers_are_taken():
    x = np.array([[1, 2.5], [True, np.float32(4)]], dtype=object)
    assert ArrayData.of(x, [0, 1]).inputs.tolist() == [[1, 2.5], [1, 4]]


@pytest.mark.parametrize("stray", [None, "?", [1], 1j])
def test_an_object_that_is_no_number_is_refused_by_row(stray):
    x = np.array([[1.0], [2.0], [3.0]], dtype=object)
    x[2, 0] = stray
    with pytest.raises(ValueError, match=r"inputs must be numbers. Row 2 holds"):
        ArrayData.of(x, [0, 1, 2])


def test_a_masked_value_is_refused_rather_than_unmasked():
    x = np.ma.masked_equal(X, 6.0)
    with pytest.raises(ValueError, match=r"no masked value. Row 3"):
        ArrayData.of(x, Y)


def test_rows_of_unequal_length_are_refused():
    with pytest.raises(ValueError, match="rows of the inputs must have the same shape"):
        ArrayData.of([[1.0, 2.0], [3.0]], [0, 1])


def test_a_list_of_tensors_is_stacked():
    rows = [torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])]
    assert ArrayData.of(rows, [0, 1]).inputs.tolist() == [[1, 2], [3, 4]]


def test_a_sparse_tensor_is_refused_with_the_fix():
    with pytest.raises(ValueError, match="to_dense"):
        ArrayData.of(torch.eye(2).to_sparse(), [0, 1])


def test_times_are_refused_with_the_fix():
    with pytest.raises(ValueError, match="days since the first"):
        ArrayData.of(np.array(["2020-01-01"], dtype="datetime64[D]"), [0])


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([-1, 1], r"must be in \[0, 2\). Row 0 holds -1"),
        ([1, 2], r"must be in \[0, 2\). Row 1 holds 2"),
        ([[0], [1]], r"must have shape \[2\]. Got \[2, 1\]"),
        ([0.0, 1.0], r"must be integers. Got torch.float32"),
    ],
)
def test_targets_that_a_loss_would_misread_are_refused_with_the_fix(y, message):
    with pytest.raises(ValueError, match=message) as error:
        ArrayData.of([[1.0], [2.0]], y, num_classes=2)
    assert "encode_classes" in str(error.value)


def test_class_numbers_of_several_tasks_are_checked_each():
    y = [[0, 2], [1, 0]]
    assert ArrayData.of([[1.0], [2.0]], y, num_classes=(2, 3)).targets.tolist() == y
    with pytest.raises(ValueError, match="Row 0 holds 2"):
        ArrayData.of([[1.0], [2.0]], y, num_classes=(2, 2))


def test_clients_from_arrays_checks_class_numbers_too():
    with pytest.raises(ValueError, match="Row 0 holds -1"):
        clients_from_arrays([[1.0], [2.0]], [-1, 1], [[0], [1]], num_classes=2)
