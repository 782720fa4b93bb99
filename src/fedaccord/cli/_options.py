"""The options of a run, each of which changes one value of an experiment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from . import _completion as complete

F = TypeVar("F", bound=Callable[..., Any])

# option, key in the experiment, type, help
_SETTINGS: tuple[tuple[str, str, Any, str], ...] = (
    ("--partition", "partition.name", str, "How samples are split over clients."),
    ("--clients", "partition.num_clients", int, "Number of clients."),
    ("--samples-per-client", "partition.samples_per_client", int, "Training samples of each."),
    ("--alpha", "partition.alpha", float, "Concentration of a Dirichlet split; small is uneven."),
    ("--partition-seed", "partition.seed", int, "Seed of the split."),
    ("--test-fraction", "holdout.test", float, "Part of each client's samples to test it on."),
    ("--validation-fraction", "holdout.validation", float, "Likewise, to tune by."),
    ("--held-out-clients", "holdout.clients", float, "Part of the clients that never train."),
    (
        "--evaluate-on",
        "evaluate_on",
        str,
        "The test rows, or the validation rows: test, validation.",
    ),
    ("--model", "model.name", str, "What is trained."),
    ("--dropout", "model.dropout", float, "Dropout of the model, where it has any."),
    ("--rounds", "rounds", int, "Number of rounds in all; with --resume, more than before."),
    ("--clients-per-round", "sampler.count", int, "How many clients take part in a round."),
    ("--fraction", "sampler.fraction", float, "Instead: which part of the clients, in (0, 1]."),
    ("--lr", "local.lr", float, "Clients' learning rate."),
    ("--batch-size", "local.batch_size", int, "Samples in a minibatch."),
    ("--epochs", "local.epochs", int, "Passes over a client's data in a round."),
    ("--steps", "local.steps", int, "Instead: minibatches in a round."),
    ("--momentum", "local.momentum", float, "Clients' momentum."),
    ("--weight-decay", "local.weight_decay", float, "Clients' weight decay."),
    ("--lr-decay", "local.lr_decay", float, "Factor of the learning rate a round."),
    ("--server-lr", "rule.server_lr", float, "Server learning rate of every rule named."),
    ("--evaluate-every", "evaluate_every", int, "Rounds between evaluations; 0: only at the end."),
    ("--on-invalid", "policy.on_invalid", str, "A contribution that cannot be used: raise, drop."),
    ("--on-empty", "policy.on_empty", str, "A round without contributions: raise, skip."),
    ("--calibration-rounds", "calibration.rounds", int, "Rounds to find a missing reference by."),
    ("--calibration-margin", "calibration.margin", float, "What is added to the largest loss."),
    ("--workers", "workers", int, "Threads that train clients; as many as cores if not given."),
    ("--device", "device", str, "Where models compute, for example cpu or cuda."),
    ("--data-dir", "data_dir", str, "Folder of data that do not come with the package."),
    ("--dataset", "dataset", str, "The data; its usual settings are the defaults of the rest."),
)

_COMPLETED = {
    "--partition": complete.partitions,
    "--model": complete.models,
    "--dataset": complete.datasets,
}


def _parameter(option: str) -> str:
    return option.removeprefix("--").replace("-", "_")


OPTION_OF = {"seed": "--seed", **{key: option for option, key, _, _ in _SETTINGS}}
"""The option that changes a value, by the value's key."""


def settings(command: F) -> F:
    """Add the options of an experiment, apart from rule and seed, to a command."""
    command = click.option(
        "--set",
        "sets",
        metavar="KEY=VALUE",
        multiple=True,
        help="Any other value of the experiment, for example local.report=all; may be repeated.",
    )(command)
    for option, _, kind, text in reversed(_SETTINGS):
        known = _COMPLETED.get(option)
        completing = complete.names(known) if known else None
        command = click.option(option, type=kind, help=text, shell_complete=completing)(command)
    return click.option(
        "--preset",
        help="Start from these settings; `fedaccord list presets` shows them.",
        shell_complete=complete.names(complete.presets),
    )(command)


def place(command: F) -> F:
    """Add ``--out`` and ``--resume`` to a command."""
    command = click.option("--resume", is_flag=True, help="Go on with the run in --out.")(command)
    return click.option(
        "--out",
        type=click.Path(path_type=Path),
        help="The run's folder; must not be in use. By default runs/DATASET-RULE.",
    )(command)


def machine(command: F) -> F:
    """Add ``--json`` to a command."""
    return click.option(
        "--json", "as_json", is_flag=True, help="Print one JSON value, and nothing else."
    )(command)


def changes(given: Mapping[str, Any]) -> dict[str, Any]:
    """The values given by options, by key in the experiment.

    :param given: The command's parameters; ``None`` for those not given.
    """
    keys = {_parameter(option): key for option, key, _, _ in _SETTINGS}
    return {
        keys[name]: value for name, value in given.items() if name in keys and value is not None
    }
