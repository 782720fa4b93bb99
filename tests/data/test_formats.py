"""Facts about the readers of file formats: right arrays or one clear error, and no harm."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.formats import (
    idx_bytes,
    member,
    npz_bytes,
    planes,
    python2_pickle,
    records,
    tar_bytes,
)
from fedaccord.data._formats import (
    Member,
    binary_batch,
    pack_npz,
    plain_pickle,
    python_batch,
    read_file,
    read_idx,
    read_members,
    read_npz,
)
from fedaccord.errors import DataFileError

RNG = np.random.default_rng(0)
SMALL = RNG.integers(0, 256, (3, 4, 5), dtype=np.uint8)
PIXELS = RNG.integers(0, 256, (3, 32, 32, 3), dtype=np.uint8)


def every_truncation(content: bytes, check: Callable[[bytes], object], step: int = 1) -> None:
    """Nothing but ``DataFileError`` for any proper beginning of a file."""
    for end in range(0, len(content), step):
        with pytest.raises(DataFileError):
            check(content[:end])


# --- idx


@pytest.mark.parametrize("dtype", ["u1", "i1", "i2", "i4", "f4", "f8"])
@pytest.mark.parametrize("shape", [(4,), (2, 3), (2, 3, 4), (0, 3)])
def test_an_idx_file_gives_its_values_back(tmp_path, dtype, shape):
    array = RNG.integers(-100, 100, shape).astype(dtype)
    (tmp_path / "a").write_bytes(idx_bytes(array))
    found = read_idx(tmp_path / "a")
    assert found.dtype == array.dtype
    assert np.array_equal(found, array)


def test_compression_is_seen_by_content_not_by_name(tmp_path):
    (tmp_path / "plain.gz").write_bytes(idx_bytes(SMALL))
    (tmp_path / "packed").write_bytes(gzip.compress(idx_bytes(SMALL)))
    assert np.array_equal(read_idx(tmp_path / "plain.gz"), SMALL)
    assert np.array_equal(read_idx(tmp_path / "packed"), SMALL)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_shortened_idx_file_is_refused_wherever_it_ends(tmp_path, pack):
    def read(content: bytes) -> None:
        (tmp_path / "a").write_bytes(content)
        read_idx(tmp_path / "a")

    every_truncation(pack(idx_bytes(SMALL)), read)


@given(position=st.integers(0, 10**6), bit=st.integers(0, 7))
def test_a_flipped_bit_in_a_packed_idx_file_is_an_error_or_does_no_harm(
    tmp_path_factory, position, bit
):
    content = bytearray(gzip.compress(idx_bytes(SMALL), mtime=0))
    content[position % len(content)] ^= 1 << bit
    path = tmp_path_factory.getbasetemp() / "flipped"
    path.write_bytes(content)
    try:
        found = read_idx(path)
    except DataFileError:
        return
    assert np.array_equal(found, SMALL)  # gzip's header has fields that do not matter


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x89PNG" + bytes(20), r"must be an idx file.*starts with \[137, 80, 78, 71\]"),
        (b"\0\0\x0a\1" + bytes(20), "must be an idx file"),  # no such type code
        (b"\0\0\x08\0" + bytes(20), "must be an idx file"),  # no dimensions
        (struct.pack(">HBB2I", 0, 8, 2, 3, 3) + bytes(8), "must hold 9 bytes.*ends after 8"),
        (struct.pack(">HBB2I", 0, 8, 2, 3, 3) + bytes(10), "at most 9 bytes.*holds more"),
        (struct.pack(">HBB3I", 0, 14, 3, *[2**32 - 1] * 3), "at most 1,073,741,824 bytes"),
    ],
)
def test_what_is_no_idx_file_is_refused_with_what_was_found(tmp_path, content, message):
    (tmp_path / "images").write_bytes(content)
    with pytest.raises(DataFileError, match=message) as caught:
        read_idx(tmp_path / "images")
    assert str(tmp_path / "images") in str(caught.value)


def test_labels_in_the_place_of_images_are_refused(tmp_path):
    (tmp_path / "a").write_bytes(idx_bytes(np.zeros(3, np.uint8)))
    with pytest.raises(DataFileError, match="in 3 dimensions. Its header says uint8 in 1"):
        read_idx(tmp_path / "a", ndim=3, dtype="uint8")


def test_a_gzip_bomb_is_read_no_further_than_announced(tmp_path):
    bomb = struct.pack(">HBB1I", 0, 8, 1, 100) + bytes(300_000_000)
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(bomb, 1))
    with pytest.raises(DataFileError, match="at most 100 bytes unpacked"):
        read_idx(tmp_path / "bomb.gz")
    with pytest.raises(DataFileError, match="at most 1,000 bytes unpacked"):
        read_file(tmp_path / "bomb.gz", 1000)


# --- CIFAR, binary


def test_binary_records_give_labels_and_pictures_back():
    found = binary_batch(records(PIXELS, [3, 1, 4]), "batch", label_bytes=1)
    assert np.array_equal(found["pixels"], PIXELS)
    assert found["labels"].tolist() == [[3], [1], [4]]


def test_cifar100s_records_have_the_coarse_label_first():
    found = binary_batch(records(PIXELS, [3, 1, 4], [30, 10, 40]), "train.bin", label_bytes=2)
    assert np.array_equal(found["pixels"], PIXELS)
    assert found["labels"].tolist() == [[3, 30], [1, 10], [4, 40]]


@pytest.mark.parametrize("cut", [0, 1, 3072, 3074])
def test_half_a_record_is_refused(cut):
    content = records(PIXELS, [3, 1, 4])[:cut]
    with pytest.raises(DataFileError, match=f"records of 3,073 bytes.*Got {cut:,} bytes"):
        binary_batch(content, "batch", label_bytes=1)


# --- CIFAR, Python

FIELDS = {
    "batch_label": "training batch 1 of 5",
    "labels": [3, 1, 4],
    "data": planes(PIXELS),
    "filenames": ["a.png", "b.png", "c.png"],
}


def test_python_2s_pickle_is_read():
    found = python_batch(python2_pickle(FIELDS), "data_batch_1", label_keys=("labels",))
    assert np.array_equal(found["pixels"], PIXELS)
    assert found["labels"].tolist() == [[3], [1], [4]]


def test_the_test_writes_pickles_that_python_reads():
    found = pickle.loads(python2_pickle(FIELDS), encoding="latin1")
    assert np.array_equal(found["data"], FIELDS["data"])
    assert found["labels"] == FIELDS["labels"]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("keys", [str, str.encode], ids=["text", "bytes"])
@pytest.mark.parametrize("labels", [list, np.array], ids=["list", "array"])
def test_a_batch_pickled_again_by_python_3_is_read(protocol, keys, labels):
    batch = {keys(key): value for key, value in FIELDS.items()}
    batch[keys("labels")] = labels(FIELDS["labels"])
    content = pickle.dumps(batch, protocol)
    found = python_batch(content, "data_batch_1", label_keys=("labels",))
    assert np.array_equal(found["pixels"], PIXELS)
    assert found["labels"].tolist() == [[3], [1], [4]]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_plain_data_come_back_from_a_pickle_of_any_protocol(protocol):
    shared = [1, 2]
    value = {
        "numbers": [0, 1, -1, 255, 256, 65536, 2**31, -(2**40), 2**70, 1.5, True, False, None],
        "texts": ["", "a", "é", "x" * 300],
        "tuples": [(), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)],
        "shared": [shared, shared],
        "bytes": [b"", b"ab", b"\xff" * 300],
        "nested": {"a": {1: {"b": []}}},
        "matrix": np.arange(6, dtype=">i4").reshape(2, 3),
        "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    }
    found = plain_pickle(pickle.dumps(value, protocol), "file")
    for key in ("matrix", "fortran"):
        assert np.array_equal(found.pop(key), value.pop(key))
    assert found == value


class Call:
    """Pickles as a call of a function."""

    def __init__(self, function: Callable[..., object], *arguments: object) -> None:
        self.call = (function, arguments)

    def __reduce__(self) -> tuple:
        return self.call


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize(
    "place",
    [
        lambda evil: evil,
        lambda evil: {"data": evil, "labels": [1]},
        lambda evil: {"labels": [[[{"deep": (1, evil)}]]]},
        lambda evil: [Call(list, [evil])],
    ],
)
def test_a_command_in_a_pickle_is_refused_and_not_executed(tmp_path, protocol, place):
    sentinel = tmp_path / "executed"
    for function, argument in (
        (os.mkdir, str(sentinel)),
        (os.system, f"mkdir {sentinel}"),
        (eval, f"__import__('os').mkdir({str(sentinel)!r})"),
    ):
        content = pickle.dumps(place(Call(function, argument)), protocol)
        with pytest.raises(DataFileError, match=r"(asks for|calls).*Nothing was executed"):
            plain_pickle(content, "data_batch_1")
        assert not sentinel.exists()
    pickle.loads(pickle.dumps(Call(os.mkdir, str(sentinel))))
    assert sentinel.exists()  # the test can fail: Python's own reader executes it


@pytest.mark.parametrize(
    "content",
    [
        b"cnumpy\nndarray\n(tR.",  # an allowed name, called in a way that arrays do not need
        b"cnumpy\ndtype\n(U\x02O8K\x00K\x01tR.",  # objects
        b"cnumpy\ndtype\n(U\x02u1K\x00K\x01tR.",  # a type alone
        b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00tU\x01btR.",  # no values
        b"ccopy_reg\n_reconstructor\n(tR.",
        b"(dp0\nS'a'\np1\nI1\ns(ios\nsystem\n.",  # INST
        b"\x80\x02U\x01aQ.",  # a persistent id
        b"\x80\x02\x82\x01.",  # an extension
        b"g5\n.",  # nothing is stored there
        b"0.",
        b"e.",
        b"(.",
        b"]]a",
        b"}(]U\x01au.",  # a list as a key
        b"}(U\x01au.",  # a key without value
        b"N}.",  # two values
        b"\x80\x05\x97.",  # a buffer from outside
        b"",
        b"not a pickle",
    ],
)
def test_other_programs_are_refused(content):
    with pytest.raises(DataFileError):
        plain_pickle(content, "file")


def test_a_shortened_pickle_is_refused_wherever_it_ends():
    small = {**FIELDS, "data": planes(PIXELS[:1])[:, :50]}
    for content in (python2_pickle(small), *(pickle.dumps(small, p) for p in (0, 2, 4, 5))):
        every_truncation(content, lambda part: plain_pickle(part, "file"))


@given(st.binary(max_size=200))
def test_no_bytes_get_past_the_pickle_reader(content):
    try:
        plain_pickle(content, "file")
    except DataFileError:
        return
    pickle.loads(content)  # what is taken is a pickle indeed


@given(position=st.integers(0, 10**6), value=st.integers(0, 255), protocol=st.integers(0, 5))
def test_a_changed_byte_in_a_batch_is_an_error_or_other_plain_data(position, value, protocol):
    content = bytearray(pickle.dumps(FIELDS, protocol))
    content[position % len(content)] = value
    try:
        found = python_batch(bytes(content), "file", label_keys=("labels",))
    except DataFileError:
        return
    assert found["pixels"].shape == (3, 32, 32, 3)
    assert found["labels"].shape == (3, 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": [1, 2]}, "`labels` of `b` must be 3 whole numbers"),
        ({"labels": [1, 2, 300]}, "from 0 to 255"),
        ({"labels": [1, 2, 0.5]}, "whole numbers"),
        ({"labels": [True, False, True]}, "whole numbers"),
        ({"data": planes(PIXELS)[:, :5]}, r"must be \[n, 3072\].*Got \(3, 5\)"),
        ({"data": planes(PIXELS).astype(float)}, "array of uint8"),
        ({"data": "pixels"}, "array of uint8"),
    ],
)
def test_a_batch_that_does_not_fit_is_refused(change, message):
    with pytest.raises(DataFileError, match=message):
        python_batch(pickle.dumps({**FIELDS, **change}), "b", label_keys=("labels",))


def test_a_missing_field_is_named():
    with pytest.raises(DataFileError, match="must hold `fine_labels`, which is missing"):
        python_batch(pickle.dumps(FIELDS), "train", label_keys=("fine_labels",))
    with pytest.raises(DataFileError, match="must hold a pickled dictionary. Got list"):
        python_batch(pickle.dumps([1]), "train", label_keys=("labels",))


# --- tar archives

NAMES = ("one", "two")
GOOD = [member("folder/one", b"1"), member("folder/two", b"22")]


def read_tar(path: Path, content: bytes, **options: int) -> dict[str, bytes]:
    path.write_bytes(content)
    options = {"limit": 100, **options}
    return read_members(path, NAMES, folder="folder", **options)


@pytest.mark.parametrize("gz", [True, False])
@pytest.mark.parametrize("prefix", ["folder/", "", "./folder/", "./"])
def test_named_members_are_read(tmp_path, gz, prefix):
    content = tar_bytes([member(f"{prefix}one", b"1"), member(f"{prefix}two", b"22")], gz=gz)
    assert read_tar(tmp_path / "a", content) == {"one": b"1", "two": b"22"}


@pytest.mark.parametrize(
    "other",
    [
        member("/etc/one", b"evil"),
        member("../one", b"evil"),
        member("folder/../../one", b"evil"),
        member("other/one", b"evil"),
        member("folder/three", b"x" * 1000),
        member("link", kind=tarfile.SYMTYPE),
        member("hard", kind=tarfile.LNKTYPE),
        member("device", kind=tarfile.CHRTYPE),
        member("pipe", kind=tarfile.FIFOTYPE),
        member("folder", kind=tarfile.DIRTYPE),
    ],
    ids=lambda other: other[0].name,
)
def test_other_members_are_passed_over_and_nothing_is_written(tmp_path, other):
    folder = tmp_path / "in"
    folder.mkdir()
    for members in ([other, *GOOD], [*GOOD, other]):
        assert read_tar(folder / "a", tar_bytes(members)) == {"one": b"1", "two": b"22"}
    assert [path.name for path in tmp_path.rglob("*")] == ["in", "a"]


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([GOOD[0], member("folder/two", kind=tarfile.SYMTYPE)], "`two` in .* a regular file"),
        ([GOOD[0], member("folder/two", kind=tarfile.LNKTYPE)], "a regular file"),
        ([GOOD[0], member("folder/two", kind=tarfile.CHRTYPE)], "a regular file"),
        ([GOOD[0], member("folder/two", kind=tarfile.DIRTYPE)], "a regular file"),
        ([*GOOD, GOOD[0]], "must hold `one` once. It comes twice"),
        ([GOOD[0], member("two", b"2"), GOOD[1]], "must hold `two` once"),
        ([GOOD[0], member("folder/two", b"x" * 101)], "at most 100 bytes. Got 101"),
        ([GOOD[0]], "must hold `folder/two`, which is missing"),
        ([], "must hold `folder/one`, which is missing"),
    ],
)
def test_a_named_member_must_be_one_small_regular_file(tmp_path, members, message):
    with pytest.raises(DataFileError, match=message):
        read_tar(tmp_path / "a", tar_bytes(members))


@pytest.mark.parametrize(("name", "limit"), [("folder/one", "1,073,741,824"), ("other", "1,073")])
def test_a_member_that_announces_a_huge_size_is_refused_at_once(tmp_path, name, limit):
    info = tarfile.TarInfo(name)
    info.size = 2**60
    content = info.tobuf(format=tarfile.GNU_FORMAT) + b"x" * 512
    with pytest.raises(DataFileError, match=f"`{name}` in .* at most {limit}"):
        read_tar(tmp_path / "a", content)


def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path):
    big = tar_bytes([*GOOD, member("padding", bytes(600_000)), member("more", bytes(600_000))])
    with pytest.raises(DataFileError, match="must unpack to at most 1,000,000 bytes"):
        read_tar(tmp_path / "a", big, total=1_000_000)
    tail = gzip.compress(gzip.decompress(tar_bytes(GOOD)) + bytes(3_000_000))
    with pytest.raises(DataFileError, match="must unpack to at most 1,000,000 bytes"):
        read_tar(tmp_path / "a", tail, total=1_000_000)


def test_a_shortened_archive_is_refused_or_whole_wherever_it_ends(tmp_path):
    every_truncation(tar_bytes(GOOD), lambda part: read_tar(tmp_path / "a", part))
    plain = tar_bytes(GOOD, gz=False)
    every_truncation(plain[:1537], lambda part: read_tar(tmp_path / "a", part), step=7)


@given(position=st.integers(0, 2047), value=st.integers(0, 255))
def test_a_changed_byte_in_a_header_is_an_error_or_does_no_harm(tmp_path_factory, position, value):
    content = bytearray(tar_bytes(GOOD, gz=False))
    content[position] = value
    path = tmp_path_factory.getbasetemp() / "changed.tar"
    try:
        found = read_tar(path, bytes(content))
    except DataFileError:
        return
    assert set(found) == set(NAMES)


# --- npz

MEMBERS = {
    "x": Member("u", (None, 4, 5)),
    "y": Member("iu", (None,)),
    "names": Member("U", (2,), optional=True),
}
ARRAYS = {"x.npy": SMALL, "y.npy": np.array([1, 2, 3], dtype=np.int16)}


def read_zip(path: Path, content: bytes, **options: int) -> dict[str, np.ndarray]:
    path.write_bytes(content)
    return read_npz(path, MEMBERS, **options)


@pytest.mark.parametrize(
    "compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
)
def test_arrays_come_back_from_an_archive(tmp_path, compression):
    members = {**ARRAYS, "names.npy": np.array(["a", "bc"])}
    found = read_zip(tmp_path / "a.npz", npz_bytes(members, compression=compression))
    assert list(found) == ["x", "y", "names"]
    for name, array in found.items():
        assert array.dtype == members[f"{name}.npy"].dtype
        assert np.array_equal(array, members[f"{name}.npy"])


def test_what_we_pack_numpy_reads_and_so_do_we(tmp_path):
    arrays = {"x": np.asfortranarray(SMALL), "y": np.array([1, 2, 3])}
    content = pack_npz(arrays, compression=zipfile.ZIP_DEFLATED)
    assert content == pack_npz(arrays, compression=zipfile.ZIP_DEFLATED)
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        assert all(np.array_equal(file[key], array) for key, array in arrays.items())
    found = read_zip(tmp_path / "a.npz", content)
    assert all(np.array_equal(found[key], array) for key, array in arrays.items())


def test_an_array_in_fortrans_order_comes_back_in_its_shape(tmp_path):
    members = {**ARRAYS, "x.npy": np.asfortranarray(SMALL)}
    assert np.array_equal(read_zip(tmp_path / "a.npz", npz_bytes(members))["x"], SMALL)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x.npy": np.array([[["a", None]]], dtype=object)}, r"unsigned integers. Got .* object"),
        ({"x.npy": SMALL.astype(float)}, r"`x` in .* must be \[n, 4, 5\] of unsigned integers"),
        ({"x.npy": SMALL[:, :2]}, r"must be \[n, 4, 5\].*Got shape \(3, 2, 5\)"),
        ({"y.npy": np.zeros((3, 1), dtype=int)}, r"must be \[n\] of signed integers or unsigned"),
        ({"y.npy": np.zeros(3, dtype="M8[D]")}, "signed integers"),
        ({"y.npy": np.zeros(3, dtype=[("a", "i4")])}, "signed integers"),
        ({"z.npy": SMALL}, "must hold `x`, `y`, `names` only. It holds `z.npy`"),
        ({"../x.npy": SMALL}, "It holds `../x.npy`"),
        ({"readme.txt": b"hello"}, "It holds `readme.txt`"),
        ({"x.npy": b"no array"}, "must be an array as `numpy.save` writes it"),
        ({"x.npy": b""}, "must be an array"),
        ({"x.npy": b"\x93NUMPY\x09\x00" + bytes(20)}, "must be an array"),
    ],
)
def test_an_archive_of_another_form_is_refused(tmp_path, change, message):
    with pytest.raises(DataFileError, match=message):
        read_zip(tmp_path / "a.npz", npz_bytes({**ARRAYS, **change}))


def test_an_array_of_objects_is_not_unpickled(tmp_path):
    sentinel = tmp_path / "executed"
    evil = np.array([Call(os.mkdir, str(sentinel))], dtype=object)
    content = npz_bytes({**ARRAYS, "y.npy": evil})
    with pytest.raises(DataFileError, match="Got shape"):
        read_zip(tmp_path / "a.npz", content)
    assert not sentinel.exists()


def test_a_missing_array_is_named(tmp_path):
    with pytest.raises(DataFileError, match="must hold `y`, which is missing"):
        read_zip(tmp_path / "a.npz", npz_bytes({"x.npy": SMALL}))


def test_an_array_may_come_once(tmp_path):
    buffer = io.BytesIO(npz_bytes(ARRAYS))
    with zipfile.ZipFile(buffer, "a") as file, pytest.warns(UserWarning, match="Duplicate"):
        file.writestr("x.npy", b"again")
    with pytest.raises(DataFileError, match="must hold `x` once"):
        read_zip(tmp_path / "a.npz", buffer.getvalue())


def test_an_array_larger_than_allowed_is_refused_before_it_is_read(tmp_path):
    bomb = npz_bytes({"x.npy": bytes(50_000_000)}, compression=zipfile.ZIP_DEFLATED)
    with pytest.raises(DataFileError, match="`x` in .* at most 1,000 bytes. Got 50,000,000"):
        read_zip(tmp_path / "a.npz", bomb, limit=1000)


@pytest.mark.parametrize("shape", ["(3, 4, 6)", "(2, 4, 5)", "(-3, 4, 5)", "(10**9, 4, 5)"])
def test_a_header_that_does_not_fit_the_values_is_refused(tmp_path, shape):
    header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    content = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()
    with pytest.raises(DataFileError):
        read_zip(tmp_path / "a.npz", npz_bytes({**ARRAYS, "x.npy": content + SMALL.tobytes()}))


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_LZMA])
def test_a_shortened_archive_of_arrays_is_refused(tmp_path, compression):
    content = npz_bytes(ARRAYS, compression=compression)
    every_truncation(content, lambda part: read_zip(tmp_path / "a.npz", part))


@given(
    position=st.integers(0, 10**6),
    value=st.integers(0, 255),
    compression=st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA]),
)
def test_a_changed_byte_in_an_archive_is_an_error_or_does_no_harm(
    tmp_path_factory, position, value, compression
):
    content = bytearray(npz_bytes(ARRAYS, compression=compression))
    content[position % len(content)] = value
    path = tmp_path_factory.getbasetemp() / "changed.npz"
    try:
        found = read_zip(path, bytes(content))
    except DataFileError:
        return
    for name, array in found.items():
        assert np.array_equal(array, ARRAYS[f"{name}.npy"])


def test_a_file_that_is_not_there_is_an_operating_system_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_npz(tmp_path / "absent.npz", MEMBERS)
