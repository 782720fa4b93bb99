"""Files of a folder in the order in which people count, and errors that name them."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

from ..errors import DataFileError


def natural_key(text: str) -> tuple[tuple[int, int, str], ...]:
    """Sort ``a2`` before ``a10``, whatever the case of letters.

    :param text: A name.
    """
    parts = re.split(r"([0-9]+)", text.casefold())
    return (*((1, int(p), "") if p.isdecimal() else (0, 0, p) for p in parts), (0, 0, text))


def files_in(folder: Path | str, pattern: str) -> tuple[Path, list[Path]]:
    """Find the files of a folder that fit a pattern, in natural order; hidden ones are left out.

    :param folder: The folder.
    :param pattern: As ``Path.glob`` takes it, for example ``"*.csv"`` or ``"**/*.csv"``.
    :return: The folder, and the files.
    :raises DataFileError: If there is no such folder or no such file.
    """
    root = Path(folder)
    if not root.is_dir():
        raise DataFileError(f"`{root}` must be a folder. There is none.")
    found = [path for path in root.glob(pattern) if path.is_file()]
    relative = {path: path.relative_to(root) for path in found}
    visible = [p for p in found if not any(part.startswith(".") for part in relative[p].parts)]
    if not visible:
        raise DataFileError(f"`{root}` must hold files that fit `{pattern}`. It holds none.")
    return root, sorted(visible, key=lambda path: natural_key(relative[path].as_posix()))


@contextlib.contextmanager
def naming_file(name: str, *kinds: type[Exception]) -> Iterator[None]:
    """Turn errors of some kinds into one that names a file.

    :param name: What to call the file.
    :param kinds: What its reader raises for a file that is damaged or of another kind.
    """
    try:
        yield
    except kinds as error:
        raise DataFileError(f"{name} cannot be used: {error}") from error
