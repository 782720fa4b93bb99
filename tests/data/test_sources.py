"""Facts about the datasets whose files the user has: where they are found, what is made of them."""

from __future__ import annotations

import hashlib
import importlib.util
import pickle
import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import torch

from data.formats import (
    IDX_NAMES,
    digits,
    idx_bytes,
    member,
    npz_bytes,
    planes,
    python2_pickle,
    records,
    tar_bytes,
    write_idx,
)
from fedaccord import FedAvg, Federation, LocalSGD, simulate
from fedaccord.data import (
    Dataset,
    TextWindows,
    describe,
    find_data,
    list_datasets,
    load,
    load_shakespeare,
    natural_partition,
)
from fedaccord.data._sources import SOURCES
from fedaccord.data._sources.parkinsons import late_visits
from fedaccord.errors import DataFileError, MissingDataError, UnknownNameError
from fedaccord.models import char_lstm, linear, logistic, losses_for

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared" / "data"
FASHION = Path("/usr/share/datasets/fashion-mnist")
RNG = np.random.default_rng(0)


def write_npz(path: Path, arrays: dict[str, np.ndarray]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(npz_bytes({f"{key}.npy": array for key, array in arrays.items()}))


def same_pictures(data: Dataset, arrays: dict[str, np.ndarray], mean: float, std: float) -> None:
    for split, part in (("train", data.train), ("test", data.test)):
        expected = (arrays[f"x_{split}"][:, None] / 255 - mean) / std
        torch.testing.assert_close(part.inputs, torch.tensor(expected, dtype=torch.float32))
        assert part.targets.tolist() == arrays[f"y_{split}"].tolist()


# --- MNIST and Fashion-MNIST


@pytest.mark.parametrize("folder", [".", "mnist", "MNIST/raw", "MNIST"])
@pytest.mark.parametrize("gz", [False, True])
def test_mnist_is_found_in_the_usual_places(tmp_path, folder, gz):
    arrays = digits()
    write_idx(tmp_path / folder, arrays, gz=gz)
    same_pictures(load("mnist", tmp_path), arrays, 0.1307, 0.3081)
    assert len(find_data("mnist", tmp_path)) == 4


@pytest.mark.parametrize("folder", [".", "fashion-mnist", "FashionMNIST/raw"])
def test_fashion_mnist_is_found_in_the_usual_places(tmp_path, folder):
    arrays = digits()
    write_idx(tmp_path / folder, arrays)
    same_pictures(load("fashion-mnist", str(tmp_path)), arrays, 0.2860, 0.3530)


def test_mnist_is_read_from_one_archive(tmp_path):
    arrays = digits()
    write_npz(tmp_path / "mnist.npz", arrays)
    same_pictures(load("mnist", tmp_path), arrays, 0.1307, 0.3081)


def test_a_folder_of_the_datasets_name_comes_first(tmp_path):
    write_idx(tmp_path, digits(seed=1))
    write_idx(tmp_path / "mnist", digits(seed=2))
    same_pictures(load("mnist", tmp_path), digits(seed=2), 0.1307, 0.3081)


def test_a_record_says_that_the_content_is_not_the_published_one(tmp_path):
    arrays = digits()
    write_idx(tmp_path, arrays)
    record = load("mnist", tmp_path).metadata
    found = hashlib.md5(idx_bytes(arrays["x_train"]), usedforsecurity=False).hexdigest()
    assert record["verified"] is False
    assert f"MD5 of `train-images-idx3-ubyte` is {found}, published is" in record["verification"]
    assert [Path(file).name for file in record["files"]] == list(IDX_NAMES.values())


def test_images_and_labels_of_different_number_are_refused(tmp_path):
    write_idx(tmp_path, digits() | {"y_train": digits(train=6)["y_train"]})
    with pytest.raises(DataFileError, match="Got `x_train` 7, `y_train` 6"):
        load("mnist", tmp_path)


def test_a_label_beyond_the_classes_is_refused(tmp_path):
    write_idx(tmp_path, digits() | {"y_test": np.array([1, 10, 2], dtype=np.uint8)})
    with pytest.raises(DataFileError, match=r"`y_test` must be in \[0, 10\). Got 1 to 10"):
        load("mnist", tmp_path)


def test_files_without_samples_are_refused(tmp_path):
    write_idx(tmp_path, digits(test=0))
    with pytest.raises(DataFileError, match="at least one. Got `x_test` 0"):
        load("mnist", tmp_path)


# --- CIFAR


def cifar(train: int = 10, test: int = 3, classes: int = 10) -> dict[str, np.ndarray]:
    return {
        "x_train": RNG.integers(0, 256, (train, 32, 32, 3), dtype=np.uint8),
        "y_train": RNG.integers(0, classes, train, dtype=np.uint8),
        "x_test": RNG.integers(0, 256, (test, 32, 32, 3), dtype=np.uint8),
        "y_test": RNG.integers(0, classes, test, dtype=np.uint8),
    }


def cifar10_files(arrays: dict[str, np.ndarray], version: str) -> dict[str, bytes]:
    """Five training batches of two pictures and a test batch."""
    parts = {f"data_batch_{b + 1}": ("train", slice(2 * b, 2 * b + 2)) for b in range(5)}
    files = {}
    for name, (split, rows) in {**parts, "test_batch": ("test", slice(None))}.items():
        pixels, labels = arrays[f"x_{split}"][rows], arrays[f"y_{split}"][rows].tolist()
        if version == "binary":
            files[f"{name}.bin"] = records(pixels, labels)
        else:
            files[name] = python2_pickle({"labels": labels, "data": planes(pixels)})
    return files


@pytest.mark.parametrize(
    ("version", "folder"),
    [
        ("binary", "cifar-10-batches-bin"),
        ("binary", "cifar10"),
        ("binary", "."),
        ("Python", "cifar-10-batches-py"),
        ("Python", "cifar10/cifar-10-batches-py"),
        ("binary", "cifar-10-binary.tar.gz"),
        ("Python", "cifar-10-python.tar.gz"),
        ("Python", "cifar10/cifar-10-python.tar.gz"),
    ],
)
def test_cifar10_is_found_in_its_published_forms(tmp_path, version, folder):
    arrays = cifar()
    files = cifar10_files(arrays, version)
    if folder.endswith(".gz"):
        inside = "cifar-10-batches-bin" if version == "binary" else "cifar-10-batches-py"
        (tmp_path / folder).parent.mkdir(exist_ok=True)
        members = [member(f"{inside}/{name}", content) for name, content in files.items()]
        (tmp_path / folder).write_bytes(tar_bytes([member(f"{inside}/readme.html"), *members]))
    else:
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (tmp_path / folder / name).write_bytes(content)
    data = load("cifar10", tmp_path)
    mean, std = np.array([0.4914, 0.4822, 0.4465]), np.array([0.2470, 0.2435, 0.2616])
    expected = ((arrays["x_train"] / 255 - mean) / std).transpose(0, 3, 1, 2)
    torch.testing.assert_close(data.train.inputs, torch.tensor(expected, dtype=torch.float32))
    assert data.train.targets.tolist() == arrays["y_train"].tolist()
    assert data.test.targets.tolist() == arrays["y_test"].tolist()
    assert data.class_names[0][3] == "cat"


def cifar100_files(coarse: list[int], fine: list[int], version: str) -> dict[str, bytes]:
    pixels = cifar()["x_test"]
    if version == "binary":
        return dict.fromkeys(("train.bin", "test.bin"), records(pixels, coarse, fine))
    batch = {"fine_labels": fine, "coarse_labels": coarse, b"data": planes(pixels)}
    return dict.fromkeys(("train", "test"), pickle.dumps(batch, protocol=2))


@pytest.mark.parametrize("version", ["binary", "Python"])
@pytest.mark.parametrize(
    ("name", "expected", "classes"),
    [("cifar100", [99, 0, 5], 100), ("cifar100-coarse", [19, 0, 7], 20)],
)
def test_cifar100_has_fine_and_coarse_labels(tmp_path, version, name, expected, classes):
    folder = tmp_path / f"cifar-100-{version.lower()}"
    folder.mkdir()
    for file, content in cifar100_files([19, 0, 7], [99, 0, 5], version).items():
        (folder / file).write_bytes(content)
    data = load(name, tmp_path)
    assert data.train.targets.tolist() == expected
    assert data.num_classes == (classes,)


def test_coarse_labels_that_an_archive_lacks_are_named(tmp_path):
    write_npz(tmp_path / "cifar100.npz", cifar(classes=100))
    assert len(load("cifar100", tmp_path).train) == 10
    with pytest.raises(DataFileError, match="`y_train_coarse`, which is missing"):
        load("cifar100-coarse", tmp_path)


def test_a_pickle_that_would_run_a_command_is_refused_by_load(tmp_path):
    sentinel = tmp_path / "executed"
    for name, content in cifar10_files(cifar(), "Python").items():
        (tmp_path / name).write_bytes(content)
    command = f"cposix\nsystem\n(S'mkdir {sentinel}'\ntR.".encode()
    (tmp_path / "data_batch_3").write_bytes(command)
    with pytest.raises(DataFileError, match="data_batch_3.*asks for `posix.system`"):
        load("cifar10", tmp_path)
    assert not sentinel.exists()


# --- Adult


def adult(train: int = 12, test: int = 5) -> dict[str, np.ndarray]:
    categories = {
        "workclass": ["Private", "State-gov"],
        "education": ["Bachelors", "Doctorate", "Masters"],
        "marital-status": ["Divorced", "Married"],
        "occupation": ["Sales", "Tech"],
        "relationship": ["Husband", "Wife"],
        "race": ["A", "B"],
        "sex": ["Female", "Male"],
        "native-country": ["X", "Y"],
    }
    arrays = {
        "num_names": np.array(["age", "fnlwgt", "education-num", "gain", "loss", "hours"]),
        "cat_names": np.array(list(categories)),
    }
    for name, levels in categories.items():
        arrays[f"cat_{name.replace('-', '_')}"] = np.array(levels)
    for split, count in (("train", train), ("test", test)):
        arrays[f"xnum_{split}"] = RNG.integers(0, 90, (count, 6), dtype=np.int32)
        arrays[f"xcat_{split}"] = RNG.integers(0, 2, (count, 8), dtype=np.int8)
        arrays[f"y_{split}"] = RNG.integers(0, 2, count, dtype=np.int8)
    arrays["xcat_train"][:3, 0] = -1
    return arrays


def test_adult_has_a_column_a_level_and_one_for_missing_values(tmp_path):
    arrays = adult()
    write_npz(tmp_path / "adult.npz", arrays)
    data = load("adult", tmp_path)
    names = data.metadata["feature_names"]
    assert data.input_shape == (len(names),) == (6 + 3 + 3 + 6 * 2,)
    missing = data.train.inputs[:, names.index("workclass=missing")]
    assert missing.tolist() == [1.0] * 3 + [0.0] * 9
    bachelors = data.test.inputs[:, names.index("education=Bachelors")]
    assert bachelors.tolist() == (arrays["xcat_test"][:, 1] == 0).astype(float).tolist()
    assert (data.train.inputs[:, 6:].sum(1) == 8).all()  # one level of each category


def test_adults_numbers_are_standardised_on_the_training_part(tmp_path):
    arrays = adult()
    write_npz(tmp_path / "adult" / "adult.npz", arrays)
    data = load("adult", tmp_path)
    numbers = data.train.inputs[:, :6].double()
    torch.testing.assert_close(numbers.mean(0), torch.zeros(6).double(), atol=1e-6, rtol=0)
    torch.testing.assert_close(numbers.std(0), torch.ones(6).double(), atol=1e-6, rtol=0)
    scale = torch.tensor(data.metadata["input_scale"])
    back = data.test.inputs[:, :6] * scale + torch.tensor(data.metadata["input_mean"])
    torch.testing.assert_close(back, torch.tensor(arrays["xnum_test"]).float())


def test_adults_clients_are_people_with_a_doctorate_and_the_others(tmp_path):
    arrays = adult()
    write_npz(tmp_path / "adult.npz", arrays)
    data = load("adult", tmp_path)
    assert data.client_names == ("doctorate", "others")
    assert data.client_ids.tolist() == (1 - (arrays["xcat_train"][:, 1] == 1)).tolist()
    assert data.test_client_ids.tolist() == (1 - (arrays["xcat_test"][:, 1] == 1)).tolist()


ADULT_DATA = """39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, \
White, Male, 2174, 0, 40, United-States, <=50K
50, ?, 83311, Doctorate, 16, Married-civ-spouse, ?, Husband, White, Male, 0, 0, 13, Cuba, >50K

"""
ADULT_TEST = """|1x3 Cross validator
25, Private, 226802, Bachelors, 7, Never-married, Sales, Own-child, Black, Male, 0, 0, 40, ?, <=50K.
"""


def test_adult_is_read_from_the_repositorys_text(tmp_path):
    (tmp_path / "adult.data").write_text(ADULT_DATA)
    (tmp_path / "adult.test").write_text(ADULT_TEST)
    data = load("adult", tmp_path)
    names = data.metadata["feature_names"]
    assert data.train.targets.tolist() == [0, 1]
    assert data.client_ids.tolist() == [1, 0]
    assert data.test.inputs[0, names.index("native-country=missing")] == 1
    assert data.train.inputs[:, names.index("workclass=missing")].tolist() == [0, 1]
    root_half = 0.5**0.5  # two values lie this far from their mean, in sample deviations
    assert data.train.inputs[:, names.index("age")].tolist() == pytest.approx(
        [-root_half, root_half]
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("39, State", "39.5, State", "Line 1 of .* must hold a whole number. Got '39.5'"),
        ("39, State", "39 State", "Line 1 of .* 15 fields between commas. Got 14"),
        ("39, State", f"{2**31}, State", "numbers up to 2,147,483,647"),
        (">50K", "50K", "Line 2 of .* must end with <=50K or >50K"),
        ("Doctorate", "Masters", "must have the level Doctorate"),
    ],
)
def test_a_bad_line_of_text_is_named(tmp_path, old, new, message):
    (tmp_path / "adult.data").write_text(ADULT_DATA.replace(old, new))
    (tmp_path / "adult.test").write_text(ADULT_TEST)
    with pytest.raises(DataFileError, match=message):
        load("adult", tmp_path)


