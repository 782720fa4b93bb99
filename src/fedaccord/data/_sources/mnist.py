"""MNIST and Fashion-MNIST: four idx files each, or one ``.npz``."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ...errors import DataFileError
from .._dataset import Dataset
from .._formats import Arrays, idx_header, read_idx
from .._info import DatasetInfo
from ._pictures import npz_form, pictures
from ._source import Form, Published, Source

DIGITS = tuple(str(digit) for digit in range(10))
CLOTHES = (
    *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
    *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
)
MNIST_CITATION = (
    "LeCun, Bottou, Bengio, Haffner. Gradient-Based Learning Applied to Document Recognition. "
    "Proceedings of the IEEE 86(11), 1998."
)
FASHION_CITATION = (
    "Xiao, Rasul, Vollgraf. Fashion-MNIST: a Novel Image Dataset for Benchmarking Machine Learning "
    "Algorithms. arXiv:1708.07747, 2017."
)

FILES = MappingProxyType(
    {
        "x_train": "train-images-idx3-ubyte",
        "y_train": "train-labels-idx1-ubyte",
        "x_test": "t10k-images-idx3-ubyte",
        "y_test": "t10k-labels-idx1-ubyte",
    }
)
"""The original files' names, by the array that each holds."""

_MNIST_MD5 = MappingProxyType(
    {
        "train-images-idx3-ubyte": "6bbc9ace898e44ae57da46a324031adb",
        "train-labels-idx1-ubyte": "a25bea736e30d166cdddb491f175f624",
        "t10k-images-idx3-ubyte": "2646ac647ad5339dbf082846283269ea",
        "t10k-labels-idx1-ubyte": "27ae3e4e09519cfbb04c329615203637",
    }
)
_FASHION_MD5 = MappingProxyType(
    {
        "train-images-idx3-ubyte": "f4a8712d7a061bf5bd6d2ca38dc4d50a",
        "train-labels-idx1-ubyte": "9018921c3c673c538a1fc5bad174d6f9",
        "t10k-images-idx3-ubyte": "8181f5470baa50b63fa0f6fddb340f0a",
        "t10k-labels-idx1-ubyte": "15d484375f8d13e6eb1aabb0c3f46965",
    }
)


def _read(paths: tuple[Path, ...]) -> Arrays:
    return {
        key: read_idx(path, ndim=1 if key.startswith("y") else 3, dtype="uint8")
        for key, path in zip(FILES, paths, strict=True)
    }


def _unpacked_md5(arrays: Arrays) -> dict[str, str]:
    """MD5 of the unpacked idx files; those of ``.gz`` files depend on who packed them."""
    checksums = {}
    for key, name in FILES.items():
        array = arrays[key].astype("u1", copy=False)
        digest = hashlib.md5(idx_header(array), usedforsecurity=False)
        digest.update(array.tobytes())
        checksums[name] = digest.hexdigest()
    return checksums


_IDX = Form(
    f"the four idx files {', '.join(f'`{name}`' for name in FILES.values())}, each with or without "
    f"`.gz`",
    # the names with a dot are those that some archives unpack to
    tuple((n, f"{n}.gz", n.replace("-idx", ".idx")) for n in FILES.values()),
    _read,
)


def _build(
    info: DatasetInfo,
    arrays: Arrays,
    record: Mapping[str, Any],
    *,
    other: str,
    others: Mapping[str, str],
    mean: float,
    std: float,
    class_names: tuple[str, ...],
) -> Dataset:
    # both sets have files of the same names, so one is easily taken for the other
    if not record["verified"] and _unpacked_md5(arrays) == others:
        raise DataFileError(
            f"`{info.name}` must be read from its own files. Those found, "
            f"`{record['files'][0]}`, hold `{other}`."
        )
    return pictures(info, arrays, record, mean=[mean], std=[std], class_names=class_names)


MNIST = Source(
    DatasetInfo(
        name="mnist",
        title="MNIST",
        description="Grey 28x28 pictures of handwritten digits in ten classes.",
        tasks=("digit",),
        kinds=("classes",),
        num_train=60_000,
        num_test=10_000,
        num_clients=None,
        licence="CC-BY-SA-3.0",
        citation=(MNIST_CITATION,),
    ),
    origin="The MNIST database of handwritten digits by LeCun, Cortes and Burges; its licence is "
    "commonly given as CC BY-SA 3.0.",
    folders=("MNIST/raw", "MNIST"),
    forms=(npz_form("mnist", (28, 28)), _IDX),
    published=Published("MD5", _MNIST_MD5, _unpacked_md5),
    build=partial(
        _build,
        other="fashion-mnist",
        others=_FASHION_MD5,
        mean=0.1307,
        std=0.3081,
        class_names=DIGITS,
    ),
)

FASHION_MNIST = Source(
    DatasetInfo(
        name="fashion-mnist",
        title="Fashion-MNIST",
        description="Grey 28x28 pictures of clothing in ten classes.",
        tasks=("item",),
        kinds=("classes",),
        num_train=60_000,
        num_test=10_000,
        num_clients=None,
        licence="MIT",
        citation=(FASHION_CITATION,),
    ),
    origin="Fashion-MNIST by Zalando Research; Debian's package `dataset-fashion-mnist` puts it "
    "into `/usr/share/datasets/fashion-mnist`, which can be the `data_dir`.",
    folders=("FashionMNIST/raw", "FashionMNIST"),
    forms=(npz_form("fashion-mnist", (28, 28)), _IDX),
    published=Published("MD5", _FASHION_MD5, _unpacked_md5),
    build=partial(
        _build,
        other="mnist",
        others=_MNIST_MD5,
        mean=0.2860,
        std=0.3530,
        class_names=CLOTHES,
    ),
)
