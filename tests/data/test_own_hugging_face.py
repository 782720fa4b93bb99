"""Facts about clients from datasets of the library ``datasets``, made here without a network."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from fedaccord import FedAvg, Federation, simulate
from fedaccord.data import from_hugging_face, iid_partition, load_hugging_face
from fedaccord.errors import UnknownNameError
from fedaccord.models import cross_entropy, logistic

datasets = pytest.importorskip("datasets")

COLUMNS = {
    "site": ["b", "a", "b", "a"],
    "age": [20, 30, 40, 50],
    "sex": ["f", "m", "m", "f"],
    "label": [2, 0, 2, 0],
    "score": [0.5, 1.5, 2.5, 3.5],
    "vector": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]],
}
FEATURES = datasets.Features(
    {
        "site": datasets.Value("string"),
        "age": datasets.Value("int32"),
        "sex": datasets.Value("string"),
        "label": datasets.ClassLabel(names=["well", "unused", "sick"]),
        "score": datasets.Value("float32"),
        "vector": datasets.Sequence(datasets.Value("float32")),
    }
)


def rows(**changes):
    return datasets.Dataset.from_dict({**COLUMNS, **changes}, features=FEATURES)


def test_class_labels_keep_numbers_and_names_even_unused_ones():
    data = from_hugging_face(rows(), inputs="age", target="label", client="site")
    assert data.class_names == (("well", "unused", "sick"),)
    assert data.client_names == ("a", "b")
    assert [client.targets.tolist() for client in data.clients] == [[0, 0], [2, 2]]


def test_single_values_are_taken_as_those_of_a_table():
    data = from_hugging_face(rows(), inputs=["age", "sex"], target="label", standardise=None)
    assert data.feature_names == ("age", "sex=f", "sex=m")
    assert data.samples.inputs[0].tolist() == [20, 1, 0]
    assert data.client_names == ("all",)


def test_lists_are_taken_as_an_array():
    data = from_hugging_face(rows(), inputs="vector", target="label", client="site")
    assert data.clients[0].inputs.tolist() == [[3, 4], [7, 8]]


def test_text_labels_become_numbers_and_values_stay():
    text = from_hugging_face(rows(), inputs="age", target="sex")
    assert text.samples.targets.tolist() == [0, 1, 1, 0]
    values = from_hugging_face(rows(), inputs="age", target="score", kind="values")
    assert values.samples.targets.tolist() == COLUMNS["score"]


def test_images_are_scaled_and_brought_to_size():
    image = pytest.importorskip("PIL.Image")
    pictures = [image.fromarray(np.full((4, 4), 51 * i, dtype=np.uint8)) for i in range(3)]
    features = datasets.Features({"image": datasets.Image(), "label": datasets.Value("int64")})
    source = datasets.Dataset.from_dict({"image": pictures, "label": [0, 1, 1]}, features=features)
    data = from_hugging_face(source, inputs="image", target="label", size=(2, 2))
    assert data.samples.inputs.shape == (3, 1, 2, 2)
    assert_close(data.samples.inputs[:, 0, 0, 0], torch.tensor([0.0, 0.2, 0.4]))


def test_splits_of_a_dictionary_become_training_and_test_rows():
    both = datasets.DatasetDict({"train": rows(), "test": rows(age=[1, 2, 3, 4])})
    data = from_hugging_face(both, inputs="age", target="label", client="site", standardise=None)
    assert [client.inputs.flatten().tolist() for client in data.clients] == [[30, 50], [20, 40]]
    assert [client.inputs.flatten().tolist() for client in data.tests] == [[2, 4], [1, 3]]
    with pytest.raises(ValueError, match="not both"):
        from_hugging_face(both, inputs="age", target="label", test_fraction=0.5)


def test_without_a_test_split_a_fraction_decides():
    only = datasets.DatasetDict({"train": rows()})
    data = from_hugging_face(only, inputs="age", target="label", client="site", test_fraction=0.5)
    assert (data.parts.sizes, data.test_parts.sizes) == ((1, 1), (1, 1))


def test_a_format_set_before_does_not_matter():
    source = rows().with_format("torch")
    data = from_hugging_face(source, inputs=["age", "sex"], target="label", standardise=None)
    assert data.samples.inputs[1].tolist() == [30, 0, 1]


@pytest.mark.parametrize("label", [-1, None])
def test_a_missing_label_is_refused_by_row_or_left_out(label):
    source = rows(label=[2, label, 2, 0])
    with pytest.raises(ValueError, match="`label` must have no missing value.*row 1"):
        from_hugging_face(source, inputs="vector", target="label")
    data = from_hugging_face(source, inputs="vector", target="label", missing="drop")
    assert data.samples.inputs[:, 0].tolist() == [1, 5, 7]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"inputs": "agee"}, UnknownNameError, "Did you mean `age`"),
        ({"inputs": ["vector", "age"]}, ValueError, r"Got \['vector'\] among"),
        ({"inputs": "vector", "target": "score"}, ValueError, "kind='values'"),
    ],
)
def test_columns_that_cannot_be_used_are_named(options, error, message):
    with pytest.raises(error, match=message):
        from_hugging_face(rows(), **{"inputs": "age", "target": "label", **options})


def test_an_unknown_split_names_the_nearest():
    both = datasets.DatasetDict({"training": rows()})
    with pytest.raises(UnknownNameError, match="Did you mean `training`"):
        from_hugging_face(both, inputs="age", target="label")


def test_what_is_no_dataset_is_refused():
    with pytest.raises(TypeError, match=r"datasets.Dataset"):
        from_hugging_face([1, 2], inputs="age", target="label")
    with pytest.raises(TypeError, match="streamed"):
        from_hugging_face(rows().to_iterable_dataset(), inputs="age", target="label")


# `datasets` leaves the file open
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_folder_on_this_machine_is_loaded_as_one_of_the_hub_would_be(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "train.csv").write_text("age,sick\n1,no\n2,yes\n")
    data = load_hugging_face(
        str(tmp_path / "source"), inputs="age", target="sick", cache_dir=tmp_path / "cache"
    )
    assert data.class_names == (("no", "yes"),)
    assert len(data.samples) == 2


def test_two_rounds_train():
    data = from_hugging_face(rows(), inputs="vector", target="label")
    data = data.divide(iid_partition(4, num_clients=2))
    federation = Federation(lambda: logistic(2, num_classes=3), cross_entropy, data.clients)
    results = list(simulate(FedAvg(), federation, rounds=2))
    assert all(result.step_norm > 0 for result in results)
