"""The folder of a run."""

from __future__ import annotations

import contextlib
import json
import os
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w
from filelock import FileLock, Timeout

from ..data import Partition
from ..errors import CheckpointError, FedAccordError
from ._experiment import Experiment
from ._records import plain, write_whole
from ._setup import without_workers
from ._table import Table, differences, from_table, to_table


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

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Make the folder, and keep other processes out of it.

        :raises FolderError: If a run is in progress there.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.path / ".running")
        try:
            lock.acquire(timeout=0)
        except Timeout as error:
            raise FolderError(
                f"A run is in progress in {self.path}. Wait for it, or choose another folder."
            ) from error
        try:
            yield
        finally:
            Path(lock.lock_file).unlink(missing_ok=True)
            lock.release()

    def check_new(self) -> None:
        """Check that a new run can be put here; nothing is written.

        :raises FolderError: If the folder is in use or cannot be made.
        """
        if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
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
        """
        try:
            return tomllib.loads(self.experiment_file.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise CheckpointError(f"{self.experiment_file} is damaged: {error}.") from error

    def read_experiment(self) -> Experiment:
        """The configuration in the folder.

        :raises CheckpointError: If it cannot be read.
        :raises ValueError: If it does not fit this release.
        """
        return from_table(self.read_table())

    def reconcile(self, experiment: Experiment) -> Experiment:
        """Check that an experiment is the one in the folder; adopt the reference found for it.

        :raises FolderError: If it is another; the message names every value that differs.
        """
        stored = self.read_experiment()
        if experiment.rule.lacks_reference and not stored.rule.lacks_reference:
            reference = _reference(to_table(stored.rule))
            experiment = experiment.calibrated(reference)
        before, now = (to_table(without_workers(each)) for each in (stored, experiment))
        if changed := differences(before, now):
            raise FolderError(
                f"`{self.path}` holds a run with another configuration. Changed: "
                f"{'; '.join(changed)}. Resume with the old values, or choose another folder."
            )
        return experiment

    def write_experiment(self, experiment: Experiment) -> None:
        """Write the configuration, every value spelt out."""
        write_whole(self.experiment_file, tomli_w.dumps(to_table(experiment)).encode())

    def write_split(self, partition: Partition) -> None:
        """Write what the split amounts to, and a digest to compare splits by."""
        self.write_json(
            "split.json",
            {
                "name": partition.name,
                "sha256": partition.digest(),
                "sizes": partition.sizes,
                "unassigned": len(partition.unassigned),
                "repeated": len(partition.repeated),
            },
        )

    def note_sitting(self, name: str, content: dict[str, Any], *, fresh: bool) -> None:
        """Add an entry to a file that has one for every time the run was started.

        :param name: The file.
        :param content: The entry.
        :param fresh: Whether to leave earlier entries out.
        """
        path = self.path / name
        earlier = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
        self.write_json(name, [*([] if fresh else earlier), content])

    def write_json(self, name: str, content: Any) -> None:
        """Write a file of JSON, whole or not at all."""
        text = json.dumps(plain(content), indent=2, ensure_ascii=False, allow_nan=False)
        write_whole(self.path / name, f"{text}\n".encode())


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


def _reference(rule: Table) -> tuple[float, ...]:
    """The first reference in a rule's table or one inside it."""
    if "reference" in rule:
        return tuple(rule["reference"])
    inner = (_reference(value) for value in rule.values() if isinstance(value, dict))
    return next((found for found in inner if found), ())