# --- Shakespeare

ROLES = [
    "aaaaa\nbbbbb\nccccc\nddddd\neeeee",  # 4 of 5 lines to train on
    "one line only",
    "first\nsecond",  # one line each
    "x",  # too short for any window
]


def shakespeare(roles: list[str] = ROLES) -> dict[str, np.ndarray]:
    text = "".join(roles).encode()
    return {
        "text": np.frombuffer(text, np.uint8),
        "offsets": np.cumsum([0, *map(len, roles)]).astype(np.int64),
        "n_lines": np.array([role.count("\n") + 1 for role in roles], dtype=np.int32),
        "play": np.zeros(len(roles), dtype=np.int16),
        "role_names": np.array([f"ROLE {number}" for number in range(len(roles))]),
        "play_names": np.array(["A Play"]),
    }


def spelt(data: Dataset, part: TextWindows) -> list[tuple[str, str]]:
    names = data.class_names[0]
    return [
        ("".join(names[code] for code in window), names[target])
        for window, target in zip(part.inputs.tolist(), part.targets.tolist(), strict=True)
    ]


def windows(text: str, window: int, stride: int = 1) -> list[tuple[str, str]]:
    """The samples of one passage, written down directly."""
    starts = range(0, len(text) - window, stride)
    return [(text[start : start + window], text[start + window]) for start in starts]


