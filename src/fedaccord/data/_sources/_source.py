"""A dataset whose files the user has: in which forms they may lie, and what is made of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import DataFileError, MissingDataError
from .._dataset import Dataset
from .._formats import Arrays
from .._info import DatasetInfo


@dataclass(frozen=True)
class Form:
    """One form in which a dataset's files may lie in a folder.

    :param about: The form in words, for the message when nothing was found.
    :param files: For each file that is needed, the names it may have, the preferred first.
    :param read: Makes arrays of the files, given in that order.
    """

    about: str
    files: tuple[tuple[str, ...], ...]
    read: Callable[[tuple[Path, ...]], Arrays]

    def find(self, folder: Path) -> tuple[Path, ...] | None:
        """The files of this form in a folder; ``None`` unless all are there."""
        found = []
        for names in self.files:
            path = next((folder / name for name in names if (folder / name).is_file()), None)
            if path is None:
                return None
            found.append(path)
        return tuple(found)


@dataclass(frozen=True)
class Found:
    """Files of a dataset.

    :param form: The form they have.
    :param paths: The files, in the order of ``form.files``.
    """

    form: Form
    paths: tuple[Path, ...]


@dataclass(frozen=True)
class Published:
    """Checksums of the published files, to which the arrays read are compared.

    :param algorithm: Name of the checksum, such as ``"MD5"``.
    :param checksums: By file or array.
    :param compute: Makes the same checksums of arrays.
    """

    algorithm: str
    checksums: Mapping[str, str]
    compute: Callable[[Arrays], Mapping[str, str]]


@dataclass(frozen=True)
class Source:
    """Where a dataset comes from and how it is made of the files that the user has.

    :param info: The dataset in a few words.
    :param origin: Where the original files come from, in words.
    :param folders: Folders below the ``data_dir`` that are searched besides the one of its name.
    :param forms: The forms its files may have, the preferred first.
    :param published: What the published files hold.
    :param build: Makes the dataset of the arrays; the mapping is its record so far.
    """

    info: DatasetInfo
    origin: str
    folders: tuple[str, ...]
    forms: tuple[Form, ...]
    published: Published
    build: Callable[[DatasetInfo, Arrays, Mapping[str, Any]], Dataset]

    def find(self, data_dir: Path) -> Found | None:
        """The files below a folder; those in a folder of the dataset's name come first."""
        for folder in (self.info.name, *self.folders, "."):
            for form in self.forms:
                if paths := form.find(data_dir / folder):
                    return Found(form, paths)
        return None

    def read(self, data_dir: Path) -> tuple[Arrays, Mapping[str, Any]]:
        """Read the files below a folder and compare them with the published ones.

        :return: The arrays, and the record: ``"origin"``, ``"files"``, ``"verified"``, whether the
            content is exactly that of the published files, and ``"verification"``, that in words.
        :raises MissingDataError: If the files are not there; the message says what to put where.
        :raises DataFileError: If they are damaged or of another form.
        """
        if (found := self.find(data_dir)) is None:
            raise MissingDataError(self._missing(data_dir))
        arrays = found.form.read(found.paths)
        verified, verification = self.compare(arrays)
        return arrays, {
            "name": self.info.name,
            "title": self.info.title,
            "description": self.info.description,
            "licence": self.info.licence,
            "citation": list(self.info.citation),
            "origin": self.origin,
            "files": [str(path) for path in found.paths],
            "verified": verified,
            "verification": verification,
        }

    def compare(self, arrays: Arrays) -> tuple[bool, str]:
        """Whether the content is the published one, and that in words."""
        algorithm, computed = self.published.algorithm, self.published.compute(arrays)
        for name, checksum in self.published.checksums.items():
            if computed.get(name) != checksum:
                return False, (
                    f"The content differs from the published one: {algorithm} of `{name}` is "
                    f"{computed.get(name)}, published is {checksum}."
                )
        names = ", ".join(f"`{name}`" for name in self.published.checksums)
        return True, f"The content has the published {algorithm} of {names}."

    def _missing(self, data_dir: Path) -> str:
        folders = ", ".join(f"`{folder}`" for folder in (self.info.name, *self.folders))
        forms = "\n".join(f"  - {form.about}" for form in self.forms)
        prepared = self.forms[0].files[0][0].removesuffix(".npz")
        return (
            f"`{self.info.name}` needs its files in `{data_dir}`, or below it in {folders}. "
            f"{'They are not there' if data_dir.is_dir() else 'There is no such folder'}. "
            f"Put one of these there:\n{forms}\n"
            f"The originals: {self.origin} Cite: {self.info.citation[0]}\n"
            f"From a copy of the originals, `python scripts/prepare_data.py --source FOLDER "
            f"--out {data_dir} {prepared}` writes the first form."
        )


def require_rows(arrays: Arrays, names: tuple[str, ...], what: str) -> None:
    """Check that arrays have one row for each sample, at least one.

    :param names: The arrays that must agree.
    :param what: What they come from, for the message.
    :raises DataFileError: If they do not.
    """
    lengths = {name: len(arrays[name]) for name in names}
    if len(set(lengths.values())) > 1 or not all(lengths.values()):
        listed = ", ".join(f"`{name}` {length:,}" for name, length in lengths.items())
        raise DataFileError(
            f"{what} must have one row per sample in each array, at least one. Got {listed}."
        )


def require_codes(arrays: Arrays, name: str, count: int, *, lowest: int = 0) -> None:
    """Check that an array of codes names only what there is.

    :param name: The array.
    :param count: Codes are below this.
    :param lowest: Codes are at least this.
    :raises DataFileError: If one is out of range.
    """
    codes = arrays[name]
    if codes.size and not (codes.min() >= lowest and codes.max() < count):
        raise DataFileError(
            f"`{name}` must be in [{lowest}, {count}). Got {codes.min()} to {codes.max()}."
        )
