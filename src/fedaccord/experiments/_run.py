"""Carrying out one experiment in one folder."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from ..checkpoint import load, save, save_model
from ..errors import StaleHistoryError
from ..files import naming
from ..rule import Rule
from ..simulation import simulate, start
from ..training import TrainingState
from ._environment import environment
from ._experiment import Experiment
from ._folder import RunFolder
from ._identity import digest
from ._json import write_json
from ._read import Run, read_rounds
from ._records import keep_rounds, line_of, record_of
from ._resume import admit, check_split
from ._setup import Setup, set_up
from ._watch import Watch, unwatched

CHECKPOINT_SECONDS = 10.0


def prepare(experiment: Experiment, folder: Path | str, *, resume: bool = False) -> Setup:
    """Check an experiment and its folder; nothing is written and nothing trained.

    :param experiment: What to run.
    :param folder: Where to.
    :param resume: Whether the folder holds this experiment already, to be gone on with.
    :raises FolderError: If the folder is in use, holds another run or cannot be written.
    :raises CheckpointError: If a file in the folder is damaged.
    :raises ValueError: If something in the experiment does not fit together.
    """
    place = RunFolder(Path(folder))
    setup = set_up(admit(experiment, place, resume=resume))
    if resume:
        check_split(setup.partition, setup.holdout, place)
    return setup


def run(
    experiment: Experiment,
    folder: Path | str,
    *,
    resume: bool = False,
    watch: Watch = unwatched,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> Run:
    """Carry out an experiment, or what is left of it.

    A run that was interrupted and resumed leaves the same records and the same model, byte for
    byte, as one that was not.

    :param experiment: What to run.
    :param folder: Where to; made if it does not exist.
    :param resume: Go on with the run in the folder.
    :param watch: Told about every round.
    :param checkpoint_seconds: Least time between checkpoints; 0 means one after every round. There
        is always one at the end, and one when the run is interrupted or fails.
    :return: The run's files, read.
    :raises FolderError: As :func:`prepare`.
    :raises ValueError: As :func:`prepare`, or if the model answers with NaN.
    :raises CheckpointError: If checkpoint and records of the folder do not agree.
    :raises FedAccordError: Whatever stops a round.
    """
    setup = prepare(experiment, folder, resume=resume)
    return carry_out(
        setup, folder, resume=resume, watch=watch, checkpoint_seconds=checkpoint_seconds
    )


def carry_out(
    setup: Setup,
    folder: Path | str,
    *,
    resume: bool = False,
    watch: Watch = unwatched,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> Run:
    """Carry out what :func:`prepare` checked; see :func:`run`."""
    place = RunFolder(Path(folder))
    with place.held():
        _carry_out(setup, place, resume, watch, checkpoint_seconds)
    return Run.read(place.path)


def _carry_out(
    setup: Setup,
    place: RunFolder,
    resume: bool,  # noqa: FBT001 - private
    watch: Watch,
    checkpoint_seconds: float,
) -> None:
    # checked when it was prepared; somebody else may have come first since
    experiment = admit(setup.experiment, place, resume=resume)
    if resume:
        check_split(setup.partition, setup.holdout, place)
    place.write_experiment(experiment)  # before calibration, so that it can be resumed
    place.write_split(setup.partition, setup.holdout)
    if experiment.rule.lacks_reference:
        experiment = _calibrate(setup, watch)
        place.write_experiment(experiment)
    began = time.monotonic()
    training = _begin(setup, experiment, place)
    environments, timings = (
        place.read_sittings(file) for file in (place.environment_file, place.timing_file)
    )
    first = {"first_round": training.round}
    write_json(
        place.environment_file, [*environments, {**first, **environment(experiment.workers)}]
    )
    try:
        with naming(place.records_file), place.records_file.open("ab") as records:
            _rounds(setup, experiment, place, records, training, watch, checkpoint_seconds)
    finally:
        seconds = round(time.monotonic() - began, 3)
        write_json(place.timing_file, [*timings, {**first, "seconds": seconds}])


def _calibrate(setup: Setup, watch: Watch) -> Experiment:
    assert setup.experiment.calibration is not None
    total, done = setup.experiment.calibration.rounds, 0

    def tick() -> None:
        nonlocal done
        done += 1
        watch("calibration", done=done, of=total)

    return setup.calibrate(tick)


def _begin(setup: Setup, experiment: Experiment, place: RunFolder) -> TrainingState:
    """The state to go on from; the records are cut to it."""
    rule = experiment.rule.build()
    if not place.checkpoint_file.exists():
        keep_rounds(place.records_file, 0)
        return start(rule, setup.federation, seed=experiment.seed)
    training = load(place.checkpoint_file, rule)
    keep_rounds(place.records_file, training.round)
    if training.round < experiment.rounds:  # a shorter run's end is no longer the end
        for file in (place.model_file, place.summary_file):
            file.unlink(missing_ok=True)
    return training


def _rounds(
    setup: Setup,
    experiment: Experiment,
    place: RunFolder,
    records: BinaryIO,
    training: TrainingState,
    watch: Watch,
    checkpoint_seconds: float,
) -> None:
    rule = experiment.rule.build()
    results = simulate(
        rule,
        setup.federation,
        rounds=experiment.rounds,
        local=experiment.local,
        sampler=experiment.sampler,
        seed=experiment.seed,
        executor=setup.executor,
        training=training,
        policy=experiment.policy,
    )
    sampled = [record["asked"] for record in read_rounds(place.records_file)[0]]
    with _saved_in_the_end(experiment, place, records, training) as keep:
        last_saved = time.monotonic()
        for result in results:
            sampled.append(result.client_ids)
            done = result.training.round
            evaluation = None
            if experiment.evaluates_after(done):
                last = done == experiment.rounds
                evaluation = evaluation_of(setup, rule, result.training, sampled, last=last)
            records.write(line_of(record_of(result, evaluation)).encode())
            records.flush()
            now = time.monotonic()
            keep(result.training, now - last_saved >= checkpoint_seconds)
            if now - last_saved >= checkpoint_seconds:
                last_saved = time.monotonic()
            watch("training", done=done, of=experiment.rounds, evaluation=evaluation)
            training = result.training
    model = setup.federation.module(training, rule=rule)
    save_model(place.model_file, model.state_dict())
    write_json(place.summary_file, read_rounds(place.records_file)[1])


def evaluation_of(
    setup: Setup,
    rule: Rule[Any],
    training: TrainingState,
    sampled: Sequence[Sequence[int]],
    *,
    last: bool,
) -> Mapping[str, Any]:
    """What the model after a round achieved.

    :param setup: What is run.
    :param rule: The rule, which may evaluate another model than the last one.
    :param training: The state after the round.
    :param sampled: The clients of every round so far.
    :param last: Whether it is the run's last round.
    """
    model = setup.federation.module(training, rule=rule)
    return setup.evaluator(model, training, sampled=sampled, last=last)


@contextlib.contextmanager
def _saved_in_the_end(
    experiment: Experiment, place: RunFolder, records: BinaryIO, training: TrainingState
) -> Iterator[Callable[[TrainingState, bool], None]]:
    """Give a function that takes the newest state and saves it if told to; save the last one.

    Records reach the disk before the checkpoint that counts on them.
    """
    newest, configuration = training, digest(experiment)

    def save_now() -> None:
        os.fsync(records.fileno())
        save(place.checkpoint_file, newest, configuration=configuration)

    def keep(state: TrainingState, now: bool) -> None:  # noqa: FBT001
        nonlocal newest
        newest = state
        if now:
            save_now()

    try:
        yield keep
    finally:
        # stopped inside a round: the history may be the next state's already, and the checkpoint
        # before it stays
        with contextlib.suppress(StaleHistoryError):
            save_now()
