"""Clients from a folder of images."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import torch

from ..errors import DataFileError
from ._arrays import ArrayData
from ._files import files_in, naming_file, natural_key
from ._own import OwnData, split_off
from ._partition import Partition
from ._pixels import (
    DAMAGE,
    Mode,
    Pixels,
    normalised,
    open_image,
    pixels_of,
    require_pillow,
    require_size,
)

SUFFIXES = frozenset(
    {".bmp", ".gif", ".jpeg", ".jpg", ".pbm", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"}
)


def load_images(
    path: Path | str,
    *,
    size: tuple[int, int] = (28, 28),
    mode: Mode = "L",
    mean: float | Sequence[float] = 0.0,
    std: float | Sequence[float] = 1.0,
    on_error: Literal["raise", "skip"] = "raise",
    max_pixels: int = 50_000_000,
    test_fraction: float = 0.0,
    seed: int = 0,
) -> OwnData:
    """Read a folder of images whose subfolders are the classes.

    - ``root/class/image.png``: one client holds all; ``data.divide(parts)`` splits them, by
      ``data.samples.targets`` if need be.
    - ``root/client/class/image.png``: each client has its own.

    Clients and classes are in natural order of their names (``a2`` before ``a10``), images in that
    of theirs. Other files and hidden ones are passed over.

    :param path: The folder ``root``.
    :param size: Height and width that images are stretched to.
    :param mode: ``"L"`` for grey, ``"RGB"`` for colour.
    :param mean: What is subtracted from values in [0, 1]; one number, or one a channel.
    :param std: What they are divided by then; likewise.
    :param on_error: Whether an image that cannot be read is an error, or is left out and listed in
        ``notes["skipped"]``.
    :param max_pixels: How many pixels an image may have; more is refused before it is decoded.
    :param test_fraction: Share of each client's images to test on, in ``[0, 1)``.
    :param seed: Decides which.
    :return: Inputs float32 ``[n, channels, height, width]``, targets int64 ``[n]``.
    :raises DataFileError: If there is no image, the folders are of both kinds, Pillow is missing,
        or an image cannot be read; the message names the file.
    :raises ValueError: If an option is out of range.
    """
    require_pillow()
    require_size(size, mode)
    if on_error not in ("raise", "skip"):
        raise ValueError(f"`on_error` must be 'raise' or 'skip'. Got {on_error!r}.")
    root, files = files_in(path, "**/*")
    names = [file.relative_to(root) for file in files if file.suffix.lower() in SUFFIXES]
    with_clients = _has_clients(names, root)

    pictures: list[Pixels] = []
    read: list[Path] = []
    skipped: list[str] = []
    for name in names:
        try:
            with (
                naming_file(name.as_posix(), *DAMAGE),
                open_image(root / name, max_pixels=max_pixels) as image,
            ):
                picture = pixels_of(image, size=size, mode=mode)
        except DataFileError as error:
            if on_error == "raise":
                raise
            skipped.append(str(error))
            continue
        pictures.append(picture)
        read.append(name)
    if not read:
        raise DataFileError(f"No image in `{root}` can be read. The first: {skipped[0]}")
    classes = sorted({name.parent.name for name in names}, key=natural_key)
    clients = sorted({name.parts[0] for name in names}, key=natural_key) if with_clients else []
    owners = np.array([name.parts[0] for name in read])
    parts = Partition(
        [np.flatnonzero(owners == client) for client in clients] or [np.arange(len(read))],
        len(read),
        name="natural",
        client_names=tuple(clients) or (root.name or str(root),),
    )
    train, test = split_off(parts, test_fraction=test_fraction, seed=seed)
    inputs = torch.from_numpy(normalised(np.stack(pictures), mean, std))
    targets = torch.tensor([classes.index(name.parent.name) for name in read])
    return OwnData(
        samples=ArrayData((inputs, targets)),
        parts=train,
        test_parts=test,
        tasks=("class",),
        class_names=(tuple(classes),),
        notes={"skipped": tuple(skipped)},
    )


def _has_clients(names: Sequence[Path], root: Path) -> bool:
    """Whether images lie in folders of classes in folders of clients."""
    if not names:
        raise DataFileError(
            f"`{root}` must hold images in folders named after their classes. "
            f"It holds no file that ends in {', '.join(sorted(SUFFIXES))}."
        )
    depths = {len(name.parts): name.as_posix() for name in reversed(names)}
    if depths.keys() not in ({2}, {3}):
        examples = " and ".join(f"`{example}`" for example in depths.values())
        raise DataFileError(
            f"Images must all be at `class/image` or all at `client/class/image` in `{root}`. "
            f"Got {examples}."
        )
    return 3 in depths
