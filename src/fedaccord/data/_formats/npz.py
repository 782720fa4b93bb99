"""NumPy's ``.npz`` archives, read without pickles and with every member's form checked."""

from __future__ import annotations

import io
import lzma
import math
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from ...errors import DataFileError
from .bounded import LIMIT

Arrays = dict[str, npt.NDArray[Any]]

_DAMAGE = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, OSError),
    *(NotImplementedError, RuntimeError, ValueError, KeyError, IndexError, MemoryError),
)
"""What ``zipfile`` and its decompressors raise for damaged, encrypted or forged archives."""


@dataclass(frozen=True)
class Member:
    """What an array in an archive must be.

    :param kinds: Letters of NumPy's ``dtype.kind`` that it may have: ``u`` unsigned, ``i`` signed,
        ``f`` floating point, ``b`` boolean, ``U`` text.
    :param shape: Its shape; ``None`` for a size that may be any.
    :param optional: Whether it may be absent.
    """

    kinds: str
    shape: tuple[int | None, ...]
    optional: bool = False


def read_npz(path: Path, members: Mapping[str, Member], *, limit: int = LIMIT) -> Arrays:
    """Read an archive that holds these arrays and no others.

    :param path: The archive.
    :param members: What it must hold, by name without ``.npy``.
    :param limit: Bytes that one array may have.
    :return: The arrays, not writeable.
    :raises DataFileError: If it is damaged, an array is missing, unexpected, too large or of
        another form, or holds Python objects.
    """
    with path.open("rb") as file:
        contents = _contents(file, path, members, limit)
    missing = [n for n, member in members.items() if n not in contents and not member.optional]
    if missing:
        raise DataFileError(f"`{path}` must hold `{missing[0]}`, which is missing.")
    return {name: _array(content, path, name, members[name]) for name, content in contents.items()}


def pack_npz(arrays: Mapping[str, npt.NDArray[Any]], *, compression: int) -> bytes:
    """Write an archive whose bytes depend on the arrays only, not on the clock or the machine.

    :param arrays: By name.
    :param compression: One of the constants of :mod:`zipfile`, such as ``zipfile.ZIP_STORED``.
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for key, array in arrays.items():
            member = zipfile.ZipInfo(f"{key}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            member.compress_type = compression
            member.create_system = 3
            with file.open(member, "w") as stream:
                np.lib.format.write_array(
                    stream,
                    np.ascontiguousarray(array),
                    allow_pickle=False,
                )
    return buffer.getvalue()


def _contents(
    file: IO[bytes], path: Path, members: Mapping[str, Member], limit: int
) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    try:
        with zipfile.ZipFile(file) as archive:
            for entry in archive.infolist():
                name = entry.filename.removesuffix(".npy")
                if name not in members or not entry.filename.endswith(".npy"):
                    raise DataFileError(
                        f"`{path}` must hold {_listed(members)} only. It holds "
                        f"`{entry.filename[:80]}`."
                    )
                if name in found:
                    raise DataFileError(f"`{path}` must hold `{name}` once. It comes twice.")
                if entry.file_size > limit:
                    raise DataFileError(
                        f"`{name}` in `{path}` must have at most {limit:,} bytes. "
                        f"Got {entry.file_size:,}."
                    )
                # reads no more than announced, and compares the checksum
                found[name] = archive.read(entry)
    except _DAMAGE as error:
        raise DataFileError(f"`{path}` must be a whole `.npz` file. {_said(error)}") from error
    return found


def _array(content: bytes, path: Path, name: str, member: Member) -> npt.NDArray[Any]:
    stream = io.BytesIO(content)
    try:
        version = np.lib.format.read_magic(stream)
        read = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }[version]
        shape, fortran, dtype = read(stream)
    except (ValueError, KeyError, SyntaxError, TypeError, tokenize.TokenError) as error:
        raise DataFileError(
            f"`{name}` in `{path}` must be an array as `numpy.save` writes it. {_said(error)}"
        ) from error
    if dtype.kind not in member.kinds or not _fits(shape, member.shape):
        sizes = ", ".join("n" if size is None else str(size) for size in member.shape)
        kinds = " or ".join(_KIND_NAMES[kind] for kind in member.kinds)
        raise DataFileError(
            f"`{name}` in `{path}` must be [{sizes}] of {kinds}. Got shape {shape} of {dtype}."
        )
    size = math.prod(shape) * dtype.itemsize
    if size != len(content) - stream.tell():
        raise DataFileError(
            f"`{name}` in `{path}` must hold {size:,} bytes of values, for shape {shape}. "
            f"Got {len(content) - stream.tell():,}."
        )
    # zero-width text has no buffer to share
    values = np.frombuffer(content, dtype, offset=stream.tell()) if size else np.empty(0, dtype)
    return values.reshape(shape, order="F" if fortran else "C")


_KIND_NAMES = {
    "u": "unsigned integers",
    "i": "signed integers",
    "f": "floating-point numbers",
    "b": "booleans",
    "U": "text",
}


def _fits(shape: tuple[int, ...], wanted: tuple[int | None, ...]) -> bool:
    return len(shape) == len(wanted) and all(
        isinstance(size, int) and size >= 0 and expected in (None, size)
        for size, expected in zip(shape, wanted, strict=True)
    )


def _listed(names: Mapping[str, Member]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _said(error: BaseException) -> str:
    """The error in one short sentence; some say nothing, some quote the file."""
    text = str(error).strip().rstrip(".")[:200] or type(error).__name__
    return f"It is damaged or of another kind: {text}."
