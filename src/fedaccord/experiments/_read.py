"""A run's folder, read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import CheckpointError
from ._experiment import Experiment
from ._folder import RunFolder
from ._measures import legend, measures
from ._records import Record, read_records
from ._summary import summarise


def read_rounds(file: Path) -> tuple[list[Record], dict[str, Any]]:
    """Read a file of records, and what they amount to.

    :raises CheckpointError: If it is damaged.
    """
    records = read_records(file)
    try:
        summary = summarise(records)
        for evaluation in (record["evaluation"] for record in records if "evaluation" in record):
            measures(evaluation)
            legend(evaluation)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise CheckpointError(
            f"{file} holds rounds that this release cannot read: a value is missing or of the "
            f"wrong kind."
        ) from error
    return records, summary


@dataclass(frozen=True)
class Run:
    """What a run left in its folder.

    :param name: What to call it, for example ``"FedPCD"``.
    :param experiment: Its configuration.
    :param records: One mapping a round.
    :param summary: Counts and final numbers; of the rounds so far, if the run is not finished.
    :param split: What the split of the data amounts to.
    """

    name: str
    experiment: Experiment
    records: tuple[Record, ...]
    summary: Mapping[str, Any]
    split: Mapping[str, Any]

    @classmethod
    def read(cls, folder: Path | str, *, name: str | None = None) -> Run:
        """Read a folder.

        :param folder: The folder.
        :param name: What to call the run; its rule, with what differs from the defaults, if not
            given.
        :raises FolderError: If it holds no run.
        :raises CheckpointError: If a file is damaged.
        """
        place = RunFolder(Path(folder))
        place.check_readable()
        experiment = place.read_experiment()
        records, summary = read_rounds(place.records_file)
        name = name or str(experiment.rule)
        return cls(name, experiment, tuple(records), summary, place.read_split())

    @property
    def evaluations(self) -> tuple[tuple[int, Mapping[str, Any]], ...]:
        """Every evaluation, after the number of rounds it came after."""
        return tuple((r["round"] + 1, r["evaluation"]) for r in self.records if "evaluation" in r)

    @property
    def final(self) -> Mapping[str, Any]:
        """The last evaluation.

        :raises ValueError: If there is none yet.
        """
        if not self.evaluations:
            raise ValueError(f"{self.name} has no evaluation yet.")
        return self.evaluations[-1][1]

    @property
    def finished(self) -> bool:
        """Whether all its rounds are done."""
        return len(self.records) == self.experiment.rounds
