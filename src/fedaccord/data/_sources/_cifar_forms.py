"""The forms of CIFAR's files: the binary version, the Python version, or one ``.npz``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import numpy as np

from .._formats import Arrays, binary_batch, python_batch, read_file, read_members
from ._pictures import npz_form, of_split
from ._source import Form

_BATCH_LIMIT = 2**28  # the largest file, CIFAR-100's pickled training part, has 155 MB

Batch = Callable[[bytes, str], Arrays]


def _joined(batches: Iterable[Arrays], labels: tuple[str, ...]) -> Arrays:
    """Put training batches and, last, the test batch together."""
    *train, test = batches
    arrays: Arrays = {}
    for split, parts in (("train", train), ("test", [test])):
        arrays[f"x_{split}"] = np.concatenate([part["pixels"] for part in parts])
        columns = np.concatenate([part["labels"] for part in parts])
        for column, label in enumerate(labels):
            arrays[of_split(label, split)] = columns[:, column].copy()
    return arrays


def cifar_forms(
    name: str,
    *,
    binary: tuple[str, ...],
    python: tuple[str, ...],
    keys: tuple[str, ...],
    labels: tuple[str, ...],
    extra: tuple[str, ...] = (),
) -> tuple[Form, ...]:
    """The forms of one of the two sets.

    :param name: ``"cifar-10"`` or ``"cifar-100"``, with which the usual names begin.
    :param binary: The files of the binary version, the test part last.
    :param python: The files of the Python version, likewise.
    :param keys: The labels in the Python version's dictionaries.
    :param labels: The arrays they become, in the order that the binary version has them.
    :param extra: Arrays of labels that the ``.npz`` may hold besides.
    """
    # folder and archive as the authors name them; the two sets differ in their habits
    short = name.replace("-", "", 1)
    python_folder = f"{name}-batches-py" if len(python) > 2 else f"{name}-python"
    binary_folder = f"{name}-batches-bin" if len(binary) > 2 else f"{name}-binary"
    read_python: Batch = partial(python_batch, label_keys=keys)
    read_binary: Batch = partial(binary_batch, label_bytes=len(keys))
    forms = [npz_form(short, (32, 32, 3), optional=extra)]
    for version, folder, names, read in (
        ("binary", binary_folder, binary, read_binary),
        ("Python", python_folder, python, read_python),
    ):
        archive = f"{name}-{version.lower()}.tar.gz"
        listed = f"`{names[0]}` to `{names[-1]}`"
        forms.append(
            Form(
                f"the {version} version's files {listed}, directly or in `{folder}`",
                tuple((file, f"{folder}/{file}") for file in names),
                partial(_read_files, read=read, labels=labels),
            )
        )
        forms.append(
            Form(
                f"the {version} version's archive `{archive}`",
                ((archive, archive.removesuffix(".gz")),),
                partial(_read_archive, read=read, labels=labels, names=names, folder=folder),
            )
        )
    return tuple(forms)


def _read_files(paths: tuple[Path, ...], *, read: Batch, labels: tuple[str, ...]) -> Arrays:
    return _joined((read(read_file(path, _BATCH_LIMIT), str(path)) for path in paths), labels)


def _read_archive(
    paths: tuple[Path, ...],
    *,
    read: Batch,
    labels: tuple[str, ...],
    names: tuple[str, ...],
    folder: str,
) -> Arrays:
    members = read_members(paths[0], names, folder=folder, limit=_BATCH_LIMIT)
    batches = (read(members.pop(name), f"{paths[0]}: {name}") for name in names)
    return _joined(batches, labels)
