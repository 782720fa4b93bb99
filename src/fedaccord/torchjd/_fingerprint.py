"""A module of TorchJD as a value: equal parts, equal fingerprint."""

from __future__ import annotations

import types
from collections.abc import Hashable, Mapping, Set

from torch import Tensor

PLAIN = (type(None), bool, int, float, complex, str, bytes)
BY_IDENTITY = (type, types.FunctionType, types.BuiltinFunctionType, types.MethodType)


def fingerprint(thing: object) -> Hashable:
    """Everything a module is made of, as nested tuples that compare and hash by content.

    :param thing: A module, or a part of one: hyperparameters, tensors, modules, solvers. Functions
        and classes count by identity; other objects are taken apart as for a pickle.
    """
    if isinstance(thing, (*PLAIN, *BY_IDENTITY)):
        return thing
    if isinstance(thing, Tensor):
        entries = tuple(thing.detach().cpu().reshape(-1).tolist())
        return "tensor", str(thing.dtype), tuple(thing.shape), entries
    if isinstance(thing, Mapping):
        return tuple((key, fingerprint(value)) for key, value in thing.items())
    if isinstance(thing, list | tuple):
        return tuple(map(fingerprint, thing))
    if isinstance(thing, Set):
        return frozenset(map(fingerprint, thing))
    return fingerprint(thing.__reduce_ex__(4))
