"""Files that appear whole or not at all, and errors that say which file it was."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a path beside ``path`` to write to; at the end, what is there takes the file's place.

    If the block raises, the old file stays and nothing is left beside it.

    :param path: The file.
    :raises OSError: If it cannot be written, as on a full disk; the error names the file.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with naming(path):
            yield temporary
            with temporary.open("rb") as file:
                os.fsync(file.fileno())
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that it appears complete, or the old one stays.

    :raises OSError: If it cannot be written; the error names the file.
    """
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def leftovers(folder: Path) -> list[Path]:
    """What killed processes were writing in a folder when they ended.

    :param folder: A folder that nobody else is writing in.
    """
    return [file for file in folder.iterdir() if re.fullmatch(r"\..+\.\d+\.tmp", file.name)]


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Let errors of the operating system name a file, which those of an open file do not."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error
