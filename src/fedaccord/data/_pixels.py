"""Images as arrays."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from ._optional import missing

if TYPE_CHECKING:
    from PIL import Image

Mode: TypeAlias = Literal["L", "RGB"]
Pixels: TypeAlias = npt.NDArray[np.float32]

DAMAGE = (OSError, SyntaxError, ValueError)
"""What Pillow's decoders raise for damaged files."""


def open_image(file: Path | IO[bytes], *, max_pixels: int) -> Image.Image:
    """Open an image and read its size, nothing more; refuse those too large.

    :param file: Where it is.
    :param max_pixels: How many pixels it may have.
    :raises ValueError: If it has more.
    :raises OSError: If it is no image.
    """
    from PIL import Image

    with warnings.catch_warnings():
        # Pillow warns about large images on its own terms; ours are checked below
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        try:
            image = Image.open(file)
        except Image.DecompressionBombError as error:
            raise ValueError(f"It must have at most {max_pixels} pixels. {error}") from error
    width, height = image.size
    if width * height > max_pixels:
        image.close()
        raise ValueError(
            f"It must have at most {max_pixels} pixels (`max_pixels`). Got {width} x {height}."
        )
    return image


def pixels_of(image: Image.Image, *, size: tuple[int, int], mode: Mode) -> Pixels:
    """Bring an image to the shape a model takes.

    The camera's note of which way is up is followed, transparent parts lie on white, an animation
    gives its first picture, 16-bit grey keeps its range. The image is stretched to the size by a
    bilinear filter, which averages the pixels that a new one covers.

    :param image: The image; it is left as it was.
    :param size: Height and width.
    :param mode: ``"L"`` for grey, ``"RGB"`` for colour.
    :return: ``[1 or 3, height, width]`` in [0, 1].
    :raises ValueError: If the image holds floating-point or 32-bit numbers, whose range is unknown.
    """
    from PIL import Image, ImageOps

    image = ImageOps.exif_transpose(image)
    if image.mode.startswith("I;16"):
        grey = np.asarray(image, dtype=np.float32) / 65535
        channels = [grey] * (1 if mode == "L" else 3)
    elif image.mode in ("I", "F"):
        raise ValueError(f"It must have 8 or 16 bits a channel. Got mode {image.mode!r}.")
    else:
        if image.has_transparency_data:
            image = image.convert("RGBA")
            white = Image.new("RGBA", image.size, "white")
            image = Image.alpha_composite(white, image)
        flat = np.asarray(image.convert(mode), dtype=np.float32) / 255
        channels = [flat] if mode == "L" else [flat[..., channel] for channel in range(3)]
    height, width = size
    if channels[0].shape == (height, width):
        return np.stack(channels)
    resized = [
        np.asarray(Image.fromarray(channel).resize((width, height), Image.Resampling.BILINEAR))
        for channel in channels
    ]
    clipped: Pixels = np.clip(np.stack(resized), 0, 1)
    return clipped


def normalised(
    values: Pixels, mean: float | Sequence[float], std: float | Sequence[float]
) -> Pixels:
    """Subtract the mean and divide by the standard deviation of each channel.

    :param values: ``[n, channels, height, width]``; changed in place.
    :param mean: One number, or one a channel.
    :param std: Likewise, positive.
    :raises ValueError: If there is another number of them, or ``std`` is not positive.
    """
    for name, given in (("mean", mean), ("std", std)):
        if np.size(given) not in (1, values.shape[1]):
            raise ValueError(
                f"`{name}` must be one number or one a channel, {values.shape[1]}. Got {given}."
            )
    if not (np.asarray(std) > 0).all():
        raise ValueError(f"`std` must be positive. Got {std}.")
    values -= np.asarray(mean, dtype=np.float32).reshape(-1, 1, 1)
    values /= np.asarray(std, dtype=np.float32).reshape(-1, 1, 1)
    return values


def require_size(size: Sequence[int], mode: str) -> tuple[int, int]:
    """Check height and width, and the mode.

    :raises ValueError: If they are not two integers of at least 1, or there is no such mode.
    """
    if len(size) != 2 or not all(isinstance(side, int) and side >= 1 for side in size):
        raise ValueError(f"`size` must be height and width, integers of at least 1. Got {size}.")
    if mode not in ("L", "RGB"):
        raise ValueError(f"`mode` must be 'L' for grey or 'RGB' for colour. Got {mode!r}.")
    return size[0], size[1]


def require_pillow() -> None:
    """Check that images can be read.

    :raises FedAccordError: If Pillow is not installed.
    """
    try:
        import PIL  # noqa: F401 - only asked for
    except ModuleNotFoundError as error:
        raise missing("pillow", "Reading images", "data") from error
