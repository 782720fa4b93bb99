"""Prepare a folder from which ``fedaccord.data.load(name, folder)`` reads every dataset.

    python scripts/prepare_data.py --out DIR [--source DIR] [--fashion DIR] [NAME ...]

``source`` holds the compressed archives of the datasets (``mnist.npz``, ``cifar10_jxl.npz`` and so
on), ``fashion`` the idx files of Fashion-MNIST, as Debian's package dataset-fashion-mnist installs
them. Pictures become plain ``.npz`` files with ``x_train, y_train, x_test, y_test``; the small
archives are copied. A file appears whole or not at all, and only if its content is the published
one; what is there already is kept. CIFAR's archives need the package ``imagecodecs``.
"""

from __future__ import annotations

import argparse
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from fedaccord.data._formats import Arrays, Member, pack_npz, read_npz
from fedaccord.data._sources import SOURCES, Source
from fedaccord.errors import DataFileError, FedAccordError
from fedaccord.files import write_whole

FASHION_DIR = Path("/usr/share/datasets/fashion-mnist")
PICTURES = ("mnist", "fashion-mnist", "cifar10", "cifar100")
COPIED = {
    "adult": "adult.npz",
    "shakespeare": "shakespeare_roles.npz",
    "tcga-brca": "fed_tcga_brca.npz",
    "parkinsons": "parkinsons_telemonitoring.npz",
}
NAMES = (*PICTURES, *COPIED)
BLOCKS = {"train": 10, "test": 2}


def cifar(source: Path, name: str) -> Arrays:
    """Decode CIFAR's pictures, which lie in blocks of 5,000 under one another as JPEG XL.

    :param source: Folder with ``cifar10_jxl.npz`` and ``cifar100_jxl.npz``.
    :param name: ``"cifar10"`` or ``"cifar100"``.
    :raises FedAccordError: If ``imagecodecs`` is not installed.
    """
    try:
        import imagecodecs
    except ImportError as error:
        raise FedAccordError(
            f"`{name}` is stored as JPEG XL, which the package `imagecodecs` reads. "
            "Install it with `pip install imagecodecs`."
        ) from error
    coarse = name == "cifar100"
    labels = ("y_train", "y_test", *(("y_train_coarse", "y_test_coarse") if coarse else ()))
    names = ("class_names", *(("coarse_names",) if coarse else ()))
    members = {label: Member("u", (None,)) for label in labels}
    members |= {key: Member("U", (None,)) for key in names}
    members |= {
        f"x_{split}_jxl_{block:02}": Member("u", (None,))
        for split, count in BLOCKS.items()
        for block in range(count)
    }
    packed = read_npz(source / f"{name}_jxl.npz", members)
    arrays = {label: packed[label] for label in labels}
    for split, count in BLOCKS.items():
        blocks = (packed[f"x_{split}_jxl_{block:02}"].tobytes() for block in range(count))
        pictures = [imagecodecs.jpegxl_decode(block).reshape(-1, 32, 32, 3) for block in blocks]
        arrays[f"x_{split}"] = np.concatenate(pictures)
    return arrays


def content(name: str, source: Path, fashion: Path) -> bytes:
    """The bytes of ``<name>.npz``.

    :raises FedAccordError: If a source is missing, damaged or not the published content.
    """
    origin: Source = SOURCES[name]
    if name in COPIED:
        path = source / COPIED[name]
        _require_published(origin, origin.forms[0].read((path,)), path)
        return path.read_bytes()
    if name.startswith("cifar"):
        arrays, path = cifar(source, name), source / f"{name}_jxl.npz"
    else:
        path = fashion if name == "fashion-mnist" else source
        arrays, _ = origin.read(path)
    _require_published(origin, arrays, path)
    # stored, not deflated: pixels hardly shrink, and reading is several times as fast
    return pack_npz(arrays, compression=zipfile.ZIP_STORED)


def _require_published(origin: Source, arrays: Arrays, path: Path) -> None:
    verified, verification = origin.compare(arrays)
    if not verified:
        raise DataFileError(f"`{path}` must hold the published data. {verification}")


def is_there(name: str, out: Path) -> bool:
    """Whether ``<name>.npz`` is there with the published content."""
    path = out / f"{name}.npz"
    if not path.is_file():
        return False
    try:
        return SOURCES[name].compare(SOURCES[name].forms[0].read((path,)))[0]
    except DataFileError:
        return False  # it is written again


def prepare(
    names: list[str], *, out: Path, source: Path, fashion: Path, say: Callable[[str], None] = print
) -> None:
    """Write ``<name>.npz`` for each name that is not there yet.

    :param names: Of :data:`NAMES`.
    :param say: Takes one line for each name.
    :raises FedAccordError: If a source is missing, damaged or not the published content.
    """
    out.mkdir(parents=True, exist_ok=True)
    for name in names:
        path = out / f"{name}.npz"
        if is_there(name, out):
            say(f"{name}: already in `{path}`")
            continue
        packed = content(name, source, fashion)
        write_whole(path, packed)
        say(f"{name}: wrote `{path}`, {len(packed):,} bytes, content as published")


def main() -> int:
    """Read the command line and prepare."""
    root = Path(__file__).resolve().parents[1]
    parser = argparse.ArgumentParser(description="Prepare a folder that `load` reads.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; all")
    parser.add_argument("--out", type=Path, required=True, help="the folder to prepare")
    parser.add_argument("--source", type=Path, default=root.parent / "shared" / "data")
    parser.add_argument("--fashion", type=Path, default=FASHION_DIR)
    chosen = parser.parse_args()
    if unknown := sorted(set(chosen.names) - set(NAMES)):
        parser.error(f"unknown name `{unknown[0]}`; known are {', '.join(NAMES)}")
    try:
        prepare(
            chosen.names or list(NAMES),
            out=chosen.out,
            source=chosen.source,
            fashion=chosen.fashion,
        )
    except (FedAccordError, OSError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
