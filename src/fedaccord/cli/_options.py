"""The options of a run, each of which changes one value of an experiment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

# option, key in the experiment, type, help
_SETTINGS: tuple[tuple[str, str, Any, str], ...] = (
    ("--partition", "partition.name", str, "How samples are split over clients."),
    ("--clients", "partition.num_clients", int, "Number of clients."),
    ("--samples-per-client", "partition.samples_per_client", int, "Training samples of each."),
    ("--alpha", "partition.alpha", float, "Concentration of a Dirichlet split; small is uneven."),
    ("--partition-seed", "partition.seed", int, "Seed of the split."),
    ("--model", "model.name", str, "What is trained."),
    ("--dropout", "model.dropout", float, "Dropout of the model, where it has any."),
    ("--rounds", "rounds", int, "Number of rounds."),
    ("--clients-per-round", "sampler.count", int, "How many clients take part in a round."),
    ("--fraction", "sampler.fraction", float, "Instead: which part of the clients, in (0, 1]."),
    ("--lr", "local.lr", float, "Clients' learning rate."),
    ("--batch-size", "local.batch_size", int, "Samples in a minibatch."),
    ("--epochs", "local.epochs", int, "Passes over a client's data in a round."),
    ("--steps", "local.steps", int, "Instead: minibatches in a round."),
    ("--momentum", "local.momentum", float, "Clients' momentum."),
    ("--weight-decay", "local.weight_decay", float, "Clients' weight decay."),
    ("--lr-decay", "local.lr_decay", float, "Factor of the learning rate a round."),
    ("--evaluate-every", "evaluate_every", int, "Rounds between evaluations; 0: only at the end."),
    ("--on-invalid", "policy.on_invalid", str, "A contribution that cannot be used: raise, drop."),
    ("--on-empty", "policy.on_empty", str, "A round without contributions: raise, skip."),
    ("--calibration-rounds", "calibration.rounds", int, "Rounds to find a missing reference by."),
    ("--calibration-margin", "calibration.margin", float, "What is added to the largest loss."),
    ("--workers", "workers", int, "Threads that train clients; as many as cores if not given."),
    ("--device", "device", str, "Where models compute, for example cpu or cuda."),
)


def _parameter(option: str) -> str:
    return option.removeprefix("--").replace("-", "_")


def settings(command: F) -> F:
    """Add the options of an experiment, apart from rule and seed, to a command."""
    for option, _, kind, text in reversed(_SETTINGS):
        command = click.option(option, type=kind, help=text)(command)
    command = click.option(
        "--server-lr", type=float, help="Server learning rate of every rule named."
    )(command)
    return click.option(
        "--dataset", help="The data; its usual settings are the defaults of the rest."
    )(command)


def place(command: F) -> F:
    """Add ``--out`` and ``--resume`` to a command."""
    command = click.option("--resume", is_flag=True, help="Go on with the run in --out.")(command)
    return click.option(
        "--out",
        type=click.Path(path_type=Path),
        help="The run's folder; must not be in use. By default runs/DATASET-RULE.",
    )(command)


def changes(given: Mapping[str, Any]) -> dict[str, Any]:
    """The values given on the command line, by key in the experiment.

    :param given: The command's parameters; ``None`` for those not given.
    """
    keys = {_parameter(option): key for option, key, _, _ in _SETTINGS}
    return {
        keys[name]: value for name, value in given.items() if name in keys and value is not None
    }
