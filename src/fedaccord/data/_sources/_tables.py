"""What the datasets in one ``.npz`` of their own share: the form and checksums of its arrays."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from .._formats import Arrays, Member, read_npz
from ._source import Form


def archive_form(names: tuple[str, ...], members: Mapping[str, Member]) -> Form:
    """The form of a dataset in one archive.

    :param names: What the file may be called, the preferred first.
    :param members: What it must hold.
    """

    def read(paths: tuple[Path, ...]) -> Arrays:
        return read_npz(paths[0], members)

    held = ", ".join(f"`{name}`" for name in members)
    spelt = " or ".join(f"`{name}`" for name in names)
    return Form(f"{spelt} with {held}", (names,), read)


def arrays_sha256(arrays: Arrays) -> dict[str, str]:
    """SHA-256 of the arrays' names, types, shapes and values, which no compression changes.

    :return: One checksum, under ``"arrays"``.
    """
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        digest.update(f"{name} {little.dtype.str} {little.shape}\n".encode())
        digest.update(little.tobytes())
    return {"arrays": digest.hexdigest()}
