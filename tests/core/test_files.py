"""Files that appear whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedaccord.files import leftovers, naming, replacing, write_whole


def test_a_file_is_replaced_by_what_was_written(tmp_path: Path):
    write_whole(tmp_path / "a", b"old")
    write_whole(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"new"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_if_writing_fails_the_old_file_stays_and_nothing_else(tmp_path: Path):
    write_whole(tmp_path / "a", b"old")

    def fail() -> None:
        with replacing(tmp_path / "a") as temporary:
            temporary.write_bytes(b"half")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert (tmp_path / "a").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_while_a_file_is_written_it_would_be_found_as_a_leftover(tmp_path: Path):
    with replacing(tmp_path / "a.json") as temporary:
        temporary.write_bytes(b"")
        assert leftovers(tmp_path) == [temporary]
    assert leftovers(tmp_path) == []


def test_an_error_names_the_file_and_not_the_one_beside_it(tmp_path: Path):
    with pytest.raises(FileNotFoundError) as raised:
        write_whole(tmp_path / "nowhere" / "a", b"")
    assert raised.value.filename == str(tmp_path / "nowhere" / "a")


def test_an_error_of_an_open_file_gets_its_name():
    def fill() -> None:
        with naming(Path("mine")), Path("/dev/full").open("wb") as file:  # the device that is full
            file.write(b"x")

    with pytest.raises(OSError, match="No space left on device: 'mine'"):
        fill()
