"""How pickles spell NumPy arrays, taken apart without NumPy's own reconstruction.

Python 2 and protocols up to 4 write ``_reconstruct(ndarray, (0,), b"b")`` and then a state
``(version, shape, dtype, fortran, bytes)``; protocol 5 writes ``_frombuffer(bytes, dtype, shape,
order)``. A type is ``dtype("u1", False, True)`` with a state that holds the byte order. Protocols
0 to 2 written by Python 3 spell bytes as ``_codecs.encode(text, "latin1")``.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np


class Global(enum.Enum):
    """A name that a pickle may ask for; what it stands for is never imported."""

    RECONSTRUCT = enum.auto()
    FROM_BUFFER = enum.auto()
    NDARRAY = enum.auto()
    DTYPE = enum.auto()
    ENCODE = enum.auto()
    BYTES = enum.auto()
    BYTEARRAY = enum.auto()


GLOBALS: Mapping[tuple[str, str], Global] = MappingProxyType(
    {
        ("numpy.core.multiarray", "_reconstruct"): Global.RECONSTRUCT,
        ("numpy._core.multiarray", "_reconstruct"): Global.RECONSTRUCT,
        ("numpy.core.numeric", "_frombuffer"): Global.FROM_BUFFER,
        ("numpy._core.numeric", "_frombuffer"): Global.FROM_BUFFER,
        ("numpy", "ndarray"): Global.NDARRAY,
        ("numpy", "dtype"): Global.DTYPE,
        ("_codecs", "encode"): Global.ENCODE,
        ("__builtin__", "bytes"): Global.BYTES,
        ("builtins", "bytes"): Global.BYTES,
        ("__builtin__", "bytearray"): Global.BYTEARRAY,
        ("builtins", "bytearray"): Global.BYTEARRAY,
    }
)

_KINDS = "biuf"


@dataclass
class Shell:
    """An array or a type that is still to get its state.

    :param value: The type code while it is a type, ``None`` while it is an array without state,
        and the array afterwards.
    """

    value: Any
    is_type: bool


def apply(function: Any, arguments: Any) -> Any:
    """What a call in a pickle stands for.

    :raises ValueError: If it is none of the known calls.
    """
    match function, arguments:
        case Global.RECONSTRUCT, (Global.NDARRAY, _, _):
            return Shell(None, is_type=False)
        case Global.FROM_BUFFER, (raw, dtype, shape, "C" | "F" as order):
            return Shell(_array(raw, dtype, shape, order), is_type=False)
        case Global.DTYPE, (str(code), bool() | 0 | 1, bool() | 0 | 1):
            return Shell(_type(code), is_type=True)
        case Global.ENCODE, (str(text), "latin1" | "latin-1"):
            return text.encode("latin-1")
        case ((Global.BYTES | Global.BYTEARRAY), ()):
            return b""
        case Global.BYTEARRAY, (bytes(raw),):
            return raw
    raise ValueError("It calls something that plain arrays do not need.")


def set_state(shell: Shell, state: Any) -> None:
    """Give an array its values, or a type its byte order.

    :raises ValueError: If the state is not such a one.
    """
    match shell.is_type, state:
        case True, (3 | 4, "<" | ">" | "|" | "=" as order, None, None, None, *_):
            shell.value = shell.value.newbyteorder(order)
        case False, (1, shape, dtype, bool() | 0 | 1 as fortran, raw):
            shell.value = _array(raw, dtype, shape, "F" if fortran else "C")
        case _:
            raise ValueError("It describes an array in a way that is not known.")


def finished(value: Any) -> Any:
    """Put the arrays in the place of their shells, in the value itself and one level down.

    :raises ValueError: If an array was left without values.
    """
    if isinstance(value, dict):
        return {key: _unwrapped(entry) for key, entry in value.items()}
    return _unwrapped(value)


def _unwrapped(value: Any) -> Any:
    if not isinstance(value, Shell):
        return value
    if value.is_type or value.value is None:
        raise ValueError("It holds an array without values.")
    return value.value


def _type(code: str) -> np.dtype[Any]:
    if len(code) != 2 or code[0] not in _KINDS or code[1] not in "1248":
        raise ValueError(f"Its arrays must hold plain numbers. Got type {code!r}.")
    try:
        return np.dtype(code)
    except TypeError as error:
        raise ValueError(f"Its arrays must hold plain numbers. Got type {code!r}.") from error


def _array(raw: Any, dtype: Any, shape: Any, order: Any) -> np.ndarray[Any, Any]:
    content = raw.encode("latin-1") if isinstance(raw, str) else raw
    if not isinstance(content, bytes | bytearray) or not isinstance(dtype, Shell):
        raise ValueError("Its arrays must hold plain numbers as bytes.")
    sized = isinstance(shape, tuple) and all(type(size) is int and size >= 0 for size in shape)
    if not sized or not dtype.is_type or len(shape) > 32:
        raise ValueError("It describes an array in a way that is not known.")
    needed = math.prod(shape) * dtype.value.itemsize
    if needed != len(content):
        raise ValueError(
            f"An array of shape {shape} needs {needed:,} bytes. It holds {len(content):,}."
        )
    values = np.frombuffer(content, dtype.value).reshape(shape, order=order)
    return values.astype(dtype.value.newbyteorder("="))
