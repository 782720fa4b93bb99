"""What a user sees before a run, and while it goes on."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

from rich.console import Console
from rich.table import Table

from ..experiments import RuleChoice, Setup, count, span
from ..rules import StalledWarning

WIDTH_OFF_TERMINAL = 120


def console(*, to_errors: bool = False, to: TextIO | None = None, quiet: bool = False) -> Console:
    """Where to print; wide enough for tables if it is no terminal.

    :param to_errors: Standard error instead of standard output.
    :param to: A file instead of either.
    :param quiet: Print nothing, since a program reads the result.
    """
    found = Console(
        stderr=to_errors, file=to, quiet=quiet, highlight=False, markup=False, emoji=False
    )
    if not found.is_terminal:
        found.width = WIDTH_OFF_TERMINAL
    return found


def show_header(out: Console, setups: Sequence[Setup], *, seeds: Sequence[int], at: Path) -> None:
    """Say what will be done.

    :param out: Where to print.
    :param setups: One for each rule; alike but for the rule and local training.
    :param seeds: The seeds of the runs.
    :param at: The folder.
    """
    first = setups[0]
    experiment, dataset, split = first.experiment, first.dataset, first.partition
    lines = Table.grid(padding=(0, 2))
    options = "".join(f", {key} {value}" for key, value in experiment.partition.options.items())
    lines.add_row("data", f"{dataset.name}: {dataset.title}, licence {dataset.licence}")
    lines.add_row(
        "split",
        f"{experiment.partition.name}{options}; {span(split.sizes)} samples each, "
        f"{len(split.unassigned)} unused, {len(split.repeated)} shared",
    )
    lines.add_row("clients", _clients(first))
    lines.add_row("measured", _measured(first))
    lines.add_row("model", f"{experiment.model.name}, {first.federation.spec.dim:,} parameters")
    for setup in setups:
        lines.add_row("rule", f"{_spelt_out(setup.experiment.rule)}")
        lines.add_row("", _training(setup))
        if setup.experiment.rule.lacks_reference:
            lines.add_row("", _calibration(setup))
    last = f", evaluated every {experiment.evaluate_every}" if experiment.evaluate_every else ""
    lines.add_row("rounds", f"{experiment.rounds}{last}")
    lines.add_row("seed" + "s" * (len(seeds) > 1), ", ".join(map(str, seeds)))
    lines.add_row("folder", str(at))
    out.print(lines)


@contextlib.contextmanager
def warnings_as_lines(out: Console) -> Iterator[None]:
    """Print the library's warnings as lines; the first of a kind, since the summary counts them."""
    shown: set[type[Warning]] = set()

    def show(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
        if category not in shown:
            shown.add(category)
            out.print(f"Warning: {message}", soft_wrap=True)

    with warnings.catch_warnings():
        warnings.simplefilter("always", StalledWarning)
        warnings.showwarning = show
        yield


def _spelt_out(rule: RuleChoice) -> str:
    options = [
        f"{key}={f'({_spelt_out(value)})' if isinstance(value, RuleChoice) else value}"
        for key, value in rule.options.items()
        if value is not None
    ]
    return f"{rule.name} ({', '.join(options)})" if options else rule.name


def _clients(setup: Setup) -> str:
    held = setup.holdout
    text = f"{setup.clients_a_round} of {len(held.seen)} in each round"
    return text + (f"; {len(held.unseen)} more never train" if held.unseen else "")


def _measured(setup: Setup) -> str:
    """On what, and what clients keep back for it."""
    people, held = setup.evaluator.population, setup.experiment.holdout
    parts = [f"{people.tests_are}, {len(people.tests):,} rows"]
    if people.own_rows is not None:
        sizes = [len(rows) for rows in people.own_rows]
        parts.append(f"clients' own {people.rows} rows, {span(sizes)} each")
    if held.test or held.validation:
        parts.append(
            f"clients keep back {100 * held.test:g} % to test, {100 * held.validation:g} % to "
            f"validate"
        )
    if shared := len(setup.holdout.shared):
        parts.append(f"{count(shared, 'sample')} that one client trains on are another's test rows")
    return "; ".join(parts)


def _training(setup: Setup) -> str:
    local = setup.experiment.local
    length = count(local.steps, "step") if local.steps else count(local.epochs or 1, "epoch")
    parts = [f"clients: SGD, lr {local.lr:g}, batch {local.batch_size}, {length}"]
    parts += [f"momentum {local.momentum:g}"] if local.momentum else []
    parts += [f"weight decay {local.weight_decay:g}"] if local.weight_decay else []
    parts += [f"lr decay {local.lr_decay:g}"] if local.lr_decay != 1 else []
    return ", ".join(parts)


def _calibration(setup: Setup) -> str:
    settings = setup.experiment.calibration
    assert settings is not None
    return (
        f"reference: found before by {count(settings.rounds, 'round')} of Uniform, whose model "
        f"is thrown away, plus {settings.margin:g}"
    )
