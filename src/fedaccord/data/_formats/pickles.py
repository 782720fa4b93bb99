"""Pickles of plain data, read as data: no module is imported and nothing is called.

Pickle is a program for a small stack machine. Only those instructions are known here that build
numbers, texts, lists, tuples and dictionaries, and one fixed way to build NumPy arrays; whatever
else a file asks for is refused. The machine holds references only, so what it builds is bounded by
the file's length.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable
from typing import Any

from ...errors import DataFileError
from ._pickled_arrays import GLOBALS, Global, Shell, apply, finished, set_state

_MARK = object()
_VALUES = {
    *("NONE", "NEWTRUE", "NEWFALSE", "INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1"),
    *("FLOAT", "BINFLOAT", "STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "BINUNICODE"),
    *("SHORT_BINUNICODE", "BINUNICODE8", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"),
}
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_EMPTY: dict[str, Callable[[], Any]] = {
    "EMPTY_DICT": dict,
    "EMPTY_LIST": list,
    "EMPTY_TUPLE": tuple,
}
_SHORT_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_PUT, _GET = ("PUT", "BINPUT", "LONG_BINPUT"), ("GET", "BINGET", "LONG_BINGET")


def plain_pickle(content: bytes, name: str) -> Any:
    """Read a pickle of plain data and NumPy arrays, of any protocol, without executing it.

    :param content: The pickle's bytes.
    :param name: The file, for messages.
    :return: Numbers, texts (``str``, also for the byte strings of Python 2), ``bytes``, lists,
        tuples, dictionaries with texts or numbers as keys, and arrays.
    :raises DataFileError: If it is damaged or asks for anything else.
    """
    machine = _Machine()
    try:
        for opcode, argument, _ in pickletools.genops(content):
            if opcode.name == "STOP":
                return finished(machine.result())
            machine.step(opcode.name, argument)
    # Python warns of odd escapes in texts, which is an error to those who make it one
    except (ValueError, OverflowError, DeprecationWarning) as error:
        raise DataFileError(
            f"`{name}` must be a pickle of plain data and arrays. {error} Nothing was executed."
        ) from error
    raise AssertionError("`genops` ends with STOP or raises")


class _Machine:
    """The stack and the memo; every instruction checks what it takes from them."""

    def __init__(self) -> None:
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}

    def step(self, name: str, argument: Any) -> None:
        """Carry out one instruction.

        :raises ValueError: If it is not known here or does not fit what is on the stack.
        """
        if name in ("PROTO", "FRAME"):
            return
        if name in _VALUES:
            self._push(_CONSTANTS.get(name, argument))
        elif name in _EMPTY:
            self._push(_EMPTY[name]())
        elif name == "MARK":
            self._push(_MARK)
        elif name in _SHORT_TUPLES:
            self._push(tuple(self._pop(_SHORT_TUPLES[name])))
        elif name == "TUPLE":
            self._push(tuple(self._pop_to_mark()))
        elif name == "LIST":
            self._push(self._pop_to_mark())
        elif name == "DICT":
            self._push(_with_items({}, self._pop_to_mark()))
        elif name in ("APPEND", "APPENDS"):
            values = self._pop(1) if name == "APPEND" else self._pop_to_mark()
            self._top(list).extend(values)
        elif name in ("SETITEM", "SETITEMS"):
            values = self._pop(2) if name == "SETITEM" else self._pop_to_mark()
            _with_items(self._top(dict), values)
        elif name in (*_PUT, "MEMOIZE"):
            key = len(self._memo) if name == "MEMOIZE" else argument
            self._memo[key] = self._top(object)
        elif name in _GET:
            if argument not in self._memo:
                raise ValueError(f"It refers to entry {argument}, which it has not stored.")
            self._push(self._memo[argument])
        elif name in ("GLOBAL", "STACK_GLOBAL"):
            self._push(_named(self._pop(2) if name == "STACK_GLOBAL" else argument.split(" ", 1)))
        elif name == "REDUCE":
            function, arguments = self._pop(2)
            self._push(apply(function, arguments))
        elif name == "BUILD":
            (state,) = self._pop(1)
            set_state(self._top(Shell), state)
        else:
            raise ValueError(f"It uses the instruction {name}, which plain data do not need.")

    def result(self) -> Any:
        """What is left at the end, one value."""
        (value,) = self._pop(1)
        if self._stack:
            raise ValueError("It leaves more than one value.")
        return value

    def _push(self, value: Any) -> None:
        self._stack.append(value)

    def _pop(self, count: int) -> list[Any]:
        values = self._stack[-count:]
        if len(values) < count or any(value is _MARK for value in values):
            raise ValueError("It takes more from its stack than is there.")
        del self._stack[-count:]
        return values

    def _pop_to_mark(self) -> list[Any]:
        for position in range(len(self._stack) - 1, -1, -1):
            if self._stack[position] is _MARK:
                values = self._stack[position + 1 :]
                del self._stack[position:]
                return values
        raise ValueError("It takes more from its stack than is there.")

    def _top(self, kind: type) -> Any:
        if not self._stack or self._stack[-1] is _MARK or not isinstance(self._stack[-1], kind):
            raise ValueError(
                f"It needs a {kind.__name__.lower()} on its stack, which is not there."
            )
        return self._stack[-1]


def _with_items(target: dict[Any, Any], flat: list[Any]) -> dict[Any, Any]:
    keys, values = flat[::2], flat[1::2]
    if len(keys) != len(values) or not all(isinstance(key, str | bytes | int) for key in keys):
        raise ValueError("Its dictionaries must have texts or numbers as keys, each with a value.")
    target.update(zip(keys, values, strict=True))
    return target


def _named(parts: list[Any]) -> Global:
    module, name = parts if len(parts) == 2 else (parts, "")
    if not (isinstance(module, str) and isinstance(name, str)) or (module, name) not in GLOBALS:
        raise ValueError(f"It asks for `{module}.{name}`, which is refused.")
    return GLOBALS[module, name]
