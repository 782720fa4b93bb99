"""Facts about clients from a folder with one file each."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from fedaccord import FedAvg, Federation, simulate
from fedaccord.data import clients_from_folder
from fedaccord.errors import DataFileError
from fedaccord.models import cross_entropy, logistic

CSV = {
    "ward10.csv": "age,sex,sick\n70,m,yes\n",
    "ward2.csv": "age,sex,sick\n20,f,no\n40,m,yes\n30,f,no\n",
    "ward1.csv": "sex,age,sick\nf,60,yes\nm,50,no\n",
}


def folder(path: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        file = path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def read(path: Path, **options):
    return clients_from_folder(path, **{"target": "sick", "standardise": None, **options})


def test_each_file_is_a_client_in_the_order_in_which_people_count(tmp_path):
    data = read(folder(tmp_path, CSV), features=["age"])
    assert data.client_names == ("ward1", "ward2", "ward10")
    assert [client.inputs[:, 0].tolist() for client in data.clients] == [
        [60, 50],
        [20, 40, 30],
        [70],
    ]


def test_columns_may_stand_in_another_order(tmp_path):
    data = read(folder(tmp_path, CSV))
    assert data.feature_names == ("sex=f", "sex=m", "age")
    assert data.clients[1].inputs[0].tolist() == [1, 0, 20]
    assert data.class_names == (("no", "yes"),)


def test_files_without_rows_are_clients_without_samples(tmp_path):
    files = {**CSV, "ward3.csv": "", "ward4.csv": "age,sex,sick\n"}
    data = read(folder(tmp_path, files))
    assert data.parts.sizes == (2, 3, 0, 0, 1)
    assert data.empty_clients == ("ward3", "ward4")


def test_files_in_folders_are_named_with_them(tmp_path):
    files = {f"{site}/{name}": text for site in ("a", "b") for name, text in CSV.items()}
    data = read(folder(tmp_path, files), pattern="**/*.csv")
    assert data.client_names[:2] == ("a/ward1", "a/ward2")
    assert len(data.clients) == 6


def test_hidden_files_are_passed_over(tmp_path):
    assert len(read(folder(tmp_path, {**CSV, ".ward.csv": "?"})).clients) == 3


def test_quotes_byte_order_marks_blank_lines_and_windows_line_ends_are_read(tmp_path):
    text = '\ufeffage,sex,sick\r\n1,"f, or\nm",no\r\n\r\n2,m,yes\r\n'
    data = read(folder(tmp_path, {"a.csv": text}))
    assert data.feature_names == ("age", "sex=f, or\nm", "sex=m")
    assert data.samples.inputs[:, 0].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"delimiter": ";"}, b"age;sick\n1;no\n2;yes\n"),
        ({"encoding": "cp1252"}, "age,sick\n1,nö\n2,yes\n".encode("cp1252")),
    ],
)
def test_other_delimiters_and_encodings_can_be_named(tmp_path, options, text):
    assert len(read(folder(tmp_path, {"a.csv": text}), **options).samples) == 2


def test_tabulators_separate_the_fields_of_tsv_files(tmp_path):
    data = read(folder(tmp_path, {"a.tsv": "age\tsick\n1\tno\n"}), pattern="*.tsv")
    assert data.samples.inputs.tolist() == [[1]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("age,sex,sick\n1,f\n", "ward3.csv, line 2: the header has 3 fields, this line 2"),
        ("age,sick\n1,no\n", r"ward3.csv must have the columns of ward1.csv. It lacks \['sex'\]"),
        ("age;sex;sick\n1;f;no\n", "ward3.csv has a single column.*delimiter=';'"),
        ("1,f,no\n2,m,yes\n", "ward3.csv must have the columns"),
        ("1,2,3\n", "ward3.csv, line 1: the first line must name the columns"),
        (",age,sex,sick\n0,1,f,no\n", "Column 1 has no name. pandas leaves out.*index=False"),
        ("age,age,sick\n", "Column 2 has the name 'age' of an earlier one"),
        (b"age,sex,sick\n1,\xe9,no\n", "must be text in utf-8. Byte 0xe9"),
        ('age,sex,sick\n1,"f,no\n', "ward3.csv, line 2: it must be comma-separated text"),
    ],
)
def test_a_damaged_file_is_named_with_its_line(tmp_path, text, message):
    with pytest.raises(DataFileError, match=message):
        read(folder(tmp_path, {**CSV, "ward3.csv": text}))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("?,f,no", r"'\?' in ward3.csv, line 3"),
        ("NA,f,no", "Missing: `age` 1; the first in ward3.csv, line 3"),
        ("1e999,f,no", "infinity, first in ward3.csv, line 3"),
        ("1_000,f,no", r"'1_000' in ward3.csv, line 3"),
        ("1,f,", "1 missing, the first in ward3.csv, line 3"),
    ],
)
def test_a_value_that_cannot_be_used_is_named_with_file_and_line(tmp_path, row, message):
    files = {**CSV, "ward3.csv": f"age,sex,sick\n5,f,no\n{row}\n"}
    with pytest.raises(ValueError, match=message):
        read(folder(tmp_path, files))


def arrays(path: Path, ends: str, **clients: tuple[object, object]) -> Path:
    for name, (x, y) in clients.items():
        if ends == "npz":
            np.savez(path / f"{name}.npz", x=x, y=y)
        else:
            np.save(path / f"{name}_x.npy", x)
            np.save(path / f"{name}_y.npy", y)
    return path


@pytest.mark.parametrize("ends", ["npz", "npy"])
def test_arrays_are_read_with_labels_numbered_over_all_clients(tmp_path, ends):
    arrays(tmp_path, ends, c10=(np.ones((1, 2)), ["dog"]), c2=(np.zeros((2, 2)), ["cat", "owl"]))
    data = clients_from_folder(tmp_path, f"*.{ends}")
    assert data.client_names == ("c2", "c10")
    assert data.class_names == (("cat", "dog", "owl"),)
    assert [client.targets.tolist() for client in data.clients] == [[0, 2], [1]]
    assert data.clients[1].inputs.tolist() == [[1, 1]]


@pytest.mark.parametrize("ends", ["npz", "npy"])
def test_clients_may_have_no_row_in_their_arrays(tmp_path, ends):
    arrays(tmp_path, ends, a=(np.ones((2, 3)), [0, 1]), b=(np.ones((0, 3)), []))
    data = clients_from_folder(tmp_path, f"*.{ends}")
    assert data.parts.sizes == (2, 0)


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (np.ones((2, 4)), [0, 1], r"Client b cannot be used: Samples must have the shapes"),
        (np.ones((2, 3)), [0], "Client b cannot be used: .*one row a sample"),
        (np.full((2, 3), np.nan), [0, 1], "Client b cannot be used: .*Row 0 holds NaN"),
        (np.ones((2, 3), dtype=np.uint8), [0, 1], "Client b cannot be used: .*uint8"),
        (3.0, [0, 1], "Client b cannot be used"),
    ],
)
def test_arrays_that_do_not_fit_name_the_client(tmp_path, x, y, message):
    arrays(tmp_path, "npz", a=(np.ones((2, 3)), [0, 1]), b=(x, y))
    with pytest.raises(DataFileError, match=message):
        clients_from_folder(tmp_path, "*.npz")


class Trap:
    """What a pickle would run; it leaves a file behind."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return (Path.touch, (self.path,))