@pytest.mark.parametrize(("window", "stride"), [(4, 1), (4, 3), (1, 1), (10, 2)])
def test_windows_are_those_of_each_roles_first_four_fifths_and_rest(tmp_path, window, stride):
    write_npz(tmp_path / "shakespeare_roles.npz", shakespeare())
    data = load_shakespeare(tmp_path, window=window, stride=stride)
    train = ["aaaaa\nbbbbb\nccccc\nddddd\n", "one line only", "first\n", "x"]
    test = ["eeeee", "", "second", ""]
    for part, passages, ids in (
        (data.train, train, data.client_ids),
        (data.test, test, data.test_client_ids),
    ):
        each = [windows(passage, window, stride) for passage in passages]
        assert spelt(data, part) == [sample for samples in each for sample in samples]
        assert ids.tolist() == [role for role, samples in enumerate(each) for _ in samples]


def test_roles_too_short_for_a_window_are_listed(tmp_path):
    write_npz(tmp_path / "shakespeare.npz", shakespeare())
    data = load_shakespeare(tmp_path, window=6)
    assert data.metadata["too_short"] == ["A Play: ROLE 2", "A Play: ROLE 3"]
    assert data.client_names[3] == "A Play: ROLE 3"


def test_the_defaults_are_80_characters_and_every_one(tmp_path):
    write_npz(tmp_path / "shakespeare.npz", shakespeare(["ab" * 100, "c\nd" * 70]))
    data = load("shakespeare", tmp_path)
    assert data.input_shape == (80,)
    assert torch.bincount(data.client_ids)[0] == 120  # 200 characters less 80
    again = load_shakespeare(tmp_path, window=80, stride=1)
    assert torch.equal(data.train.inputs, again.train.inputs)


