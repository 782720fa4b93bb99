"""What a user sees before and after a run."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

from rich.console import Console
from rich.table import Table

from ..experiments import RuleChoice, Run, Setup, legend, measures, over_seeds, remarks, spell
from ..rules import StalledWarning

WIDTH_OFF_TERMINAL = 120


def console(*, to_errors: bool = False, to: TextIO | None = None) -> Console:
    """Where to print; wide enough for tables if it is no terminal.

    :param to_errors: Standard error instead of standard output.
    :param to: A file instead of either.
    """
    found = Console(stderr=to_errors, file=to, highlight=False, markup=False, emoji=False)
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
    sizes = sorted({min(split.sizes), max(split.sizes)})
    lines.add_row("data", f"{dataset.name}: {dataset.title}, licence {dataset.licence}")
    lines.add_row(
        "split",
        f"{experiment.partition.name}{options}; {' to '.join(map(str, sizes))} samples each, "
        f"{len(split.unassigned)} unused, {len(split.repeated)} shared",
    )
    lines.add_row("clients", f"{first.clients_a_round} of {len(split)} in each round")
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


def results_table(runs: Sequence[tuple[str, Sequence[Run]]], *, title: str = "") -> Table:
    """One row a rule; mean and sample deviation where there are several seeds.

    :param runs: Name and runs, one a seed, of each rule.
    :param title: Above the table.
    """
    table = Table(title=title or None, title_justify="left", header_style="bold", box=None)
    table.add_column("rule")
    for measure in measures(runs[0][1][0].final):
        table.add_column(measure.name, justify="right")
    for name, seeds in runs:
        cells = []
        for each in zip(*(measures(run.final) for run in seeds), strict=True):
            mean, deviation = over_seeds([measure.value for measure in each])
            text = spell(mean, fraction=each[0].fraction)
            if deviation is not None:
                text += f" ± {spell(deviation, fraction=each[0].fraction).removesuffix(' %')}"
            cells.append(text)
        table.add_row(name, *cells)
    return table


def show_results(out: Console, runs: Sequence[tuple[str, Sequence[Run]]]) -> None:
    """Print the table, what its numbers are about, and everything that did not go as usual."""
    out.print()
    out.print(results_table(runs))
    out.print()
    for line in legend(runs[0][1][0].final):
        out.print(line)
    if (count := len(runs[0][1])) > 1:
        out.print(f"Mean ± sample standard deviation over {count} seeds.")
    if "names" in runs[0][1][0].final.get("clients", {}):
        out.print()
        out.print(named_clients_table(runs))
        out.print()
    show_remarks(out, runs)


def named_clients_table(runs: Sequence[tuple[str, Sequence[Run]]]) -> Table:
    """Accuracy of each client that has a name, mean over seeds, with its number of test rows."""
    clients = runs[0][1][0].final["clients"]
    table = Table(header_style="bold", box=None)
    table.add_column("accuracy at")
    for name, rows in zip(clients["names"], clients["test_rows"], strict=True):
        table.add_column(f"{name} ({rows} rows)", justify="right")
    for name, seeds in runs:
        each = zip(*(run.final["clients"]["accuracies"] for run in seeds), strict=True)
        known = [[value for value in values if value is not None] for values in each]
        means = [spell(over_seeds(v)[0], fraction=True) if v else "none" for v in known]
        table.add_row(name, *means)
    return table


def show_remarks(out: Console, runs: Sequence[tuple[str, Sequence[Run]]]) -> None:
    """Print what was dropped, skipped or fell back in each run."""
    for name, seeds in runs:
        for run in seeds:
            who = f"{name}, seed {run.experiment.seed}" if len(seeds) > 1 else name
            notes = remarks(run.summary)
            out.print(f"{who}: {'; '.join(notes)}." if notes else f"{who}: {_clean(run)}.")


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


def _clean(run: Run) -> str:
    used = run.summary["contributions"]["used"]
    return f"all {used} contributions used, nothing dropped, no round empty, no fallback"


def _spelt_out(rule: RuleChoice) -> str:
    options = [
        f"{key}={f'({_spelt_out(value)})' if isinstance(value, RuleChoice) else value}"
        for key, value in rule.options.items()
        if value is not None
    ]
    return f"{rule.name} ({', '.join(options)})" if options else rule.name


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'s' * (number != 1)}"


def _training(setup: Setup) -> str:
    local = setup.experiment.local
    length = _count(local.steps, "step") if local.steps else _count(local.epochs or 1, "epoch")
    parts = [f"clients: SGD, lr {local.lr:g}, batch {local.batch_size}, {length}"]
    parts += [f"momentum {local.momentum:g}"] if local.momentum else []
    parts += [f"weight decay {local.weight_decay:g}"] if local.weight_decay else []
    parts += [f"lr decay {local.lr_decay:g}"] if local.lr_decay != 1 else []
    return ", ".join(parts)


def _calibration(setup: Setup) -> str:
    settings = setup.experiment.calibration
    assert settings is not None
    return (
        f"reference: found before by {_count(settings.rounds, 'round')} of Uniform, whose model "
        f"is thrown away, plus {settings.margin:g}"
    )
