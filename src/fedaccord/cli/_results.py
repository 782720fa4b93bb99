"""What a user sees after a run: tables, what their numbers are about, what went wrong."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from ..experiments import (
    Run,
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
from ..metrics import Gain, gain_over_local

ALONE = "LocalOnly"
MEAN_WORST = ("mean", "worst")
MOST_NAMED = 12  # clients that still make a table of one column each


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
    # who of the clients was sampled matters to one run; between rules it is the same
    every = len(runs) == 1
    if others and any(_also(run, every=every) for _, seeds in runs for run in seeds):
        out.print()
        out.print("Other models and other clients", style="bold")
        out.print(others_table(runs, every=every))
    if others and (gains := gains_table(runs)) is not None:
        out.print()
        out.print("Gain over training alone", style="bold")
        out.print(gains)
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


def others_table(runs: Sequence[tuple[str, Sequence[Run]]], *, every: bool) -> Table:
    """What was measured beside the global model on all clients: a row a rule and subject.

    :param every: Whether parts of the clients that train are shown too.
    """
    table = Table(header_style="bold", box=None)
    for head in ("rule", "what"):
        table.add_column(head, overflow="fold")
    heads = ("clients", "mean", "worst 10 %", "spread", "Jain")
    for head in heads:
        table.add_column(head, justify="right", no_wrap=True)
    for name, seeds in runs:
        by_subject: dict[str, list[Mapping[str, Any]]] = {}
        for run in seeds:
            for block in _also(run, every=every):
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


def _also(run: Run, *, every: bool) -> list[Mapping[str, Any]]:
    """What stands beside the main numbers; parts of the clients that train have no values there."""
    return [block for block in run.final.get("also", ()) if every or "values" in block]


def gains_table(runs: Sequence[tuple[str, Sequence[Run]]]) -> Table | None:
    """What clients gain by each rule over training alone; ``None`` where nobody trained alone."""
    alone = [seeds for _, seeds in runs if seeds[0].experiment.rule.name == ALONE]
    if not alone:
        return None
    table = Table(header_style="bold", box=None)
    for head in ("rule", "model"):
        table.add_column(head)
    for head in ("mean gain", "worst gain", "clients that lose"):
        table.add_column(head, justify="right")
    for name, seeds in runs:
        if seeds is alone[0]:
            continue
        found: dict[str, list[Gain]] = {}
        for run, other in zip(seeds, alone[0], strict=True):
            local = _values(other, "personal")
            for model in ("global", "personal"):
                values = _values(run, model)
                if values is not None and local is not None:
                    found.setdefault(model, []).append(gain_over_local(values, local))
        for model, gains in found.items():
            mean, worst = (over_seeds([getattr(g, key) for g in gains])[0] for key in MEAN_WORST)
            lose = span([gain.num_losers for gain in gains])
            points = (f"{100 * value:+.1f} points" for value in (mean, worst))
            table.add_row(name, model, *points, f"{lose} of {span([g.num_clients for g in gains])}")
    return table if table.row_count else None


def _values(run: Run, model: str) -> list[float] | None:
    """The accuracies of all clients under a model; ``None`` where they were not measured."""
    for block in (run.final.get("clients"), *run.final.get("also", ())):
        if block is None or block["quantity"] != "accuracy" or "values" not in block:
            continue
        label = block["summary"]["label"]
        if label["model"] == model and "local steps" not in label["moment"]:
            return [math.nan if value is None else value for value in block["values"]]
    return None


def show_remarks(out: Console, runs: Sequence[tuple[str, Sequence[Run]]]) -> None:
    """Print what was dropped, skipped or fell back in each run."""
    for name, seeds in runs:
        for run in seeds:
            who = f"{name}, seed {run.experiment.seed}" if len(seeds) > 1 else name
            notes = remarks(run.summary)
            out.print(f"{who}: {'; '.join(notes)}." if notes else f"{who}: {_clean(run)}.")


def _clean(run: Run) -> str:
    used = run.summary["contributions"]["used"]
    return f"all {used} contributions used, nothing dropped, no round empty, no fallback"