def test_a_subset_of_windows_shares_the_text_and_refers_to_the_subset(tmp_path):
    write_npz(tmp_path / "shakespeare.npz", shakespeare())
    data = load_shakespeare(tmp_path, window=4)
    part = data.train.subset([5, 3, 1]).subset(np.array([2, 0]))
    assert len(part) == 2
    assert torch.equal(part.inputs, data.train.inputs[[1, 5]])
    assert torch.equal(part.batch(torch.tensor([1]))[0], data.train.inputs[[5]])
    assert part.text.data_ptr() == data.train.text.data_ptr()
    with pytest.raises(ValueError, match=r"in \[0, 2\)"):
        part.subset([2])


def test_windows_cost_no_memory_each():
    text = torch.zeros(3_000_000, dtype=torch.uint8)
    ends = torch.tensor([3_000_000])
    data = TextWindows.over(text, torch.tensor([0]), ends, window=80)
    assert len(data) == 3_000_000 - 80
    held = sum(t.numel() * t.element_size() for t in vars(data).values() if torch.is_tensor(t))
    assert held < 3_000_100  # the text, one byte a character, and one passage


@pytest.mark.parametrize("options", [{"window": 0}, {"stride": 0}])
def test_window_and_stride_are_at_least_one(tmp_path, options):
    write_npz(tmp_path / "shakespeare.npz", shakespeare())
    with pytest.raises(ValueError, match="`window` and `stride` must be at least 1"):
        load_shakespeare(tmp_path, **options)


