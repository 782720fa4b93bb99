"""Files of the datasets' formats, written by code that shares nothing with the readers."""

from __future__ import annotations

import gzip
import io
import struct
import tarfile
import zipfile
from pathlib import Path

import numpy as np

IDX_CODES = {"u1": 8, "i1": 9, "i2": 11, "i4": 12, "f4": 13, "f8": 14}
IDX_NAMES = {
    "x_train": "train-images-idx3-ubyte",
    "y_train": "train-labels-idx1-ubyte",
    "x_test": "t10k-images-idx3-ubyte",
    "y_test": "t10k-labels-idx1-ubyte",
}


def idx_bytes(array: np.ndarray) -> bytes:
    """An array as an idx file, after the description on MNIST's page."""
    code = IDX_CODES[array.dtype.str[1:]]
    header = struct.pack(f">HBB{array.ndim}I", 0, code, array.ndim, *array.shape)
    return header + array.astype(array.dtype.newbyteorder(">")).tobytes()


def digits(seed: int = 0, train: int = 7, test: int = 3) -> dict[str, np.ndarray]:
    """Random pictures and labels of MNIST's form."""
    rng = np.random.default_rng(seed)
    return {
        "x_train": rng.integers(0, 256, (train, 28, 28), dtype=np.uint8),
        "y_train": rng.integers(0, 10, train, dtype=np.uint8),
        "x_test": rng.integers(0, 256, (test, 28, 28), dtype=np.uint8),
        "y_test": rng.integers(0, 10, test, dtype=np.uint8),
    }


def write_idx(folder: Path, arrays: dict[str, np.ndarray], *, gz: bool = False) -> None:
    """The four files of MNIST."""
    folder.mkdir(parents=True, exist_ok=True)
    for key, name in IDX_NAMES.items():
        content = idx_bytes(arrays[key])
        if gz:
            (folder / f"{name}.gz").write_bytes(gzip.compress(content))
        else:
            (folder / name).write_bytes(content)


def records(pixels: np.ndarray, *labels: list[int]) -> bytes:
    """Pictures ``[n, 32, 32, 3]`` as CIFAR's binary version: labels, then R, G and B planes."""
    rows = []
    for number, picture in enumerate(pixels):
        rows.append(bytes(label[number] for label in labels))
        rows += [picture[:, :, channel].tobytes() for channel in range(3)]
    return b"".join(rows)


def planes(pixels: np.ndarray) -> np.ndarray:
    """Pictures ``[n, 32, 32, 3]`` as the rows ``[n, 3072]`` of CIFAR's Python version."""
    rows = [np.concatenate([p[:, :, c].reshape(-1) for c in range(3)]) for p in pixels]
    return np.array(rows, dtype=np.uint8).reshape(len(pixels), 3072)


def _short(text: str) -> bytes:
    return b"U" + bytes([len(text)]) + text.encode()


def python2_pickle(fields: dict[str, object]) -> bytes:
    """A dictionary as Python 2's cPickle writes it with protocol 2: strings of bytes throughout."""
    out = [b"\x80\x02}q\x01("]
    for key, value in fields.items():
        out.append(_short(key))
        if isinstance(value, np.ndarray):
            raw = value.tobytes()
            shape = b"".join(b"M" + struct.pack("<H", size) for size in value.shape)
            out += [
                b"cnumpy.core.multiarray\n_reconstruct\nq\x02cnumpy\nndarray\nq\x03",
                b"K\x00\x85U\x01b\x87Rq\x04(K\x01" + shape + b"\x86",
                b"cnumpy\ndtype\nq\x05U\x02u1K\x00K\x01\x87Rq\x06(K\x03U\x01|NNN",
                b"J\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89",
                b"T" + struct.pack("<i", len(raw)) + raw + b"tb",
            ]
        elif isinstance(value, list):
            items = (_short(v) if isinstance(v, str) else b"K" + bytes([v]) for v in value)
            out += [b"]q\x07(", *items, b"e"]
        else:
            out.append(_short(str(value)))
    return b"".join([*out, b"u."])


def tar_bytes(members: list[tuple[tarfile.TarInfo, bytes]], *, gz: bool = True) -> bytes:
    """A tar archive of the given members, in that order."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz" if gz else "w") as archive:
        for info, content in members:
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def member(name: str, content: bytes = b"", kind: bytes = tarfile.REGTYPE) -> tuple:
    """A member of a tar archive."""
    info = tarfile.TarInfo(name)
    info.size, info.type = len(content), kind
    if kind in (tarfile.SYMTYPE, tarfile.LNKTYPE):
        info.linkname = "elsewhere"
    return info, content


def npz_bytes(members: dict[str, bytes | np.ndarray], **options: int) -> bytes:
    """A zip archive of arrays, or of any bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", **options) as file:
        for name, content in members.items():
            if isinstance(content, np.ndarray):
                stream = io.BytesIO()
                np.save(stream, content)
                content = stream.getvalue()
            file.writestr(name, content)
    return buffer.getvalue()
