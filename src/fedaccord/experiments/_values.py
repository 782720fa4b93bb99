"""Plain values, as a file or a command line gives them, turned into what an argument wants."""

from __future__ import annotations

import collections.abc
import types
from collections.abc import Callable
from typing import Any, Literal, TypeAlias, Union, get_args, get_origin

Special: TypeAlias = Callable[[Any, Any], Any]
"""Tried first on every (value, hint): the converted value, or ``NotImplemented``."""


class _MismatchError(Exception):
    """A value is not of the wanted kind."""


def convert(value: Any, hint: Any, *, name: str, special: Special | None = None) -> Any:
    """Check a plain value against a type hint, and convert it where nothing can be lost.

    Integers become floats where a float is wanted, and lists become tuples.

    :param value: A number, a word, a truth value, ``None``, a list of those, or a mapping.
    :param hint: A resolved annotation made of ``int``, ``float``, ``bool``, ``str``, ``None``,
        ``Literal``, ``Sequence[...]``, ``tuple[..., ...]`` and unions of those.
    :param name: What the value is for, for the message.
    :param special: Conversion of further kinds.
    :raises ValueError: If the value is of another kind.
    """
    try:
        return _convert(value, hint, special)
    except _MismatchError:
        raise ValueError(f"`{name}` must be {describe(hint)}. Got {value!r}.") from None


def describe(hint: Any) -> str:
    """Say in words what a type hint admits, for example ``"a number or a list of numbers"``."""
    if is_union(hint):
        return " or ".join(dict.fromkeys(describe(part) for part in get_args(hint)))
    if get_origin(hint) is Literal:
        return " or ".join(repr(choice) for choice in get_args(hint))
    if _is_sequence(hint):
        return f"a list of {_PLURALS.get(get_args(hint)[0], 'values')}"
    words = {
        int: "a whole number",
        float: "a number",
        bool: "true or false",
        str: "a word",
        type(None): "none",
    }
    return words.get(hint, f"a {getattr(get_origin(hint) or hint, '__name__', 'value').lower()}")


_PLURALS: dict[Any, str] = {int: "whole numbers", float: "numbers", str: "words"}


def is_union(hint: Any) -> bool:
    """Whether a type hint is ``X | Y``."""
    return get_origin(hint) in (Union, types.UnionType)


def _is_sequence(hint: Any) -> bool:
    return get_origin(hint) in (collections.abc.Sequence, tuple, list)


def _convert(value: Any, hint: Any, special: Special | None) -> Any:
    if special is not None:
        converted = special(value, hint)
        if converted is not NotImplemented:
            return converted
    if is_union(hint):
        for part in get_args(hint):
            try:
                return _convert(value, part, special)
            except _MismatchError:
                continue
        raise _MismatchError
    if get_origin(hint) is Literal:
        # 1 == True in Python, but not on a command line
        matches = [c for c in get_args(hint) if c == value and type(c) is type(value)]
        return matches[0] if matches else _refuse()
    if _is_sequence(hint):
        if not isinstance(value, list | tuple):
            raise _MismatchError
        return tuple(_convert(item, get_args(hint)[0], special) for item in value)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if hint is float:
        try:
            return float(value) if number else _refuse()
        except OverflowError:  # an integer that no float is near to
            raise _MismatchError from None
    if hint is int:
        return value if number and isinstance(value, int) else _refuse()
    if hint in (bool, str, type(None)):
        return value if isinstance(value, hint) else _refuse()
    raise _MismatchError


def _refuse() -> Any:
    raise _MismatchError