@pytest.mark.parametrize(
    "offsets", [[0, 5], [1, 29, 42, 54, 55], [0, 42, 29, 54, 55], [0, 0, 42, 54, 55]]
)
def test_offsets_that_do_not_fit_the_text_are_refused(tmp_path, offsets):
    write_npz(tmp_path / "shakespeare.npz", shakespeare() | {"offsets": np.array(offsets)})
    with pytest.raises(DataFileError, match="`offsets` must rise from 0"):
        load("shakespeare", tmp_path)


# --- TCGA-BRCA


def tcga(rows: int = 12) -> dict[str, np.ndarray]:
    x = RNG.integers(0, 2, (rows, 39)).astype(np.float32)
    x[:, 0] = RNG.integers(30, 90, rows)
    return {
        "x": x,
        "event": (np.arange(rows) % 3 == 0).astype(np.int8),
        "time": RNG.integers(1, 5000, rows).astype(np.float32),
        "client": np.arange(rows, dtype=np.int8) % 2,
        "is_test": np.arange(rows) % 4 == 3,
        "client_names": np.array(["North", "South"]),
        "feature_names": np.array([f"f{number}" for number in range(39)]),
    }


def test_survival_targets_are_time_and_event(tmp_path):
    arrays = tcga()
    write_npz(tmp_path / "fed_tcga_brca.npz", arrays)
    data = load("tcga-brca", tmp_path)
    train = ~arrays["is_test"]
    expected = np.stack([arrays["time"], arrays["event"]], 1)
    assert data.kinds == ("survival",)
    assert data.train.targets.tolist() == expected[train].tolist()
    assert data.test.targets.tolist() == expected[~train].tolist()
    assert data.client_ids.tolist() == arrays["client"][train].tolist()
    assert (data.num_tasks, data.num_outputs, data.num_classes) == (1, 1, (0,))


def test_age_is_standardised_and_the_indicators_stay(tmp_path):
    arrays = tcga()
    write_npz(tmp_path / "tcga-brca.npz", arrays)
    data = load("tcga-brca", tmp_path)
    train = ~arrays["is_test"]
    assert data.train.inputs[:, 1:].tolist() == arrays["x"][train, 1:].tolist()
    age = arrays["x"][:, 0].astype(float)
    expected = (age[~train] - age[train].mean()) / age[train].std(ddof=1)
    torch.testing.assert_close(data.test.inputs[:, 0], torch.tensor(expected).float())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"event": np.full(12, 2, np.int8)}, r"`event` must be in \[0, 2\)"),
        ({"client": np.full(12, 2, np.int8)}, r"`client` must be in \[0, 2\)"),
        ({"time": np.full(12, np.nan, np.float32)}, "must be finite"),
        ({"time": np.ones(11, np.float32)}, "`time` 11"),
        ({"is_test": np.ones(12, bool)}, "at least two rows to train on"),
    ],
)
def test_survival_data_that_do_not_fit_are_refused(tmp_path, change, message):
    write_npz(tmp_path / "tcga-brca.npz", tcga() | change)
    with pytest.raises(DataFileError, match=message):
        load("tcga-brca", tmp_path)


# --- Parkinsons


