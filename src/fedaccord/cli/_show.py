"""What a user sees before and after a run."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console
from rich.table import Table

from ..experiments import (
    RuleChoice,
    Run,
    Setup,
    count,
    legend,
    measures,
    of_clients,
    over_seeds,
    remarks,
    span,
    spell,
    subject,
)
from ..rules import StalledWarning

WIDTH_OFF_TERMINAL = 120
MOST_NAMED = 12  # clients that still make a table of one column each


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


def show_results(
    out: Console, runs: Sequence[tuple[str, Sequence[Run]]], *, others: bool = True
) -> None:
    """Print the table, what its numbers are about, and everything that did not go as usual.

    :param others: Whether to show other models and other clients too.
    """
    out.print()
    out.print(results_table(runs))
    out.print()
    for line in legend(runs[0][1][0].final):
        out.print(line)
    if (count := len(runs[0][1])) > 1:
        out.print(f"Mean ± sample standard deviation over {count} seeds.")
    clients = runs[0][1][0].final.get("clients", {})
    if "rows" in clients and len(clients["names"]) <= MOST_NAMED:
        out.print()
        out.print(named_clients_table(runs))
    if others and any(run.final.get("also") for _, seeds in runs for run in seeds):
        out.print()
        out.print("Other models and other clients", style="bold")
        out.print(others_table(runs))
    out.print()
    show_remarks(out, runs)


def named_clients_table(runs: Sequence[tuple[str, Sequence[Run]]]) -> Table:
    """The value of each client with rows of its own, mean over seeds, and its number of rows."""
    clients = runs[0][1][0].final["clients"]
    fraction = clients["quantity"] == "accuracy"
    table = Table(header_style="bold", box=None)
    table.add_column(f"{clients['quantity']} at")
    for name, rows in zip(clients["names"], clients["rows"], strict=True):
        table.add_column(f"{name} ({count(rows, 'row')})", justify="right")
    for name, seeds in runs:
        each = zip(*(run.final["clients"]["values"] for run in seeds), strict=True)
        known = [[value for value in values if value is not None] for values in each]
        means = [spell(over_seeds(v)[0], fraction=fraction) if v else "none" for v in known]
        table.add_row(name, *means)
    return table


def others_table(runs: Sequence[tuple[str, Sequence[Run]]]) -> Table:
    """What was measured beside the global model on all clients: a row a rule and subject."""
    table = Table(header_style="bold", box=None)
    for head in ("rule", "what"):
        table.add_column(head, overflow="fold")
    heads = ("clients", "mean", "worst 10 %", "spread", "Jain")
    for head in heads:
        table.add_column(head, justify="right", no_wrap=True)
    for name, seeds in runs:
        by_subject: dict[str, list[Mapping[str, Any]]] = {}
        for run in seeds:
            for block in run.final.get("also", ()):
                by_subject.setdefault(subject(block), []).append(block)
        for what, blocks in by_subject.items():
            numbers = zip(*(of_clients(block) for block in blocks), strict=True)
            cells = [
                spell(over_seeds([m.value for m in each])[0], fraction=each[0].fraction)
                for each in numbers
            ]
            clients = span([block["summary"]["num_clients"] for block in blocks])
            table.add_row(name, what, clients, *cells)
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
