"""Facts about clients from a table."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from fedaccord import FedAvg, Federation, simulate
from fedaccord.data import clients_from_frame, iid_partition, load, natural_partition
from fedaccord.errors import UnknownNameError
from fedaccord.metrics import evaluate, evaluate_clients
from fedaccord.models import cross_entropy, linear, logistic, squared_error

TABLE = {
    "hospital": ["north", "south", "north", "south", "north", "east"],
    "age": [20, 40, 60, 30, 50, 70],
    "sex": ["f", "m", "m", "f", "f", "m"],
    "smokes": [True, False, True, False, False, True],
    "sick": ["no", "yes", "yes", "no", "no", "yes"],
}


def with_gaps():
    """The age of row 1 and the sex of row 4 are missing."""
    age = [20.0, None, 60.0, 30.0, 50.0, 70.0]
    return {**TABLE, "age": age, "sex": ["f", "m", "m", "f", None, "m"]}


def made(table=None, **options):
    options = {"client": "hospital", "target": "sick", "standardise": None, **options}
    return clients_from_frame(TABLE if table is None else table, **options)


def test_each_client_holds_its_rows_in_the_order_of_their_names():
    data = made()
    assert data.client_names == ("east", "north", "south")
    assert [client.inputs[:, 0].tolist() for client in data.clients] == [
        [70],
        [20, 60, 50],
        [40, 30],
    ]


def test_text_becomes_one_column_a_level_and_flags_zero_and_one():
    data = made()
    assert data.feature_names == ("age", "sex=f", "sex=m", "smokes")
    assert data.samples.inputs.tolist()[:2] == [[20, 1, 0, 1], [40, 0, 1, 0]]


def test_labels_become_class_numbers_and_their_names_are_kept():
    data = made()
    assert data.class_names == (("no", "yes"),)
    assert data.num_classes == (2,)
    assert data.samples.targets.tolist() == [0, 1, 1, 0, 0, 1]


def test_features_are_those_named_in_that_order():
    assert made(features=["smokes", "age"]).samples.inputs[0].tolist() == [1, 20]


def test_numbers_can_be_taken_as_categories():
    data = made(features=["age"], categories=["age"])
    assert data.feature_names == ("age=20", "age=30", "age=40", "age=50", "age=60", "age=70")
    assert torch.equal(data.samples.inputs[:3].argmax(1), torch.tensor([0, 2, 4]))


def test_several_targets_are_several_tasks():
    data = made(target=["sick", "sex"])
    assert data.tasks == ("sick", "sex")
    assert data.class_names == (("no", "yes"), ("f", "m"))
    assert data.samples.targets[:2].tolist() == [[0, 0], [1, 1]]


def test_values_stay_as_they_are():
    data = made(target="age", kind="values", features=["smokes"])
    assert data.samples.targets.tolist() == [20, 40, 60, 30, 50, 70]
    assert data.num_classes is None


def test_a_split_may_stand_in_for_the_client_column():
    data = made(client=iid_partition(6, num_clients=3), features=["age"])
    assert [len(client) for client in data.clients] == [2, 2, 2]
    assert data.client_names == ("0", "1", "2")


def test_missing_values_are_refused_by_column_count_and_row():
    with pytest.raises(ValueError, match=r"Missing: `age` 1, `sex` 1; the first in row 1"):
        made(with_gaps())


def test_rows_with_missing_values_can_be_left_out():
    data = made(with_gaps(), missing="drop")
    assert data.samples.inputs[:, 0].tolist() == [20, 60, 30, 70]
    assert data.notes["rows left out"] == 2
    assert [len(client) for client in data.clients] == [1, 2, 1]


def test_a_client_whose_rows_are_all_left_out_stays_without_samples():
    table = {**TABLE, "age": [20, 40, 60, 30, 50, None]}
    data = made(table, missing="drop")
    assert data.client_names == ("east", "north", "south")
    assert data.empty_clients == ("east",)


def test_a_split_of_the_rows_follows_those_that_are_left():
    parts = [[0, 1, 2], [3, 4, 5]]
    data = made(with_gaps(), missing="drop", client=parts, features=["age", "sex"])
    assert [client.inputs[:, 0].tolist() for client in data.clients] == [[20, 60], [30, 70]]


def test_missing_numbers_become_the_mean_of_the_training_rows_and_missing_text_a_level():
    test = [False, False, True, False, False, False]
    data = made({**with_gaps(), "test": test}, missing="mean", test="test")
    # of the ages 20, 30, 50, 70; the 60 is tested on
    assert data.samples.inputs[1, 0] == 42.5
    assert data.feature_names[1:4] == ("sex=f", "sex=m", "sex is missing")
    assert data.samples.inputs[4, 1:4].tolist() == [0, 0, 1]
    assert data.notes["filled"] == {"age": 1, "sex": 1}


@pytest.mark.parametrize("name", ["hospital", "sick"])
def test_a_missing_client_or_target_is_not_filled_in(name):
    table = {**TABLE, name: [*TABLE[name][:5], None]}
    with pytest.raises(ValueError, match=rf"`{name}` must have no missing value.*row 5"):
        made(table, missing="mean")
    assert len(made(table, missing="drop").samples) == 5


def test_numbers_are_standardised_over_the_training_rows_alone():
    test = [0, 0, 0, 0, 1, 1]
    data = made({**TABLE, "test": test}, test="test", standardise="all")
    train = np.array([20, 40, 60, 30])  # mean and sample deviation by NumPy
    expected = (np.array(TABLE["age"]) - train.mean()) / train.std(ddof=1)
    assert_close(data.samples.inputs[:, 0], torch.tensor(expected, dtype=torch.float32))
    assert data.notes["standardised"]["age"] == (train.mean(), train.std(ddof=1))
    assert set(data.samples.inputs[:, 1:].unique().tolist()) == {0, 1}


def test_each_client_can_be_standardised_by_itself():
    data = made(features=["age"], standardise="clients")
    north = np.array([20, 60, 50])
    expected = (north - north.mean()) / north.std(ddof=1)
    assert_close(data.clients[1].inputs[:, 0], torch.tensor(expected, dtype=torch.float32))
    assert data.clients[0].inputs.tolist() == [[0]]  # a single row is only centred


def test_a_constant_column_is_only_centred():
    data = made({**TABLE, "age": [0.1] * 6}, features=["age"], standardise="all")
    assert_close(data.samples.inputs, torch.zeros(6, 1), atol=1e-7, rtol=0)


def test_test_rows_are_a_fraction_of_each_client_that_leaves_one_to_train_on():
    data = made(test_fraction=0.5)
    assert data.parts.sizes == (1, 1, 1)  # of 1, 3 and 2, rounded half up
    assert data.test_parts.sizes == (0, 2, 1)
    together = np.sort(np.concatenate([*data.parts, *data.test_parts]))
    assert together.tolist() == list(range(6))


def test_test_rows_depend_on_the_seed_and_nothing_else():
    table = {"who": [0] * 100, "x": list(range(100)), "y": [0, 1] * 50}
    first, again, other = (
        clients_from_frame(table, client="who", target="y", test_fraction=0.2, seed=seed)
        for seed in (0, 0, 1)
    )
    assert first.test_parts.digest() == again.test_parts.digest() != other.test_parts.digest()


def test_the_global_generators_are_left_alone():
    before = torch.random.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    made(test_fraction=0.5)
    assert torch.equal(before[0], torch.random.get_rng_state())
    assert (before[1] == np.random.get_state()[1]).all()  # noqa: NPY002


@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        ({}, {"features": ["age", "sick"]}, "must not hold client, target or test"),
        ({"age": ["20", "40", "?", "30", "50", "70"]}, {}, r"5 of 6 values.*'\?' in row 2"),
        ({"age": ["20", "40", "1", "30", "50", "70"]}, {}, r"numbers written as text.*astype"),
        ({"age": [1, 2, "x", 3, 4, 5]}, {}, "one kind throughout. Row 2 holds 'x'"),
        ({"age": [1.0, 2.0, float("inf"), 3.0, 4.0, 5.0]}, {}, r"\['age'\] must be finite.*row 2"),
        ({"sex": list("abcdef")}, {"max_levels": 5}, "at most `max_levels` = 5.*Got 6"),
        ({"sick": [0.5, 1, 0, 1, 0, 1]}, {}, r"`sick` must hold classes.*kind='values'"),
        ({}, {"kind": "values"}, "`sick` must hold numbers"),
        ({}, {"test": "age"}, "`age` must hold booleans, or zeros and ones"),
        ({"age": [1]}, {}, "must have the same length"),
        ({"age": [None] * 6}, {"missing": "mean"}, "no value in any training row"),
        ({"age": [None] * 6}, {"missing": "drop"}, "must leave a row"),
        ({}, {"test_fraction": 1}, r"must be in \[0, 1\)"),
        ({}, {"missing": "median"}, "`missing` must be in"),
        ({}, {"features": "age"}, "must be a list"),
        ({}, {"client": [[0, 6]]}, "must be in"),
        ({}, {"client": iid_partition(4, num_clients=2)}, "splits 4 rows, but the table has 6"),
        ({}, {"client": [[0, 1], [1]], "standardise": "clients"}, "belong to one client"),
        ({name: [] for name in TABLE}, {}, "at least one row"),
    ],
)
def test_what_cannot_be_used_is_refused_with_column_and_row(changes, options, message):
    with pytest.raises(ValueError, match=message):
        made({**TABLE, **changes}, **options)


def test_an_unknown_column_names_the_nearest():
    with pytest.raises(UnknownNameError, match="Did you mean `sick`"):
        made(target="sck")


def test_what_is_no_table_is_refused():
    with pytest.raises(TypeError, match="data frame or a mapping"):
        made([[1, 2]])


def test_pandas_gives_the_same_as_the_mapping():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(TABLE)
    nullable = frame.convert_dtypes()
    category = frame.astype({"sex": "category"})
    for each in (frame, nullable, category):
        assert torch.equal(made(each).samples.inputs, made().samples.inputs)
        assert made(each).feature_names == made().feature_names


def test_polars_gives_the_same_as_the_mapping():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(TABLE)
    category = frame.with_columns(polars.col("sex").cast(polars.Categorical))
    for each in (frame, category):
        assert torch.equal(made(each).samples.inputs, made().samples.inputs)
        assert made(each).feature_names == made().feature_names
    with pytest.raises(TypeError, match="collect"):
        made(frame.lazy())


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_missing_values_of_every_kind_of_column_are_found(package):
    frame = pytest.importorskip(package).DataFrame(with_gaps())
    with pytest.raises(ValueError, match=r"Missing: `age` 1, `sex` 1"):
        made(frame)


def test_a_csv_file_read_by_pandas_is_one_line(tmp_path):
    pandas = pytest.importorskip("pandas")
    path = tmp_path / "patients.csv"
    pandas.DataFrame(TABLE).to_csv(path, index=False)
    data = clients_from_frame(pandas.read_csv(path), client="hospital", target="sick")
    assert [len(client) for client in data.clients] == [1, 3, 2]


def test_columns_with_the_same_name_are_refused():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame([[1, 2]], columns=["a", "a"])
    with pytest.raises(ValueError, match="Got `a` twice"):
        clients_from_frame(frame, client="a", target="a")


def test_dates_are_refused_with_the_fix():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({**TABLE, "age": pandas.Timestamp("2020-01-01")})
    with pytest.raises(ValueError, match="`age`.*days since the first"):
        made(frame)


def test_two_rounds_train_and_everybody_is_tested():
    data = made(standardise="all", test_fraction=0.4)
    federation = Federation(
        lambda: logistic(data.num_features, data.num_classes[0]), cross_entropy, data.clients
    )
    results = list(simulate(FedAvg(), federation, rounds=2))
    model = federation.module(results[-1].training)
    assert all(result.step_norm > 0 for result in results)
    assert evaluate(model, data.test, num_classes=data.num_classes).num_examples == 2
    scores = evaluate_clients(model, data.tests, num_classes=data.num_classes)
    assert scores.num_examples.tolist() == [0, 1, 1]


def test_two_rounds_train_on_values():
    data = made(target="age", kind="values")
    federation = Federation(lambda: linear(data.num_features), squared_error, data.clients)
    results = list(simulate(FedAvg(), federation, rounds=2))
    assert all(result.step_norm > 0 for result in results)


def test_the_same_samples_are_a_dataset():
    dataset = made(test_fraction=0.4).dataset("patients", licence="CC0-1.0")
    assert dataset.client_names == ("east", "north", "south")
    assert dataset.client_ids.tolist() == [0, 1, 1, 2]
    assert natural_partition(dataset.test_client_ids).sizes == (1, 1)
    assert dataset.labels.shape == (4,)
    assert type(dataset) is type(load("heart"))


def test_samples_can_be_divided_anew():
    data = made().divide(iid_partition(6, num_clients=2), test_fraction=0.3)
    assert data.parts.sizes == (2, 2)
    assert data.test_parts.sizes == (1, 1)
    with pytest.raises(ValueError, match="splits 4 samples, but there are 6"):
        data.divide(iid_partition(4, num_clients=2))


def test_clients_whose_names_differ_in_case_or_spaces_alone_are_pointed_out():
    frame = {"ward": ["East", "east ", "west"], "x": [1.0, 2.0, 3.0], "y": [0, 1, 0]}
    with pytest.warns(UserWarning, match="'East' and 'east '"):
        data = clients_from_frame(frame, client="ward", target="y")
    assert len(data.clients) == 3


def test_data_are_shown_in_a_line():
    frame = {"ward": ["a", "b", "b"], "x": [1.0, 2.0, 3.0], "y": [0, 1, 0]}
    data = clients_from_frame(frame, client="ward", target="y")
    assert repr(data) == (
        "OwnData(ArrayData(3 samples of float32 [1], int64 []); 2 clients with 3 training and 0 "
        "test samples; tasks y)"
    )
    assert repr(data.dataset("mine")) == ("Dataset(mine: 3 training and 0 test samples, tasks y)")