def parkinsons(visits: int = 5) -> dict[str, np.ndarray]:
    """Two patients with three recordings at each weekly visit, not in the order of time."""
    days = 7 * np.arange(visits).repeat(3) + np.tile([0, 0.001, 0.01], visits)
    test_time = np.concatenate([RNG.permutation(days), RNG.permutation(days)])
    count = len(test_time)
    return {
        "x": RNG.normal(size=(count, 18)).astype(np.float32),
        "y": RNG.normal(20, 8, (count, 2)).astype(np.float32),
        "client": np.repeat([0, 1], count // 2).astype(np.int8),
        "test_time": test_time.astype(np.float32),
        "feature_names": np.array([f"f{number}" for number in range(18)]),
        "target_names": np.array(["motor_UPDRS", "total_UPDRS"]),
    }


def test_the_last_fifth_of_each_patients_visits_is_held_out(tmp_path):
    arrays = parkinsons()
    write_npz(tmp_path / "parkinsons_telemonitoring.npz", arrays)
    data = load("parkinsons", tmp_path)
    late = arrays["test_time"] > 27  # the fifth visit is on day 28
    assert data.client_ids.tolist() == arrays["client"][~late].tolist()
    assert data.test_client_ids.tolist() == arrays["client"][late].tolist()
    scale, mean = (torch.tensor(data.metadata[f"target_{k}"]).float() for k in ("scale", "mean"))
    torch.testing.assert_close(data.test.targets * scale + mean, torch.tensor(arrays["y"][late]))


@pytest.mark.parametrize(("visits", "held_out"), [(1, 0), (2, 1), (5, 1), (7, 1), (8, 2), (25, 5)])
def test_a_fifth_of_the_visits_is_rounded_half_up(visits, held_out):
    late = late_visits(np.arange(visits).repeat(2) * 7.0)
    assert late.tolist() == [False] * 2 * (visits - held_out) + [True] * 2 * held_out


def test_both_scores_are_standardised_on_the_training_part(tmp_path):
    write_npz(tmp_path / "parkinsons.npz", parkinsons())
    data = load("parkinsons", tmp_path)
    assert data.kinds == ("values", "values")
    for part in (data.train.inputs, data.train.targets):
        columns = part.double()
        assert columns.mean(0).abs().max() < 1e-6
        assert (columns.std(0) - 1).abs().max() < 1e-6


def test_values_have_no_labels_and_the_error_says_how_to_split(tmp_path):
    write_npz(tmp_path / "parkinsons.npz", parkinsons())
    with pytest.raises(ValueError, match=r"predicts values; split it by its natural clients"):
        _ = load("parkinsons", tmp_path).labels


def updrs_text(arrays: dict[str, np.ndarray]) -> str:
    header = "subject#,age,sex,test_time,motor_UPDRS,total_UPDRS," + ",".join(
        arrays["feature_names"][2:]
    )
    lines = [header]
    for patient, x, time, y in zip(
        *(arrays[key].tolist() for key in ("client", "x", "test_time", "y")), strict=True
    ):
        lines.append(",".join(map(repr, (patient + 1, *x[:2], time, *y, *x[2:]))))
    return "\n".join(lines)


def test_parkinsons_is_read_from_the_repositorys_text(tmp_path):
    arrays = parkinsons()
    write_npz(tmp_path / "npz" / "parkinsons.npz", arrays)
    (tmp_path / "parkinsons_updrs.data").write_text(updrs_text(arrays))
    expected, found = load("parkinsons", tmp_path / "npz"), load("parkinsons", tmp_path)
    assert torch.equal(found.train.inputs, expected.train.inputs)
    assert torch.equal(found.test.targets, expected.test.targets)
    assert torch.equal(found.test_client_ids, expected.test_client_ids)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("subject#", "patient", "must begin with the columns subject#"),
        ("\n1,", "\nx,", "Line 2 of .* must hold a number. Got 'x'"),
        ("\n1,", "\n1000,", "numbers up to 127"),
        ("\n1,", "\n1,1e300,", "22 fields"),
    ],
)
def test_a_bad_line_of_a_table_is_named(tmp_path, old, new, message):
    text = updrs_text(parkinsons()).replace(old, new, 1)
    (tmp_path / "parkinsons_updrs.data").write_text(text)
    with pytest.raises(DataFileError, match=message):
        load("parkinsons", tmp_path)


@pytest.mark.parametrize("value", ["1e300", "nan", "-inf"])
def test_a_table_with_a_value_that_is_not_finite_is_refused(tmp_path, value):
    arrays = parkinsons()
    lines = updrs_text(arrays).splitlines()
    lines[3] = lines[3].rsplit(",", 1)[0] + f",{value}"
    (tmp_path / "parkinsons_updrs.data").write_text("\n".join(lines))
    with pytest.raises(DataFileError, match="must be finite"):
        load("parkinsons", tmp_path)


# --- every kind can be trained on


