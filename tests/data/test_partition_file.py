"""A split in a file, some of its clients, and checks against what was recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedaccord.data import (
    Partition,
    client_dirichlet_partition,
    load_partition,
    natural_partition,
    save_partition,
)
from fedaccord.errors import DataFileError

LABELS = np.arange(200) % 7


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "split.json"
    split = client_dirichlet_partition(LABELS, num_clients=5, samples_per_client=20, alpha=0.3)
    save_partition(path, split)
    return path


def test_a_file_gives_back_the_split(tmp_path: Path):
    split = natural_partition(["b", "a", "b", "c"])
    save_partition(tmp_path / "s.json", split)
    read = load_partition(tmp_path / "s.json")
    assert [part.tolist() for part in read] == [[1], [0, 2], [3]]
    assert read.client_names == ("a", "b", "c")
    assert (read.name, read.seed, read.digest()) == ("natural", None, split.digest())


@given(
    parts=st.lists(st.lists(st.integers(0, 9), max_size=5), max_size=4),
    names=st.lists(st.text() | st.integers() | st.tuples(st.integers(), st.text()), max_size=4),
)
def test_any_split_survives(
    tmp_path_factory: pytest.TempPathFactory, parts: list[list[int]], names: list[Any]
):
    names = names if len(names) == len(parts) else []
    split = Partition([np.array(p, dtype=np.int64) for p in parts], 10, client_names=tuple(names))
    path = tmp_path_factory.mktemp("split") / "s.json"
    save_partition(path, split)
    read = load_partition(path)
    assert [part.tolist() for part in read] == parts
    assert read.client_names == tuple(names)


def test_the_file_is_plain_json(file: Path):
    content = json.loads(file.read_text("utf-8"))
    assert content["format"] == "fedaccord-partition"
    assert content["version"] == 1
    assert [len(part) for part in content["parts"]] == [20] * 5
    assert content["parameters"] == {"samples_per_client": 20, "alpha": 0.3}


def test_a_file_that_ends_early_is_refused_wherever_it_ends(file: Path):
    whole = file.read_bytes()
    for end in range(0, len(whole) - 2, 37):  # the last bytes are the brace and a line feed
        file.write_bytes(whole[:end])
        with pytest.raises(DataFileError, match="damaged"):
            load_partition(file)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "must hold a split"),
        ({"version": 2}, "must have version 1"),
        ({"version": True}, "must have version 1"),
        ({"parts": [[0, 1]]}, "was edited"),
        ({"parts": [[0.5]]}, "whole numbers"),
        ({"parts": [[True]]}, "whole numbers"),
        ({"parts": [[10**30]]}, "no usable split"),
        ({"parts": [[-1]]}, "Indices must be in"),
        ({"parts": "all"}, "whole numbers"),
        ({"parts": None}, "no usable split"),
        ({"num_samples": -1}, "whole number"),
        ({"num_samples": 10**30}, "was edited"),
        ({"seed": "x"}, "whole number"),
        ({"name": 3}, "wrong kind"),
        ({"parameters": []}, "wrong kind"),
        ({"client_names": ["only one"]}, "one entry per client"),
        ({"client_names": [{}] * 5}, "text or a number"),
        ({"client_names": 7}, "no usable split"),
        ({"sha256": None}, "was edited"),
    ],
)
def test_an_edited_file_is_refused(file: Path, change: dict[str, Any], message: str):
    content = {**json.loads(file.read_text("utf-8")), **change}
    file.write_text(json.dumps(content))
    with pytest.raises(DataFileError, match=message):
        load_partition(file)


@pytest.mark.parametrize(
    "text", ["", "[]", "null", "NaN", '{"format": NaN}', "[" * 100_000, "\xff\xfe"]
)
def test_what_is_no_split_is_refused(file: Path, text: str):
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(DataFileError):
        load_partition(file)


def test_a_missing_key_is_named(file: Path):
    content = json.loads(file.read_text("utf-8"))
    del content["seed"]
    file.write_text(json.dumps(content))
    with pytest.raises(DataFileError, match="lacks `seed`"):
        load_partition(file)


def test_a_name_that_json_has_not_is_refused(tmp_path: Path):
    split = Partition([np.array([0])], 1, client_names=(b"raw",))
    with pytest.raises(ValueError, match="text or numbers"):
        save_partition(tmp_path / "s.json", split)
    assert not list(tmp_path.iterdir())


def test_some_clients_keep_their_names():
    split = natural_partition(["b", "a", "b", "c"])
    some = split.take([2, 0])
    assert [part.tolist() for part in some] == [[3], [1]]
    assert some.client_names == ("c", "a")
    assert some.take([1]).client_names == ("a",)


def test_clients_without_names_are_known_by_number():
    split = Partition([np.array([0]), np.array([1]), np.array([2])], 3)
    assert split.take([2, 1]).client_names == (2, 1)


@pytest.mark.parametrize("clients", [[0, 0], [3], [-1]])
def test_clients_that_are_not_there_cannot_be_taken(clients: list[int]):
    with pytest.raises(ValueError, match="distinct numbers in"):
        natural_partition([0, 1, 2]).take(clients)


def test_a_split_is_verified_against_what_was_recorded():
    split = natural_partition([0, 1, 1])
    split.verify(num_samples=3, digest=split.digest())
    with pytest.raises(ValueError, match="data's 4 samples"):
        split.verify(num_samples=4)
    with pytest.raises(ValueError, match="must have the SHA-256 0"):
        split.verify(digest="0")
