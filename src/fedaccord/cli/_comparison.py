"""Several runs that differ in rule and seed, and nothing else."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from ..experiments import Experiment, FolderError, Run, RunFolder, Setup, carry_out, prepare
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
    def read(cls, folder: Path) -> Comparison:
        """Read the comparison in a folder.

        :raises FolderError: If there is none.
        """
        file = folder / FILE
        if not file.is_file():
            raise FolderError(
                f"`{folder}` holds no comparison: there is no `{FILE}` in it. "
                f"Leave `--resume` out to start one."
            )
        listed = json.loads(file.read_text(encoding="utf-8"))
        entries = [
            Entry(
                each["name"], each["folder"], RunFolder(folder / each["folder"]).read_experiment()
            )
            for each in listed
        ]
        return cls(folder, tuple(entries))

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of the runs."""
        return tuple(dict.fromkeys(entry.experiment.seed for entry in self.entries))

    def prepare(self, *, resume: bool) -> list[Setup]:
        """Check every run; write nothing.

        :return: The set-up of each rule, with the first seed.
        """
        self.setups = [
            prepare(entry.experiment, self.folder / entry.folder, resume=resume)
            for entry in self.entries
        ]
        return self.setups[:: len(self.seeds)]

    def carry_out(self, errors: Console) -> list[tuple[str, list[Run]]]:
        """Run what is not finished.

        :param errors: Where progress is shown.
        :return: Name and runs, one a seed, of each rule.
        """
        self._write()
        runs: dict[str, list[Run]] = {}
        total = sum(rounds_of(setup.experiment) for setup in self.setups)
        with warnings_as_lines(errors), Progress(errors, total=total) as progress:
            for entry, setup in zip(self.entries, self.setups, strict=True):
                progress.now(entry.name, setup.experiment)
                run = carry_out(setup, self.folder / entry.folder, resume=True, watch=progress)
                runs.setdefault(entry.name, []).append(dataclasses.replace(run, name=entry.name))
        return list(runs.items())

    def _write(self) -> None:
        """Write every configuration before the first round, so that all can be resumed."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for entry, setup in zip(self.entries, self.setups, strict=True):
            place = RunFolder(self.folder / entry.folder)
            place.path.mkdir(exist_ok=True)
            place.write_experiment(setup.experiment)
        listed = [{"name": entry.name, "folder": entry.folder} for entry in self.entries]
        RunFolder(self.folder).write_json(FILE, listed)
