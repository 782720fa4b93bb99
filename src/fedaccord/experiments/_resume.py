"""Whether a folder can take a run, new or to be gone on with."""

from __future__ import annotations

from ..checkpoint import read_stamp
from ..data import Holdout, Partition
from ._experiment import Experiment
from ._folder import FolderError, RunFolder, content_of_split
from ._identity import digest, identity
from ._json import plain
from ._read import read_rounds
from ._table import Table, differences, to_table


def admit(experiment: Experiment, place: RunFolder, *, resume: bool) -> Experiment:
    """Check a folder for an experiment; nothing is written.

    :param experiment: What to run.
    :param place: Where to.
    :param resume: Whether the folder holds this experiment already, to be gone on with.
    :return: The experiment, with the reference that was found for it before.
    :raises FolderError: If the folder is in use, holds another run or cannot be written.
    :raises CheckpointError: If a file in it is damaged.
    """
    if not resume:
        place.check_new()
        return experiment
    place.check_resumable()
    experiment = _reconciled(experiment, place)
    for file in (place.environment_file, place.timing_file):
        place.read_sittings(file)
    read_rounds(place.records_file)
    _check_checkpoint(experiment, place)
    return experiment


def check_split(partition: Partition, holdout: Holdout, place: RunFolder) -> None:
    """Check that a folder's run was split as it would be now.

    :raises FolderError: If it was not.
    :raises CheckpointError: If the file is damaged.
    """
    if not place.split_file.exists():
        return  # stopped before it was written
    before, now = place.read_split(), plain(content_of_split(partition, holdout))
    if before["sha256"] != now["sha256"]:
        raise FolderError(
            f"`{place.split_file}` records another split than these settings make now: SHA-256 "
            f"{before['sha256'][:12]}... before, {now['sha256'][:12]}... now. The data, the file "
            f"or the library have changed. Choose another folder."
        )
    if before.get("held_back") != now.get("held_back"):
        raise FolderError(
            f"`{place.split_file}` records that clients kept back other samples than these "
            f"settings make them now. The file or the library have changed. Choose another folder."
        )


def _reconciled(experiment: Experiment, place: RunFolder) -> Experiment:
    """Check that an experiment is the one in the folder; adopt the reference found for it."""
    stored = place.read_experiment()
    if experiment.rule.lacks_reference and not stored.rule.lacks_reference:
        experiment = experiment.calibrated(_reference(to_table(stored.rule)))
    if changed := differences(identity(stored), identity(experiment)):
        raise FolderError(
            f"`{place.path}` holds a run with another configuration. Changed: "
            f"{'; '.join(changed)}. Resume with the old values, or choose another folder."
        )
    return experiment


def _check_checkpoint(experiment: Experiment, place: RunFolder) -> None:
    file = place.checkpoint_file
    if not file.exists():
        if place.summary_file.exists():
            raise FolderError(
                f"`{place.path}` holds a finished run without its checkpoint: `{file.name}` is "
                f"missing, so there is nothing to go on from. Choose another folder."
            )
        return  # stopped before the first one
    stamp = read_stamp(file)
    if stamp.configuration != digest(experiment):
        raise FolderError(
            f"`{file}` was saved by another configuration than the one in "
            f"`{place.experiment_file.name}` beside it. Restore that file as it was, or choose "
            f"another folder."
        )
    if stamp.round > experiment.rounds:
        raise FolderError(
            f"`rounds` is the total, and {stamp.round} are done in `{place.path}`. Got "
            f"{experiment.rounds}. Give at least {stamp.round}, or choose another folder."
        )


def _reference(rule: Table) -> tuple[float, ...]:
    """The first reference in a rule's table or one inside it."""
    if "reference" in rule:
        return tuple(rule["reference"])
    inner = (_reference(value) for value in rule.values() if isinstance(value, dict))
    return next((found for found in inner if found), ())