@pytest.mark.parametrize("ends", ["npz", "npy"])
def test_nothing_in_a_file_is_executed(tmp_path, ends):
    trap = np.array([Trap(tmp_path / "executed")], dtype=object)
    arrays(tmp_path, ends, a=(trap, [0]))
    with pytest.raises(DataFileError, match=r"a(_x)?\.np. cannot be used.*allow_pickle"):
        clients_from_folder(tmp_path, f"*.{ends}")
    (tmp_path / "b.npz").write_bytes(pickle.dumps(Trap(tmp_path / "executed")))
    with pytest.raises(DataFileError):
        clients_from_folder(tmp_path, "b.npz")
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize("keep", range(0, 400, 23))
def test_a_truncated_array_file_is_refused_by_name(tmp_path, keep):
    arrays(tmp_path, "npz", a=(np.ones((2, 3)), [0, 1]))
    whole = (tmp_path / "a.npz").read_bytes()
    (tmp_path / "a.npz").write_bytes(whole[:keep])
    with pytest.raises(DataFileError, match=r"a\.npz"):
        clients_from_folder(tmp_path, "*.npz")


def test_a_missing_partner_or_array_is_named(tmp_path):
    np.save(tmp_path / "a_x.npy", np.ones((2, 3)))
    with pytest.raises(DataFileError, match="a_x.npy must be one of a pair"):
        clients_from_folder(tmp_path, "*.npy")
    np.savez(tmp_path / "b.npz", x=[[1.0]], labels=[0])
    with pytest.raises(DataFileError, match=r"It lacks \['y'\] and holds \['labels', 'x'\]"):
        clients_from_folder(tmp_path, "*.npz")


