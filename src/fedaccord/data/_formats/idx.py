"""The idx format of MNIST: a magic number, the sizes, then the values, all big-endian."""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import DataFileError
from .bounded import LIMIT, opened, read_up_to

_DTYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_CODES = {np.dtype(dtype).newbyteorder("="): code for code, dtype in _DTYPES.items()}


def read_idx(
    path: Path, *, ndim: int | None = None, dtype: str | None = None, limit: int = LIMIT
) -> npt.NDArray[Any]:
    """Read an idx file, plain or gzipped, whatever its name.

    :param path: The file.
    :param ndim: The number of dimensions it must have; any if ``None``.
    :param dtype: The type its values must have, such as ``"uint8"``; any if ``None``.
    :param limit: Bytes that the values may take.
    :return: The values in the machine's byte order; memory of its own.
    :raises DataFileError: If it is no such file, is damaged, or has more or fewer values than its
        header says.
    """
    with opened(path) as stream:
        magic = stream.read(4)
        if len(magic) < 4 or magic[:2] != b"\0\0" or magic[2] not in _DTYPES or not magic[3]:
            raise DataFileError(
                f"`{path}` must be an idx file, which starts with 0, 0, a type code "
                f"({', '.join(map(str, _DTYPES))}) and a number of dimensions. "
                f"It starts with {list(magic)}."
            )
        found = np.dtype(_DTYPES[magic[2]])
        native = found.newbyteorder("=")
        if (ndim or magic[3]) != magic[3] or np.dtype(dtype or native) != native:
            raise DataFileError(
                f"`{path}` must hold {dtype or 'any'} values in {ndim or 'any'} dimensions. "
                f"Its header says {native} in {magic[3]}."
            )
        header = stream.read(4 * magic[3])
        if len(header) < 4 * magic[3]:
            raise DataFileError(
                f"`{path}` must state {magic[3]} sizes after its magic number. It ends before."
            )
        shape = struct.unpack(f">{magic[3]}I", header)
        # the sizes say how much to read, so that no more is ever unpacked
        size = math.prod(shape) * found.itemsize
        if size > limit:
            raise DataFileError(
                f"`{path}` must hold at most {limit:,} bytes of values. "
                f"Its header announces shape {shape}, {size:,} bytes."
            )
        content = read_up_to(stream, size, path)
    if len(content) != size:
        raise DataFileError(
            f"`{path}` must hold {size:,} bytes of values, for shape {shape}. "
            f"It ends after {len(content):,}."
        )
    return np.frombuffer(content, found).reshape(shape).astype(native)


def idx_header(array: npt.NDArray[Any]) -> bytes:
    """Return the magic number and the sizes with which the array's idx file starts.

    :param array: Of one of the types that the format knows.
    """
    code = _CODES[array.dtype.newbyteorder("=")]
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, code, array.ndim, *array.shape)
