"""Reading no more than was announced: gzip streams and members of tar archives."""

from __future__ import annotations

import contextlib
import gzip
import io
import tarfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Protocol

from ...errors import DataFileError

LIMIT = 2**30
"""Bytes that one file, array or archive may unpack to; the largest dataset here has 184 MB."""

_SLICE = 2**20


class Stream(Protocol):
    """What can be read from."""

    def read(self, size: int = -1, /) -> bytes:
        """At most ``size`` bytes; none at the end."""
        ...


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Stream]:
    """Open a file for reading, through gzip if it is compressed, whatever its name.

    :param path: The file.
    :raises DataFileError: If the compressed data are damaged or end early, also while reading.
    """
    try:
        with path.open("rb") as raw:
            compressed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            if not compressed:
                yield raw
                return
            with gzip.GzipFile(fileobj=raw) as unpacked:
                yield unpacked
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataFileError(f"`{path}` must be whole gzip data. It is damaged: {error}.") from error


def read_up_to(stream: Stream, limit: int, path: Path) -> bytes:
    """Read a stream to its end, which also verifies a gzip checksum.

    :param stream: What :func:`opened` gives.
    :param limit: Bytes allowed.
    :param path: The file, for the message.
    :raises DataFileError: If there is more.
    """
    content = stream.read(limit)
    while len(content) < limit and (more := stream.read(limit - len(content))):
        content += more
    if stream.read(1):
        raise DataFileError(f"`{path}` must hold at most {limit:,} bytes unpacked. It holds more.")
    return content


def read_file(path: Path, limit: int = LIMIT) -> bytes:
    """Read a file, unpacked if it is gzip data.

    :raises DataFileError: If it is damaged or holds more than ``limit`` bytes unpacked.
    """
    with opened(path) as stream:
        return read_up_to(stream, limit, path)


def read_members(
    path: Path, names: Sequence[str], *, folder: str, limit: int, total: int = LIMIT
) -> dict[str, bytes]:
    """Read named members of a tar archive into memory; nothing is written to the disk.

    Other members are passed over, whatever they are called and whatever they are.

    :param path: The archive, with or without gzip.
    :param names: Names of the members, without folder.
    :param folder: The folder in the archive that may hold them; they may also lie at its root.
    :param limit: Bytes that a member may have.
    :param total: Bytes that the whole archive may unpack to.
    :raises DataFileError: If a member is missing, comes twice, is no regular file or is too large,
        or the archive is damaged or too large.
    """
    found: dict[str, bytes] = {}
    with opened(path) as stream:
        counted = _Counted(stream, total, path)
        try:
            # reading as a stream: no seeking back, so a hostile offset cannot send us in circles
            with tarfile.open(fileobj=counted, mode="r|") as archive:
                for member in archive:
                    # passing over a member goes through all that it announces, there or not
                    if not 0 <= member.size <= total:
                        raise _too_large(member.name, path, total, member.size)
                    place = PurePosixPath(member.name)
                    if place.name in names and str(place.parent) in (".", folder):
                        content = _content(archive, member, found, limit, path)
                        found[place.name] = content
            counted.exhaust()
        except (tarfile.TarError, ValueError, OverflowError) as error:
            raise DataFileError(f"`{path}` must be a tar archive. {error}.") from error
    if missing := [name for name in names if name not in found]:
        raise DataFileError(f"`{path}` must hold `{folder}/{missing[0]}`, which is missing.")
    return found


def _content(
    archive: tarfile.TarFile,
    member: tarfile.TarInfo,
    found: dict[str, bytes],
    limit: int,
    path: Path,
) -> bytes:
    name = PurePosixPath(member.name).name
    if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE):
        raise DataFileError(
            f"`{name}` in `{path}` must be a regular file. It is a link, device or folder."
        )
    if name in found:
        raise DataFileError(f"`{path}` must hold `{name}` once. It comes twice.")
    if member.size > limit:
        raise _too_large(name, path, limit, member.size)
    stream = archive.extractfile(member)
    content = b"" if stream is None else stream.read()
    if len(content) != member.size:
        raise DataFileError(
            f"`{name}` in `{path}` must have {member.size:,} bytes. It ends after {len(content):,}."
        )
    return content


def _too_large(name: str, path: Path, limit: int, size: int) -> DataFileError:
    return DataFileError(f"`{name}` in `{path}` must have at most {limit:,} bytes. Got {size:,}.")


class _Counted(io.RawIOBase):
    """A stream that refuses to give more than it may."""

    def __init__(self, stream: Stream, limit: int, path: Path) -> None:
        super().__init__()
        self._stream, self._limit, self._path, self._count = stream, limit, path, 0

    def read(self, size: int = -1, /) -> bytes:
        content = self._stream.read(_SLICE if size < 0 else size)
        self._count += len(content)
        if self._count > self._limit:
            raise DataFileError(
                f"`{self._path}` must unpack to at most {self._limit:,} bytes. It holds more."
            )
        return content

    def exhaust(self) -> None:
        """Read to the end, where gzip keeps its checksum."""
        while self.read(_SLICE):
            pass