def test_parquet_files_are_read(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    for name, ages in (("b", [1.0, 2.0]), ("a", [3.0])):
        frame = pandas.DataFrame({"age": ages, "sick": "no"})
        frame.to_parquet(tmp_path / f"{name}.parquet")
    data = read(tmp_path, pattern="*.parquet")
    assert data.client_names == ("a", "b")
    assert data.clients[1].inputs.tolist() == [[1], [2]]
    frame.assign(age=[None]).astype({"age": "float64"}).to_parquet(tmp_path / "c.parquet")
    with pytest.raises(ValueError, match="the first in c.parquet, row 0"):
        read(tmp_path, pattern="*.parquet")
    (tmp_path / "c.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataFileError, match="c.parquet cannot be used"):
        read(tmp_path, pattern="*.parquet")


@pytest.mark.parametrize(
    ("files", "options", "error", "message"),
    [
        ({}, {}, DataFileError, "must hold files that fit"),
        ({"a.csv": "", "b.csv": ""}, {}, DataFileError, "All 2 are empty"),
        ({"a.csv": "", "b.txt": ""}, {"pattern": "*"}, DataFileError, "must be of one kind"),
        ({"a.json": "{}"}, {"pattern": "*"}, DataFileError, "Got '.json'"),
        (CSV, {"target": None}, ValueError, "`target` must name the column"),
        ({"a.npz": b""}, {"pattern": "*.npz"}, ValueError, "`target` names a column"),
    ],
)
def test_a_folder_that_cannot_be_used_is_refused(tmp_path, files, options, error, message):
    with pytest.raises(error, match=message):
        read(folder(tmp_path, files), **options)


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(DataFileError, match="must be a folder"):
        read(tmp_path / "nowhere")


def test_two_rounds_train_on_a_folder_with_empty_and_tiny_clients(tmp_path):
    data = read(folder(tmp_path, {**CSV, "ward0.csv": ""}), standardise="all", test_fraction=0.3)
    federation = Federation(lambda: logistic(data.num_features), cross_entropy, data.clients)
    results = list(simulate(FedAvg(), federation, rounds=2))
    assert all(result.step_norm > 0 for result in results)
    assert torch.tensor(data.parts.sizes).tolist() == [0, 1, 2, 1]


def test_two_rounds_train_on_arrays(tmp_path):
    arrays(tmp_path, "npz", a=(np.eye(3), [0, 1, 0]), b=(np.ones((1, 3)), [1]))
    data = clients_from_folder(tmp_path, "*.npz")
    federation = Federation(lambda: logistic(3), cross_entropy, data.clients)
    assert len(list(simulate(FedAvg(), federation, rounds=2))) == 2
