"""Several runs that differ in rule and seed, and nothing else."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from ..errors import CheckpointError, FedAccordError
from ..experiments import (
    Experiment,
    FolderError,
    Run,
    RunFolder,
    Setup,
    carry_out,
    prepare,
    read_json,
    write_json,
)
from ._errors import one_line
from ._experiments import slug
from ._progress import Progress, rounds_of
from ._show import warnings_as_lines

FILE = "comparison.json"


@dataclass(frozen=True)
class Entry:
    """One run of a comparison.

    :param name: The rule's name in tables.
    :param folder: The run's folder, inside the comparison's.
    :param experiment: What is run.
    """

    name: str
    folder: str
    experiment: Experiment


@dataclass(frozen=True)
class Failed:
    """A run that could not be carried out to its end.

    :param name: The rule's name in tables.
    :param seed: Its seed.
    :param reason: What the library said.
    """

    name: str
    seed: int
    reason: str

    def __str__(self) -> str:
        return f"{self.name}, seed {self.seed}: {one_line(self.reason)}"


@dataclass
class Comparison:
    """Runs in one folder.

    :param folder: The folder.
    :param entries: The runs, rule by rule.
    :param setups: What :meth:`prepare` made of them.
    """

    folder: Path
    entries: tuple[Entry, ...]
    setups: list[Setup] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        experiments: Sequence[Experiment],
        *,
        seeds: Iterable[int],
        folder: Path,
    ) -> Comparison:
        """Every experiment with every seed.

        :raises ValueError: If two runs would be the same, or a seed repeats.
        """
        seeds = tuple(seeds)
        if len(set(seeds)) < len(seeds):
            raise ValueError(f"Seeds must be distinct. Got {', '.join(map(str, seeds))}.")
        if len({slug(name) for name in names}) < len(names):
            raise ValueError(f"Rules must differ from each other. Got {', '.join(names)}.")
        entries = [
            Entry(
                name,
                slug(name) + (f"-seed-{seed}" if len(seeds) > 1 else ""),
                dataclasses.replace(experiment, seed=seed),
            )
            for name, experiment in zip(names, experiments, strict=True)
            for seed in seeds
        ]
        return cls(folder, tuple(entries))

    @classmethod
    def read(cls, folder: Path, **changes: Any) -> Comparison:
        """Read the comparison in a folder.

        :param folder: The folder.
        :param changes: Fields of every experiment that are to change.
        :raises FolderError: If there is none, or a run that it lists is gone.
        :raises CheckpointError: If its list is damaged.
        """
        entries = []
        for each in listed(folder, hint=" Leave `--resume` out to start one."):
            place = RunFolder(folder / each["folder"])
            place.check_readable(
                hint=f" `{folder / FILE}` lists it; put it back, or compare anew in another folder."
            )
            experiment = dataclasses.replace(place.read_experiment(), **changes)
            entries.append(Entry(each["name"], each["folder"], experiment))
        return cls(folder, tuple(entries))

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of the runs."""
        return tuple(dict.fromkeys(entry.experiment.seed for entry in self.entries))

    @property
    def folders(self) -> list[Path]:
        """The runs' folders."""
        return [self.folder / entry.folder for entry in self.entries]

    @property
    def folders_by_run(self) -> dict[tuple[str, int], Path]:
        """The runs' folders, by the rule's name and the seed."""
        keys = ((entry.name, entry.experiment.seed) for entry in self.entries)
        return dict(zip(keys, self.folders, strict=True))

    def prepare(self, *, resume: bool) -> list[Setup]:
        """Check every run; write nothing.

        :return: The set-up of each rule, with the first seed.
        """
        self.setups = [
            prepare(entry.experiment, folder, resume=resume)
            for entry, folder in zip(self.entries, self.folders, strict=True)
        ]
        return self.setups[:: len(self.seeds)]

    def carry_out(
        self, errors: Console, *, resume: bool
    ) -> tuple[list[tuple[str, list[Run]]], list[Failed]]:
        """Run what is not finished. A run that fails does not keep the others from running.

        :param errors: Where progress is shown.
        :param resume: Whether the folder holds the comparison already.
        :return: Name and runs, one a seed, of each rule whose runs all ended; and the failed runs.
        :raises FolderError: If somebody else has begun in the folder since it was checked.
        """
        runs: dict[str, list[Run]] = {}
        failed: list[Failed] = []
        total = sum(rounds_of(setup.experiment) for setup in self.setups)
        place = RunFolder(self.folder)
        with place.held(), warnings_as_lines(errors), Progress(errors, total=total) as progress:
            if not resume:
                place.check_new()
                self._write()
            for entry, folder, setup in zip(self.entries, self.folders, self.setups, strict=True):
                progress.now(entry.name, setup.experiment)
                try:
                    run = carry_out(setup, folder, resume=True, watch=progress)
                except (ValueError, FedAccordError) as error:
                    if isinstance(error, FolderError | CheckpointError):
                        raise
                    failed.append(Failed(entry.name, entry.experiment.seed, str(error)))
                    errors.print(f"Failed: {failed[-1]}", soft_wrap=True)
                    continue
                runs.setdefault(entry.name, []).append(dataclasses.replace(run, name=entry.name))
        whole = [(name, seeds) for name, seeds in runs.items() if len(seeds) == len(self.seeds)]
        return whole, failed

    def _write(self) -> None:
        """Write every configuration before the first round, so that all can be resumed."""
        for folder, setup in zip(self.folders, self.setups, strict=True):
            folder.mkdir(exist_ok=True)
            RunFolder(folder).write_experiment(setup.experiment)
        listed = [{"name": entry.name, "folder": entry.folder} for entry in self.entries]
        write_json(self.folder / FILE, listed)


def listed(folder: Path, *, hint: str = "") -> list[dict[str, str]]:
    """Name and folder of each run that a comparison lists.

    :param folder: The comparison's folder.
    :param hint: Added to the message where there is no comparison.
    :raises FolderError: If it holds none.
    :raises CheckpointError: If the list is damaged, or leads out of the folder.
    """
    file = folder / FILE
    if not file.is_file():
        raise FolderError(f"`{folder}` holds no comparison: there is no `{FILE}` in it.{hint}")
    entries = read_json(file)
    if not (isinstance(entries, list) and entries and all(_is_entry(each) for each in entries)):
        raise CheckpointError(
            f"{file} is damaged: it must list runs, each with a `name` and a `folder` inside "
            f"`{folder}`."
        )
    if len({each["folder"] for each in entries}) < len(entries):
        raise CheckpointError(f"{file} is damaged: it lists a folder twice.")
    return entries


def _is_entry(each: Any) -> bool:
    if not (isinstance(each, dict) and isinstance(each.get("name"), str)):
        return False
    folder = each.get("folder")
    return isinstance(folder, str) and folder not in ("", "..") and Path(folder).name == folder
