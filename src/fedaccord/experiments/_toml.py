"""TOML files, and the version of what they hold."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from ..errors import FedAccordError

FORMAT = 1
"""Version of the files that hold an experiment, and of the folders that hold a run."""


def parse_toml(content: bytes) -> dict[str, Any]:
    """Read TOML.

    :raises ValueError: If it is none.
    """
    try:
        return tomllib.loads(content.decode("utf-8"))
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def require_format(found: Any, where: Path | str) -> None:
    """Check that this release can read what it found.

    :param found: The format's version.
    :param where: The file.
    :raises FedAccordError: If it cannot.
    """
    if type(found) is int and found > FORMAT:
        raise FedAccordError(
            f"{where} has format {found}, and this release reads {FORMAT}. Install a later one."
        )
    if type(found) is not int or found != FORMAT:
        raise FedAccordError(f"{where} must have `format = {FORMAT}`. Got {found!r}.")
