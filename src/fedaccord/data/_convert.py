"""Arrays, tensors and lists as the tensors a model takes, or an error that names the row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Array: TypeAlias = npt.NDArray[Any] | Tensor | Sequence[Any]


def as_tensor(array: Array, name: str, dtype: torch.dtype) -> Tensor:
    """Convert floating-point values to ``dtype``, integers and booleans to int64.

    A tensor of the right type already is shared; everything else is new memory.

    :param array: ``[n, ...]``.
    :param name: What to call it in errors, for example ``"inputs"``.
    :param dtype: A floating-point type.
    :raises ValueError: If a value is no real number, NaN, infinite or beyond its type's range, or
        the inputs are unscaled ``uint8``.
    """
    tensor = _taken(array, name) if isinstance(array, Tensor) else _read(array, name)
    if tensor.dtype == torch.uint8 and name == "inputs":
        raise ValueError(
            "The inputs are `uint8`, which no layer takes. Scale pixels first: "
            "`x.astype('float32') / 255`; token numbers need `int64`."
        )
    if not tensor.is_floating_point():
        if tensor.dtype == torch.uint64:  # torch compares none of these
            return _read(tensor.cpu().numpy(), name)
        return tensor.to(torch.int64)
    finite = torch.isfinite(tensor)
    if not finite.all():
        raise ValueError(f"The {name} must be finite. Row {_first(~finite)} holds NaN or infinity.")
    converted = tensor.to(dtype)
    finite = torch.isfinite(converted)
    if not finite.all():
        row = _first(~finite)
        raise ValueError(
            f"The {name} must fit into {dtype}. Row {row} holds {tensor[~finite][0].item():g}. "
            "Scale the values, or pass a wider `dtype`."
        )
    return converted


def as_array(array: Array, name: str) -> npt.NDArray[Any]:
    """Turn what a user calls an array into a NumPy array, with nothing lost on the way.

    :param array: An array, a tensor, or a nested list of them or of numbers.
    :param name: What to call it in errors.
    :raises ValueError: If rows differ in shape, or values are masked.
    """
    if isinstance(array, Tensor):
        return array.detach().cpu().numpy()
    if isinstance(array, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(array)
        if mask.any():
            raise ValueError(
                f"The {name} must have no masked value. Row {_first(mask)} holds one. "
                "Fill or leave out such rows first."
            )
    if isinstance(array, Sequence) and array and all(isinstance(row, Tensor) for row in array):
        shapes = {tuple(row.shape) for row in array}
        if len(shapes) == 1:
            return torch.stack(list(array)).detach().cpu().numpy()
    try:
        return np.asarray(array)
    except ValueError as error:
        raise ValueError(
            f"The rows of the {name} must have the same shape. NumPy says: {error}"
        ) from error


def _taken(tensor: Tensor, name: str) -> Tensor:
    if tensor.is_complex():
        raise _not_real(name, tensor.dtype)
    if tensor.layout != torch.strided:
        raise ValueError(f"The {name} must be dense. Got {tensor.layout}. Use `x.to_dense()`.")
    return tensor.detach()


def _read(array: Array, name: str) -> Tensor:
    values = as_array(array, name)
    if values.dtype == object:
        values = _numbers_of(values, name)
    if values.dtype.kind == "c":
        raise _not_real(name, values.dtype)
    if values.dtype.kind not in "fiub":
        raise ValueError(
            f"The {name} must be numbers. Got dtype {values.dtype}. {_advice(values, name)}"
        )
    if values.dtype.kind == "u" and values.dtype.itemsize == 8:
        above = values > np.iinfo(np.int64).max
        if above.any():
            raise ValueError(
                f"The {name} must fit into int64, at most {np.iinfo(np.int64).max}. "
                f"Row {_first(above)} holds {values[above][0]}."
            )
    if values.dtype.kind == "f" and values.dtype.itemsize > 8:
        values = values.astype(np.float64)  # torch has no longer type
    # torch neither knows NumPy's wide unsigned types nor other byte orders
    kept = values.dtype.kind == "f" or values.dtype == np.uint8
    return torch.tensor(values.astype(values.dtype.newbyteorder("=") if kept else np.int64))


def _numbers_of(values: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
    """The numbers in an array of objects, as an array of their common type."""
    rows = values.reshape(len(values), -1) if values.ndim else values.reshape(1, 1)
    for row, entries in enumerate(rows):
        for entry in entries:
            if not isinstance(entry, int | float | np.number | np.bool_):
                raise ValueError(
                    f"The {name} must be numbers. Row {row} holds {str(entry)[:40]!r}, "
                    f"a `{type(entry).__name__}`. {_advice(values, name)}"
                )
    common = np.array(values.tolist())
    if common.dtype == object:
        raise ValueError(f"The {name} must fit into int64 or float64. Got larger integers.")
    return common


def _advice(values: npt.NDArray[Any], name: str) -> str:
    if values.dtype.kind in "mM":
        return "Turn times into numbers, for example days since the first."
    if name == "inputs":
        return (
            "`clients_from_frame` takes tables with text; `encode_classes(values)` numbers "
            "the distinct values of an array."
        )
    return "Encode labels with `codes, class_names = encode_classes(values)`."


def _not_real(name: str, dtype: object) -> ValueError:
    return ValueError(
        f"The {name} must be real numbers. Got dtype {dtype}. Use real and imaginary part, or "
        "absolute value and angle, as two inputs."
    )


def _first(bad: Tensor | npt.NDArray[np.bool_]) -> int:
    """The first row with an entry that is true."""
    return int(np.argwhere(np.asarray(bad))[0, 0])
