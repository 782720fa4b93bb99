"""Whether the files in a run's folder belong together, and to what they say they come from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from ..checkpoint import load, read_stamp
from ..data import load_partition
from ..errors import FedAccordError
from ..simulation import simulate
from ..training import TrainingState
from ._experiment import Experiment
from ._folder import RunFolder, content_of_split
from ._identity import digest
from ._json import plain, read_json
from ._measures import count
from ._read import read_rounds
from ._records import Record, line_of, lines_of, record_of
from ._run import evaluation_of
from ._setup import Setup, set_up
from ._summary import summarise
from ._table import from_table, to_table


@dataclass(frozen=True)
class Check:
    """One thing that was looked at.

    :param name: What.
    :param outcome: ``"good"``, ``"bad"``, or ``"open"`` where there is nothing to check yet.
    :param detail: What was found.
    """

    name: str
    outcome: Literal["good", "bad", "open"]
    detail: str


def verify(folder: Path | str, *, rerun: int = 0) -> tuple[Check, ...]:
    """Check a run's folder; nothing is written.

    :param folder: The folder.
    :param rerun: Train so many of its first rounds again, and compare their records byte for byte.
        Another machine or release may differ in the last digits.
    :return: A check for each thing that was looked at, in a fixed order.
    :raises FolderError: If the folder holds no run.
    :raises ValueError: If ``rerun`` is negative.
    """
    if rerun < 0:
        raise ValueError(f"`rerun` must be at least 0. Got {rerun}.")
    place = RunFolder(Path(folder))
    place.check_readable()
    files = _Files(place)
    steps: list[tuple[str, Callable[[], str]]] = [
        ("configuration", files.configuration),
        ("split", files.split),
        ("records", files.rounds),
        ("checkpoint", files.checkpoint),
        ("model", files.model),
        ("summary", files.summary),
        ("sittings", files.sittings),
    ]
    if rerun:
        steps.append(("rerun", lambda: files.rerun(rerun)))
    return tuple(_carried_out(name, step) for name, step in steps)


class _BadError(Exception):
    """A check failed."""


class _OpenError(Exception):
    """There is nothing to check yet."""


def _carried_out(name: str, step: Callable[[], str]) -> Check:
    try:
        return Check(name, "good", step())
    except _OpenError as reason:
        return Check(name, "open", str(reason))
    except (_BadError, FedAccordError, ValueError) as error:
        return Check(name, "bad", str(error))
    except OSError as error:
        return Check(name, "bad", f"{error.filename}: {error.strerror}.")


class _Files:
    """The files of one folder, each read once."""

    def __init__(self, place: RunFolder) -> None:
        self.place = place

    @cached_property
    def experiment(self) -> Experiment:
        return self.place.read_experiment()

    @cached_property
    def setup(self) -> Setup:
        return set_up(self.experiment)

    @cached_property
    def records(self) -> list[Record]:
        return read_rounds(self.place.records_file)[0]

    @cached_property
    def training(self) -> TrainingState:
        return load(self.place.checkpoint_file, self.experiment.rule.build())

    @property
    def finished(self) -> bool:
        return len(self.records) >= self.experiment.rounds

    def configuration(self) -> str:
        table = self.place.read_table()
        _require(
            to_table(from_table(table)) == table,
            f"{self.place.experiment_file} does not spell every value out.",
        )
        return f"{digest(self.experiment)[:12]}..., {self.experiment.rule}"

    def split(self) -> str:
        found, expected = (
            self.place.read_split(),
            plain(content_of_split(self.setup.partition, self.setup.holdout)),
        )
        wrong = [key for key in {**expected, **found} if found.get(key) != expected.get(key)]
        told = ", ".join(f"`{key}`" for key in wrong)
        _require(
            not wrong, f"{self.place.split_file} is not what the configuration makes; see {told}."
        )
        if self.place.partition_file.exists():
            kept = load_partition(self.place.partition_file).digest()
            _require(
                kept == expected["sha256"], f"{self.place.partition_file} holds another split."
            )
        return f"SHA-256 {expected['sha256'][:12]}..., made again"

    def rounds(self) -> str:
        done, wanted = len(self.records), self.experiment.rounds
        _require(
            done <= wanted,
            f"{self.place.records_file} holds {count(done, 'round')}, and the run has {wanted}.",
        )
        return f"{done} of {count(wanted, 'round')}"

    def checkpoint(self) -> str:
        file = self.place.checkpoint_file
        if not file.exists() and not self.finished:
            raise _OpenError("not written yet")
        _require(file.exists(), f"{file} is missing.")
        _require(
            read_stamp(file).configuration == digest(self.experiment),
            f"{file} was saved by another configuration.",
        )
        _require(
            self.training.round <= len(self.records),
            f"{file} is after {count(self.training.round, 'round')}, and {len(self.records)} "
            f"are recorded.",
        )
        return f"after {count(self.training.round, 'round')}, checksum right"

    def model(self) -> str:
        file = self.place.model_file
        if not self.finished:
            _require(not file.exists(), f"{file} is there, and the run has not ended.")
            raise _OpenError("the run has not ended")
        _require(file.exists(), f"{file} is missing.")
        try:
            found = load_file(file)
        except SafetensorError as error:
            raise _BadError(f"{file} is damaged: {error}.") from error
        rule = self.experiment.rule.build()
        expected = self.setup.federation.module(self.training, rule=rule).state_dict()
        same = found.keys() == expected.keys() and all(
            torch.equal(found[name], value.cpu()) for name, value in expected.items()
        )
        _require(same, f"{file} is not the model of the checkpoint.")
        return "that of the checkpoint"

    def summary(self) -> str:
        file = self.place.summary_file
        if not self.finished:
            raise _OpenError("the run has not ended")
        _require(file.exists(), f"{file} is missing.")
        found, expected = read_json(file), plain(summarise(self.records))
        _require(found == expected, f"{file} is not what the records amount to.")
        return "what the records amount to"

    def sittings(self) -> str:
        files = (self.place.environment_file, self.place.timing_file)
        counts = [len(self.place.read_sittings(file)) for file in files]
        return f"{counts[0]} started, {counts[1]} ended"

    def rerun(self, rounds: int) -> str:
        experiment, lines = self.experiment, lines_of(self.place.records_file)
        if experiment.rule.lacks_reference:
            raise _OpenError("the reference has not been found yet")
        length = min(rounds, len(self.records))
        rule = experiment.rule.build()
        results = simulate(
            rule,
            self.setup.federation,
            rounds=length,
            local=experiment.local,
            sampler=experiment.sampler,
            seed=experiment.seed,
            executor=self.setup.executor,
            policy=experiment.policy,
        )
        for result, record, line in zip(results, self.records, lines, strict=False):
            training = result.training
            sampled = [each["asked"] for each in self.records[: training.round]]
            evaluations: list[Mapping[str, Any] | None] = [None]
            if "evaluation" in record:  # perhaps as the last round of a run that was made longer
                evaluations = [
                    evaluation_of(self.setup, rule, training, sampled, last=last)
                    for last in (training.round == experiment.rounds, True)
                ]
            again = [line_of(record_of(result, each)).encode() for each in evaluations]
            _require(line + b"\n" in again, f"round {result.round} came out differently.")
        return f"the same bytes in the first {count(length, 'round')}"


def _require(good: bool, message: str) -> None:  # noqa: FBT001
    if not good:
        raise _BadError(message)
