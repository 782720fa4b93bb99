"""Every dataset by name: those inside the package, and those whose files the user has."""

from __future__ import annotations

from pathlib import Path

from ..errors import UnknownNameError
from ._dataset import Dataset
from ._info import DatasetInfo
from ._shipped import find_shipped, load_shipped, shipped_datasets
from ._sources import SOURCES
from ._sources import shakespeare as _shakespeare


def list_datasets() -> tuple[str, ...]:
    """Return the names of all datasets, those inside the package first.

    ``describe(name)`` says what one is, ``find_data(name)`` whether its files are there.
    """
    return (*shipped_datasets(), *SOURCES)


def describe(name: str) -> DatasetInfo:
    """Say what a dataset is, without loading it; its files need not be there.

    :param name: One of ``list_datasets()``.
    :raises UnknownNameError: If there is no such dataset; the message names the nearest.
    """
    _require_known(name)
    shipped = shipped_datasets()
    return shipped[name] if name in shipped else SOURCES[name].info


def find_data(name: str, data_dir: Path | str | None = None) -> tuple[Path, ...] | None:
    """Find the files of a dataset, without reading them.

    :param name: One of ``list_datasets()``.
    :param data_dir: As for ``load``.
    :return: The files that ``load`` would read; ``None`` if they are not all there.
    :raises UnknownNameError: If there is no such dataset; the message names the nearest.
    """
    _require_known(name)
    if name in shipped_datasets():
        return find_shipped(name)
    found = SOURCES[name].find(_folder(data_dir))
    return None if found is None else found.paths


def load(name: str, data_dir: Path | str | None = None) -> Dataset:
    """Read a dataset.

    :param name: One of ``list_datasets()``.
    :param data_dir: Folder that holds the files, directly or in a folder of the dataset's name; by
        default the platform's cache folder of ``fedaccord``. The datasets inside the package are
        read from there, whatever the ``data_dir``.
    :raises UnknownNameError: If there is no such dataset; the message names the nearest.
    :raises MissingDataError: If its files are not there; the message says what to put where.
    :raises DataFileError: If a file is damaged or of another form.
    """
    _require_known(name)
    if name in shipped_datasets():
        return load_shipped(name)
    source = SOURCES[name]
    arrays, record = source.read(_folder(data_dir))
    return source.build(source.info, arrays, record)


def load_shakespeare(
    data_dir: Path | str | None = None, *, window: int = _shakespeare.WINDOW, stride: int = 1
) -> Dataset:
    """Read Shakespeare by role, with windows of another length or fewer of them.

    ``load("shakespeare")`` is the same with the defaults, those of LEAF: a sample at every
    character, 3.4 million to train on. A stride of ten makes testing ten times as fast.

    :param data_dir: As for ``load``.
    :param window: Characters of one input, at least 1.
    :param stride: Characters from the start of one window to the next one's, at least 1.
    :raises MissingDataError: If the files are not there; the message says what to put where.
    :raises DataFileError: If a file is damaged or of another form.
    :raises ValueError: If ``window`` or ``stride`` is below 1.
    """
    source = SOURCES["shakespeare"]
    arrays, record = source.read(_folder(data_dir))
    return _shakespeare.build(source.info, arrays, record, window=window, stride=stride)


def _require_known(name: str) -> None:
    if name not in list_datasets():
        raise UnknownNameError.among("dataset", name, list_datasets())


def _folder(data_dir: Path | str | None) -> Path:
    if data_dir is not None:
        return Path(data_dir)
    from platformdirs import user_cache_path

    return user_cache_path("fedaccord")