@pytest.mark.parametrize(
    ("name", "arrays", "model"),
    [
        ("adult", adult(), lambda: logistic(24)),
        ("tcga-brca", tcga(), lambda: linear(39)),
        ("parkinsons", parkinsons(), lambda: linear(18, 2)),
        ("shakespeare", shakespeare(["abcde" * 30] * 2), lambda: char_lstm(5, hidden=4)),
    ],
)
def test_a_natural_federation_trains(tmp_path, name, arrays, model):
    write_npz(tmp_path / f"{name}.npz", arrays)
    data = load(name, tmp_path)
    clients = data.clients(natural_partition(data.client_ids))
    federation = Federation(model, losses_for(data.kinds), clients, num_tasks=data.num_tasks)
    (result,) = simulate(FedAvg(), federation, rounds=1, local=LocalSGD(lr=0.01, batch_size=4))
    assert torch.isfinite(result.training.params).all()


# --- what is there and what is missing


def test_every_dataset_is_described_without_its_files():
    for name in list_datasets():
        info = describe(name)
        assert info.name == name
        assert len(info.tasks) == len(info.kinds) > 0
        assert info.num_train > info.num_test > 0
        assert all((info.title, info.description, info.licence, *info.citation))
        assert info.shipped == (name not in SOURCES)


@pytest.mark.parametrize("name", list(SOURCES))
def test_missing_files_say_where_and_what_and_how(tmp_path, name):
    assert find_data(name, tmp_path) is None
    with pytest.raises(MissingDataError) as caught:
        load(name, tmp_path)
    message = str(caught.value)
    assert str(tmp_path) in message
    assert ".npz` with" in message
    assert "The originals:" in message
    assert "Cite:" in message
    command = f"scripts/prepare_data.py --source FOLDER --out {tmp_path} "
    assert message.split(command)[1].split("`", maxsplit=1)[0] in prepare_script().NAMES
    # every file the message names is one that is looked for
    looked_for = {n for form in SOURCES[name].forms for names in form.files for n in names}
    for file in re.findall(r"`([\w.-]+\.(?:npz|gz|bin))`", message):
        assert file in looked_for


def test_a_folder_that_is_not_there_is_said_to_be_missing(tmp_path):
    with pytest.raises(MissingDataError, match="There is no such folder"):
        load("mnist", tmp_path / "absent")


def test_part_of_the_files_is_as_good_as_none(tmp_path):
    write_idx(tmp_path, digits())
    (tmp_path / IDX_NAMES["y_test"]).unlink()
    assert find_data("mnist", tmp_path) is None


def test_the_default_folder_is_the_platforms_cache(tmp_path, monkeypatch):
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / name)
    write_npz(tmp_path / "fedaccord" / "mnist.npz", digits())
    assert len(load("mnist").train) == 7
    assert find_data("mnist") == (tmp_path / "fedaccord" / "mnist.npz",)


def test_unknown_names_are_refused_everywhere(tmp_path):
    for function in (load, find_data, describe):
        with pytest.raises(UnknownNameError, match="Did you mean `mnist`"):
            function("mnits")


def test_shipped_datasets_are_read_from_the_package_whatever_the_folder(tmp_path):
    assert load("heart", tmp_path).num_classes == (2,)
    assert all(path.is_file() for path in find_data("heart", tmp_path))


# --- the script that prepares a folder


