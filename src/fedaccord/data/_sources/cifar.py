"""CIFAR-10 and CIFAR-100."""

from __future__ import annotations

import hashlib
from functools import partial
from types import MappingProxyType

import numpy as np

from .._formats import Arrays, channel_planes
from .._info import DatasetInfo
from ._cifar_forms import cifar_forms
from ._cifar_names import CIFAR10_CLASSES, CIFAR100_COARSE, CIFAR100_FINE
from ._pictures import of_split, pictures
from ._source import Published, Source

CITATION = (
    "Krizhevsky. Learning Multiple Layers of Features from Tiny Images. Technical report, "
    "University of Toronto, 2009."
)
_LICENCE = "No licence is stated; the authors ask that the technical report be cited."
_BATCH = 10_000  # pictures in one of CIFAR-10's files


def _records_sha1(arrays: Arrays, split: str, labels: tuple[str, ...], rows: slice) -> str:
    """SHA-1 of the binary version's records."""
    # bytes before they are put beside the pixels, which would take the labels' type
    columns = [arrays[of_split(label, split)][rows, None].astype("u1") for label in labels]
    records = np.concatenate([*columns, channel_planes(arrays[f"x_{split}"][rows])], axis=1)
    return hashlib.sha1(records.tobytes(), usedforsecurity=False).hexdigest()


def _cifar10_sha1(arrays: Arrays) -> dict[str, str]:
    checksums = {
        f"data_batch_{batch + 1}.bin": _records_sha1(
            arrays, "train", ("y",), slice(batch * _BATCH, (batch + 1) * _BATCH)
        )
        for batch in range(5)
    }
    return checksums | {"test_batch.bin": _records_sha1(arrays, "test", ("y",), slice(None))}


def _cifar100_sha1(arrays: Arrays) -> dict[str, str]:
    if "y_train_coarse" not in arrays or "y_test_coarse" not in arrays:
        return {}  # the published files hold both labels
    labels = ("y_coarse", "y")
    return {
        f"{split}.bin": _records_sha1(arrays, split, labels, slice(None))
        for split in ("train", "test")
    }


CIFAR10 = Source(
    DatasetInfo(
        name="cifar10",
        title="CIFAR-10",
        description="Colour 32x32 pictures of animals and vehicles in ten classes.",
        tasks=("object",),
        kinds=("classes",),
        num_train=50_000,
        num_test=10_000,
        num_clients=None,
        licence=_LICENCE,
        citation=(CITATION,),
    ),
    origin="CIFAR-10 by Krizhevsky, Nair and Hinton, University of Toronto.",
    folders=(),
    forms=cifar_forms(
        "cifar-10",
        binary=(*(f"data_batch_{batch}.bin" for batch in range(1, 6)), "test_batch.bin"),
        python=(*(f"data_batch_{batch}" for batch in range(1, 6)), "test_batch"),
        keys=("labels",),
        labels=("y",),
    ),
    published=Published(
        "SHA-1",
        MappingProxyType(
            {
                "data_batch_1.bin": "aadd24acce27caa71bf4b10992e9e7b2d74c2540",
                "data_batch_2.bin": "c0ba65cce70568cd57b4e03e9ac8d2a5367c1795",
                "data_batch_3.bin": "1dd00a74ab1d17a6e7d73e185b69dbf31242f295",
                "data_batch_4.bin": "aab85764eb3584312d3c7f65fd2fd016e36a258e",
                "data_batch_5.bin": "26e2849e66a845b7f1e4614ae70f4889ae604628",
                "test_batch.bin": "67eb016db431130d61cd03c7ad570b013799c88c",
            }
        ),
        _cifar10_sha1,
    ),
    build=partial(
        pictures,
        mean=(0.4914, 0.4822, 0.4465),
        std=(0.2470, 0.2435, 0.2616),
        class_names=CIFAR10_CLASSES,
    ),
)


def _cifar100(name: str, title: str, kind: str, labels: str, classes: tuple[str, ...]) -> Source:
    return Source(
        DatasetInfo(
            name=name,
            title=title,
            description=f"Colour 32x32 pictures of things and beings in {len(classes)} {kind}.",
            tasks=("object",),
            kinds=("classes",),
            num_train=50_000,
            num_test=10_000,
            num_clients=None,
            licence=_LICENCE,
            citation=(CITATION,),
        ),
        origin="CIFAR-100 by Krizhevsky, Nair and Hinton, University of Toronto.",
        folders=() if name == "cifar100" else ("cifar100",),
        forms=cifar_forms(
            "cifar-100",
            binary=("train.bin", "test.bin"),
            python=("train", "test"),
            keys=("coarse_labels", "fine_labels"),
            labels=("y_coarse", "y"),
            extra=("y_train_coarse", "y_test_coarse"),
        ),
        published=Published(
            "SHA-1",
            MappingProxyType(
                {
                    "train.bin": "e207cd2e05b73b1393c74c7f5e7bea451d63e08e",
                    "test.bin": "8fb6623e830365ff53cf14adec797474f5478006",
                }
            ),
            _cifar100_sha1,
        ),
        build=partial(
            pictures,
            mean=(0.5071, 0.4866, 0.4409),
            std=(0.2673, 0.2564, 0.2762),
            class_names=classes,
            labels=labels,
        ),
    )


CIFAR100 = _cifar100("cifar100", "CIFAR-100", "classes", "y", CIFAR100_FINE)
CIFAR100_BY_SUPERCLASS = _cifar100(
    "cifar100-coarse", "CIFAR-100, superclasses", "superclasses", "y_coarse", CIFAR100_COARSE
)
