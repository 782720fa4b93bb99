"""Facts about the datasets inside the package."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import shutil
import sys
import types
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
import torch

from fedaccord.data import (
    ArrayData,
    Dataset,
    describe,
    list_datasets,
    load,
    natural_partition,
    nearest_index,
    overlay,
)
from fedaccord.data._shipped import load_shipped
from fedaccord.errors import DataFileError, UnknownNameError

ROOT = Path(__file__).parents[2]
FILES = resources.files("fedaccord.data") / "files"
EXAMPLES = json.loads((Path(__file__).parent / "examples.json").read_text(encoding="utf-8"))
INDEX_MAPS = [e for e in EXAMPLES if e["algorithm"] == "nearest_downscale_index_map"]
NAMES = ("digits-fashion-mini", "fashion-mini", "heart")


def arrays(name: str) -> dict[str, np.ndarray]:
    with (FILES / f"{name}.npz").open("rb") as file, np.load(file, allow_pickle=False) as found:
        return {key: found[key] for key in found.files}


def test_the_datasets_are_these():
    elsewhere = ("mnist", "fashion-mnist", "cifar10", "cifar100", "cifar100-coarse")
    natural = ("adult", "shakespeare", "tcga-brca", "parkinsons")
    assert list_datasets() == (*NAMES, *elsewhere, *natural)


@pytest.mark.parametrize("name", NAMES)
def test_the_description_has_the_numbers_of_the_data(name):
    info, data = describe(name), load(name)
    assert (info.num_train, info.num_test) == (len(data.train), len(data.test))
    assert info.num_clients == (len(data.client_names) or None)
    assert (info.tasks, info.kinds, info.licence) == (data.tasks, data.kinds, data.licence)
    assert info.shipped


@pytest.mark.parametrize(
    ("name", "train", "test", "target"),
    [
        ("fashion-mini", (6000, 1, 28, 28), (1000, 1, 28, 28), ()),
        ("digits-fashion-mini", (10000, 1, 28, 28), (1000, 1, 28, 28), (2,)),
        ("heart", (486, 13), (254, 13), ()),  # FLamby: 13 inputs, 486 and 254 patients
    ],
)
def test_shapes_and_types_are_those_a_model_takes(name, train, test, target):
    data = load(name)
    assert data.train.inputs.shape == train
    assert data.test.inputs.shape == test
    assert data.train.targets.shape == (train[0], *target)
    assert data.test.targets.shape == (test[0], *target)
    assert data.train.inputs.dtype == torch.float32
    assert data.train.targets.dtype == torch.int64


@pytest.mark.parametrize("name", NAMES)
def test_labels_are_within_the_named_classes_and_all_occur(name):
    data = load(name)
    for part in (data.train, data.test):
        columns = part.targets.reshape(len(part), -1)
        assert columns.shape[1] == data.num_tasks == len(data.class_names)
        for task, classes in enumerate(data.num_classes):
            assert columns[:, task].unique().tolist() == list(range(classes))


@pytest.mark.parametrize("name", NAMES)
def test_a_file_is_small_and_its_record_complete(name):
    content = (FILES / f"{name}.npz").read_bytes()
    record = json.loads((FILES / f"{name}.json").read_text(encoding="utf-8"))
    assert len(content) <= 4 * 2**20
    assert record["sha256"] == hashlib.sha256(content).hexdigest()
    for key in ("licence", "copyright", "origin", "citation", "construction"):
        assert record[key]
    assert record["arrays"] == {
        key: [str(array.dtype), *array.shape] for key, array in arrays(name).items()
    }


@pytest.mark.parametrize(
    ("name", "licence"),
    [
        ("fashion-mini", "MIT"),
        ("digits-fashion-mini", "CC-BY-SA-3.0 AND MIT"),
        ("heart", "CC-BY-4.0"),
    ],
)
def test_the_datas_licence_is_stated(name, licence):
    assert load(name).licence == licence


def test_fashion_is_the_documented_subset():
    found = arrays("fashion-mini")  # expected: the rule in the record, drawn here again
    for part, size, count in (("train", 60_000, 6000), ("test", 10_000, 1000)):
        chosen = np.random.RandomState(1).permutation(size)[:count]
        assert np.array_equal(found[f"index_{part}"], np.sort(chosen))


def test_pairs_are_the_documented_ones():
    found = arrays("digits-fashion-mini")
    for part, size, count in (("train", 60_000, 10_000), ("test", 10_000, 1000)):
        chosen = np.sort(np.random.RandomState(3).permutation(size)[:count])
        partner = np.random.RandomState(2).permutation(size)[chosen]
        assert np.array_equal(found[f"index_{part}"], np.stack([chosen, partner], 1))


@pytest.mark.parametrize(
    ("name", "mean", "std"), [("fashion-mini", 0.2860, 0.3530), ("heart", 0, 1)]
)
def test_training_inputs_are_nearly_standardised(name, mean, std):
    # a tenth of Fashion-MNIST has the whole's mean and deviation up to sampling noise;
    # one constant column of one hospital keeps the heart data's deviation below 1
    inputs = load(name).train.inputs
    assert abs(float(inputs.mean())) < 0.02
    assert abs(float(inputs.std()) - 1) < 0.02


@pytest.mark.parametrize(
    ("name", "mean", "std"),
    [("fashion-mini", 0.2860, 0.3530), ("digits-fashion-mini", 0.1307, 0.3081)],
)
def test_normalised_pixels_are_the_documented_transform(name, mean, std):
    pixels = arrays(name)["x_test"][:100, None]
    expected = torch.tensor((pixels / 255 - mean) / std, dtype=torch.float32)
    torch.testing.assert_close(load(name).test.inputs[:100], expected)


# --- heart disease


def test_hospitals_have_flambys_sizes():
    data = load("heart")  # 199/104, 172/89, 30/16, 85/45: FLamby's published counts
    assert torch.bincount(data.client_ids).tolist() == [199, 172, 30, 85]
    assert torch.bincount(data.test_client_ids).tolist() == [104, 89, 16, 45]
    assert len(data.client_names) == 4


def test_every_hospitals_training_columns_are_standardised_or_constant():
    data = load("heart")
    for part in natural_partition(data.client_ids):
        inputs = data.train.subset(part).inputs.double()
        assert inputs.mean(0).abs().max() < 1e-6
        deviation = inputs.std(0)
        assert ((deviation - 1).abs() < 1e-5).logical_or(deviation == 0).all()


def test_categories_are_encoded_without_their_first_level():
    found, data = arrays("heart"), load("heart")
    records = found["records"][~found["is_test"]]
    for column, levels, first in ((2, (2, 3, 4), 8), (6, (1, 2), 11)):
        for offset, level in enumerate(levels):
            encoded = data.train.inputs[:, first + offset]
            for hospital in range(4):
                rows = (data.client_ids == hospital).numpy()
                # standardising keeps the order: members of the level lie above the others
                member = torch.tensor(records[rows, column] == level)
                values = encoded[rows]
                if member.any() and not member.all():
                    assert values[member].min() > values[~member].max()


# --- two images in one


@pytest.mark.parametrize("example", INDEX_MAPS, ids=[e["name"] for e in INDEX_MAPS])
def test_the_resize_takes_the_rows_that_pytorch_takes(example):
    found = nearest_index(**example["inputs"])
    assert found.tolist() == example["expected"]["index"]


def test_an_overlay_equals_the_construction_pixel_by_pixel():
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 256, (2, 3, 28, 28), dtype=np.uint8)
    found = overlay(first, second, offset=14)
    kept = next(e["expected"]["index"] for e in INDEX_MAPS if e["name"] == "mnist_fmnist")
    for image in range(3):
        for row, large_row in enumerate(kept):
            for column, large_column in enumerate(kept):
                upper = (large_row, large_column)
                lower = (large_row - 14, large_column - 14)
                shown = [first[image][upper]] if max(upper) < 28 else []
                shown += [second[image][lower]] if min(lower) >= 0 else []
                assert found[image, row, column] == max(shown, default=0)


def test_an_overlay_leaves_its_inputs_alone():
    first, second = np.full((2, 1, 4, 4), 7, dtype=np.uint8)
    overlay(first, second, offset=2)
    assert (first == 7).all()
    assert (second == 7).all()


def test_images_of_different_size_are_refused():
    with pytest.raises(ValueError, match="same shape"):
        overlay(np.zeros((1, 4, 4), np.uint8), np.zeros((1, 5, 5), np.uint8), offset=1)


def test_an_offset_beyond_the_image_is_refused():
    image = np.zeros((1, 4, 4), np.uint8)
    with pytest.raises(ValueError, match=r"`offset` must be in \[0, 4\]. Got 5."):
        overlay(image, image, offset=5)


# --- mistakes


def test_an_unknown_name_names_the_nearest():
    with pytest.raises(UnknownNameError, match="Did you mean `fashion-mini`"):
        load("fashion_mini")


def test_a_damaged_file_is_refused(tmp_path):
    for kind in ("npz", "json"):
        (tmp_path / f"heart.{kind}").write_bytes((FILES / f"heart.{kind}").read_bytes())
    assert len(load_shipped("heart", tmp_path).train) == 486
    with (tmp_path / "heart.npz").open("ab") as file:
        file.write(b"x")
    with pytest.raises(DataFileError, match="damaged"):
        load_shipped("heart", tmp_path)


def test_a_missing_file_of_the_package_is_named(tmp_path):
    with pytest.raises(DataFileError, match=r"must hold `heart.json`, which is missing"):
        load_shipped("heart", tmp_path)


def dataset(**changes) -> Dataset:
    part = ArrayData.of(np.zeros((2, 3)), np.zeros((2, 2)))
    values = {
        "name": "mine",
        "title": "Mine",
        "description": "",
        "train": part,
        "test": part,
        "tasks": ("a", "b"),
        "class_names": (("x", "y"), ()),
        "kinds": ("classes", "values"),
        "licence": "",
        "citation": (),
        "metadata": {},
    }
    return Dataset(**(values | changes))


def test_tasks_predict_classes_unless_told_otherwise():
    assert dataset(kinds=()).kinds == ("classes", "classes")


def test_a_model_has_an_output_for_each_class_and_each_value():
    assert dataset().num_outputs == 3
    assert dataset().num_classes == (2, 0)
    assert dataset().input_shape == (3,)


def test_labels_of_values_are_refused_with_another_way_to_split():
    with pytest.raises(ValueError, match=r"classes and values; split it by `iid_partition\(len"):
        _ = dataset().labels


@pytest.mark.parametrize("changes", [{"kinds": ("classes",)}, {"class_names": ((),)}])
def test_each_task_has_a_kind_and_class_names(changes):
    with pytest.raises(ValueError, match="one entry for each of the 2 tasks"):
        dataset(**changes)


# --- the script that builds them


def build_script() -> types.ModuleType:
    path = ROOT / "scripts" / "build_data.py"
    spec = importlib.util.spec_from_file_location("build_data", path)
    module = importlib.util.module_from_spec(spec)
    # dataclasses look their module up by name
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "build_data", module)
        spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_the_committed_files_equal_a_rebuild(tmp_path):
    script = build_script()
    source = ROOT.parent / "shared" / "data"
    if not (source / "mnist.npz").exists() or not script.FASHION_DIR.exists():
        pytest.skip("needs ../shared/data and the package dataset-fashion-mnist")
    script.build(script.Sources(source, script.FASHION_DIR), tmp_path)
    for name in NAMES:
        with np.load(tmp_path / f"{name}.npz", allow_pickle=False) as rebuilt:
            committed = arrays(name)
            assert list(committed) == rebuilt.files
            for key, array in committed.items():
                assert np.array_equal(array, rebuilt[key])
        record = json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8"))
        assert record.pop("sha256")  # the compressor's version may change it
        kept = json.loads((FILES / f"{name}.json").read_text(encoding="utf-8"))
        assert record == {key: value for key, value in kept.items() if key != "sha256"}
    shutil.rmtree(tmp_path)