def prepare_script() -> types.ModuleType:
    path = ROOT / "scripts" / "prepare_data.py"
    spec = importlib.util.spec_from_file_location("prepare_data", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_script_refuses_content_that_is_not_the_published_one(tmp_path):
    source, out = tmp_path / "source", tmp_path / "out"
    write_npz(source / "mnist.npz", digits())
    write_npz(source / "adult.npz", adult())
    for name in ("mnist", "adult"):
        with pytest.raises(DataFileError, match="must hold the published data"):
            prepare_script().prepare([name], out=out, source=source, fashion=source)
    assert list(out.iterdir()) == []


def test_the_script_ends_with_a_message_when_a_source_is_missing(tmp_path, monkeypatch, capsys):
    arguments = [
        "prepare_data.py",
        "--out",
        str(tmp_path / "o"),
        "--source",
        str(tmp_path),
        "adult",
    ]
    monkeypatch.setattr(sys, "argv", arguments)
    assert prepare_script().main() == 1
    assert "adult.npz" in capsys.readouterr().err


@pytest.mark.long
def test_a_prepared_folder_holds_every_dataset_as_published(tmp_path):
    pytest.importorskip("imagecodecs")
    if not SHARED.is_dir() or not FASHION.is_dir():
        pytest.skip("needs ../shared/data and the package dataset-fashion-mnist")
    script, said = prepare_script(), []
    for _ in range(2):
        script.prepare(
            list(script.NAMES), out=tmp_path, source=SHARED, fashion=FASHION, say=said.append
        )
    assert [("wrote" in line, "already in" in line) for line in said] == [(True, False)] * 8 + [
        (False, True)
    ] * 8
    for name in SOURCES:
        data, info = load(name, tmp_path), describe(name)
        assert data.metadata["verified"], data.metadata["verification"]
        assert (len(data.train), len(data.test)) == (info.num_train, info.num_test)
        assert info.num_clients in (None, len(data.client_names))


# the table of the originals' published statistics: train and test images of each class, and the
# mean and deviation of the training pixels of each channel
@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "per_class"),
    [("fashion-mnist", (6000, 1000)), ("mnist", None)],
)
def test_the_full_picture_sets_have_their_published_counts(name, per_class):
    folder = FASHION if name == "fashion-mnist" else SHARED
    if find_data(name, folder) is None:
        pytest.skip(f"needs {name} in `{folder}`")
    data = load(name, folder)
    assert data.metadata["verified"]
    counts = [torch.bincount(part.targets).tolist() for part in (data.train, data.test)]
    if per_class:
        assert counts == [[per_class[0]] * 10, [per_class[1]] * 10]
    else:
        assert counts[0] == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
        assert counts[1] == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert abs(float(data.train.inputs.mean())) < 1e-3
    assert abs(float(data.train.inputs.std()) - 1) < 1e-3


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "train", "test"),
    [
        ("adult", [413, 32148], [181, 16100]),
        ("tcga-brca", [248, 156, 164, 129, 129, 40], [63, 40, 42, 33, 33, 11]),
    ],
)
def test_the_natural_clients_have_their_published_sizes(name, train, test):
    if find_data(name, SHARED) is None:
        pytest.skip(f"needs {name} in `{SHARED}`")
    data = load(name, SHARED)
    assert torch.bincount(data.client_ids).tolist() == train
    assert torch.bincount(data.test_client_ids).tolist() == test


def adult_text(arrays: dict[str, np.ndarray], split: str) -> str:
    """The original text, written out again from the arrays."""
    numeric = dict(zip(arrays["num_names"], arrays[f"xnum_{split}"].T, strict=True))
    order = [
        *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status"),
        *("occupation", "relationship", "race", "sex", "capital-gain", "capital-loss"),
        *("hours-per-week", "native-country"),
    ]
    columns = []
    for name in order:
        if name in numeric:
            columns.append(list(map(str, numeric[name].tolist())))
        else:
            levels = [*arrays[f"cat_{name.replace('-', '_')}"].tolist(), "?"]
            codes = arrays[f"xcat_{split}"][:, list(arrays["cat_names"]).index(name)]
            columns.append([levels[code] for code in codes])
    stop = "." if split == "test" else ""
    columns.append([(">50K" if y else "<=50K") + stop for y in arrays[f"y_{split}"]])
    text = "".join(", ".join(row) + "\n" for row in zip(*columns, strict=True))
    return ("|1x3 Cross validator\n" if split == "test" else "") + text + "\n"


@pytest.mark.long
def test_the_original_text_of_adult_is_recognised(tmp_path):
    if find_data("adult", SHARED) is None:
        pytest.skip(f"needs adult in `{SHARED}`")
    with np.load(SHARED / "adult.npz", allow_pickle=False) as file:
        arrays = dict(file)
    published = {
        "data": "5d7c39d7b8804f071cdd1f2a7c460872",
        "test": "35238206dfdf7f1fe215bbb874adecdc",
    }
    for suffix, split in (("data", "train"), ("test", "test")):
        content = adult_text(arrays, split).encode()
        assert hashlib.md5(content, usedforsecurity=False).hexdigest() == published[suffix]
        (tmp_path / f"adult.{suffix}").write_bytes(content)
    data = load("adult", tmp_path)
    assert data.metadata["verified"], data.metadata["verification"]
    assert torch.equal(data.train.inputs, load("adult", SHARED).train.inputs)


@pytest.mark.long
def test_no_visit_of_a_patient_is_on_both_sides():
    if find_data("parkinsons", SHARED) is None:
        pytest.skip(f"needs parkinsons in `{SHARED}`")
    data = load("parkinsons", SHARED)
    sizes = torch.bincount(data.client_ids) + torch.bincount(data.test_client_ids)
    assert (len(sizes), int(sizes.min()), int(sizes.max())) == (42, 101, 168)
    with np.load(SHARED / "parkinsons_telemonitoring.npz", allow_pickle=False) as file:
        days, owner = file["test_time"], file["client"]
    for patient in range(42):
        mine = days[owner == patient]
        late = late_visits(mine)
        assert mine[late].min() - mine[~late].max() > 0.5
