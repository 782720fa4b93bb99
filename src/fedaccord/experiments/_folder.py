"""The folder of a run: its files, and who may write there."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w
from filelock import FileLock, Timeout

from ..data import Holdout, Partition, save_partition
from ..errors import CheckpointError, FedAccordError
from ..files import leftovers, write_whole
from ._experiment import Experiment
from ._json import read_json, write_json
from ._table import Table, from_table, to_table
from ._toml import FORMAT, parse_toml, require_format

LOCK = ".running"
LARGE = 200_000
"""Samples given to clients above which only the split's digest is kept."""


class FolderError(FedAccordError):
    """A folder cannot take this run: it is in use, missing, not writable or another run's."""


@dataclass(frozen=True)
class RunFolder:
    """Where a run keeps its files.

    :param path: The folder.
    """

    path: Path

    @property
    def experiment_file(self) -> Path:
        """The configuration, every value spelt out."""
        return self.path / "experiment.toml"

    @property
    def split_file(self) -> Path:
        """The split of the data over the clients."""
        return self.path / "split.json"

    @property
    def partition_file(self) -> Path:
        """Who holds which samples, where the split is not large."""
        return self.path / "partition.json"

    @property
    def environment_file(self) -> Path:
        """Versions and platform, an entry for every time the run was started."""
        return self.path / "environment.json"

    @property
    def records_file(self) -> Path:
        """One line of JSON a round."""
        return self.path / "rounds.jsonl"

    @property
    def checkpoint_file(self) -> Path:
        """The training state after the last checkpoint."""
        return self.path / "training.safetensors"

    @property
    def model_file(self) -> Path:
        """The trained model, at the end."""
        return self.path / "model.safetensors"

    @property
    def summary_file(self) -> Path:
        """Counts and final numbers, at the end."""
        return self.path / "summary.json"

    @property
    def timing_file(self) -> Path:
        """Seconds, an entry for every time the run was started."""
        return self.path / "timing.json"

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Make the folder, keep other processes out of it, and clear up after killed ones.

        :raises FolderError: If a run is in progress there.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.path / LOCK)
        try:
            lock.acquire(timeout=0)
        except Timeout as error:
            raise FolderError(
                f"A run is in progress in {self.path}. Wait for it, or choose another folder."
            ) from error
        try:
            for left in leftovers(self.path):
                left.unlink(missing_ok=True)
            yield
        finally:
            Path(lock.lock_file).unlink(missing_ok=True)
            lock.release()

    def check_new(self) -> None:
        """Check that a new run can be put here; nothing is written.

        :raises FolderError: If the folder is in use or cannot be made.
        """
        if self.path.exists() and (not self.path.is_dir() or self._occupied()):
            resume = "Go on with its run by `--resume`, or choose" * self.experiment_file.exists()
            raise FolderError(
                f"`{self.path}` exists and is not empty. {resume or 'Choose'} another folder."
            )
        check_writable(self.path)

    def check_resumable(self) -> None:
        """Check that there is a run to go on with.

        :raises FolderError: If there is none.
        """
        self.check_readable(hint=" Leave `--resume` out to start one.")
        check_writable(self.path)

    def check_readable(self, *, hint: str = "") -> None:
        """Check that there is a run.

        :param hint: Added to the message.
        :raises FolderError: If there is none.
        """
        if not self.experiment_file.is_file():
            raise FolderError(
                f"`{self.path}` holds no run: there is no `experiment.toml` in it.{hint}"
            )

    def read_table(self) -> Table:
        """The configuration in the folder as a table.

        :raises CheckpointError: If it cannot be read.
        :raises FedAccordError: If a later release made it.
        """
        try:
            table = parse_toml(self.experiment_file.read_bytes())
        except ValueError as error:
            raise CheckpointError(f"{self.experiment_file} is damaged: {error}.") from error
        require_format(table.pop("format", None), self.experiment_file)
        return table

    def read_experiment(self) -> Experiment:
        """The configuration in the folder.

        :raises CheckpointError: If it cannot be read.
        :raises ValueError: If it does not fit this release.
        """
        return from_table(self.read_table())

    def read_split(self) -> dict[str, Any]:
        """What the split amounts to.

        :raises CheckpointError: If it is damaged.
        """
        split = read_json(self.split_file)
        good = isinstance(split, dict) and isinstance(split.get("sha256"), str)
        if not good or not isinstance(split.get("sizes"), list):
            raise CheckpointError(f"{self.split_file} is damaged: it lacks `sha256` or `sizes`.")
        assert isinstance(split, dict)
        return split

    def read_sittings(self, file: Path) -> list[Any]:
        """The entries of a file that has one for every time the run was started.

        :raises CheckpointError: If it is damaged.
        """
        if not file.exists():
            return []
        entries = read_json(file)
        if not isinstance(entries, list):
            raise CheckpointError(f"{file} is damaged: it must hold a list.")
        return entries

    def write_experiment(self, experiment: Experiment) -> None:
        """Write the configuration, every value spelt out."""
        table = {"format": FORMAT, **to_table(experiment)}
        write_whole(self.experiment_file, tomli_w.dumps(table).encode())

    def write_split(self, partition: Partition, holdout: Holdout) -> None:
        """Write what the split amounts to, with its digest, and if it is not large all of it."""
        write_json(self.split_file, content_of_split(partition, holdout))
        if sum(partition.sizes) <= LARGE:
            save_partition(self.partition_file, partition)

    def _occupied(self) -> bool:
        """Whether there is more than what a process leaves that was killed before it began."""
        left = {self.path / LOCK, *leftovers(self.path)}
        return any(file not in left for file in self.path.iterdir())


def content_of_split(partition: Partition, holdout: Holdout) -> dict[str, Any]:
    """What a folder says about its split, and about what clients keep back."""
    content: dict[str, Any] = {
        "name": partition.name,
        "sha256": partition.digest(),
        "sizes": partition.sizes,
        "unassigned": len(partition.unassigned),
        "repeated": len(partition.repeated),
    }
    if holdout.unseen or holdout.train.digest() != partition.digest():
        parts = {"train": holdout.train, "validation": holdout.validation, "test": holdout.test}
        content["held_back"] = {
            "clients": holdout.seen,
            "never_train": holdout.unseen,
            "shared": len(holdout.shared),
            "sizes": {name: part.sizes for name, part in parts.items()},
            "sha256": {name: part.digest() for name, part in parts.items()},
        }
    return content


def check_writable(path: Path) -> None:
    """Check that a folder can be written to, or made.

    :raises FolderError: If not; the message names the folder in the way.
    """
    nearest = path
    while not nearest.exists() and nearest != nearest.parent:
        nearest = nearest.parent
    if not nearest.is_dir():
        raise FolderError(f"`{path}` cannot be made: `{nearest}` is not a folder.")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise FolderError(f"`{path}` cannot be written: no permission in `{nearest}`.")
