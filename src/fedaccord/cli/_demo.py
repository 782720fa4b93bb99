"""``fedaccord demo``: both rules on real data, in about a minute."""

from __future__ import annotations

import contextlib
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from ..errors import CheckpointError
from ._drawing import require_figures
from ._errors import InterruptedRun, RunError, UserError, preparing, running

MARKER = "demo.json"
MARK = {"made_by": "fedaccord demo"}
FIGURES = ("demo.png", "demo.svg")
REPORT = "report.txt"


@dataclass(frozen=True)
class Part:
    """One comparison of the demo.

    :param name: Its folder.
    :param title: Above its table.
    :param dataset: The data; their usual settings are the demo's.
    :param rules: As the command line takes them; the baseline first.
    """

    name: str
    title: str
    dataset: str
    rules: tuple[str, str]


PARTS = (
    Part("clients", "Clients", "fashion-mini", ("fedavg", "fedpcd:tau=0.02,history=10")),
    Part(
        "tasks",
        "Tasks",
        "digits-fashion-mini",
        # learning rates of MNIST-FMNIST, FedHV paper, Table 5
        ("uniform:server_lr=1.2,lr=0.4", "fedhv:server_lr=1.6,lr=0.3"),
    ),
)


@click.command(short_help="See on real data what averaging does and what changes it.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("runs/demo"),
    show_default=True,
    help="Folder for runs, tables and figure; an earlier demo in it is replaced.",
)
@click.option("--rounds-scale", type=float, default=1.0, help="Factor of all numbers of rounds.")
@click.option("--seed", type=int, default=0, help="Determines everything but the splits.")
@click.option("--workers", type=int, help="Threads that train clients; one a core by default.")
@click.option("--figure/--no-figure", default=True, help="Whether to draw the figure.")
def demo(out: Path, rounds_scale: float, seed: int, workers: int | None, figure: bool) -> None:
    """Compare FedAvg with FedPCD for clients, and Uniform with FedHV for tasks.

    Real data that come with the package; about a minute on two cores. Ends with two tables, one
    figure and sentences that state what was measured.
    """
    from ._comparison import Comparison
    from ._experiments import experiment_of, labels
    from ._results import show_results
    from ._show import console, show_header

    screen, errors = console(), console(to_errors=True)
    with preparing():
        if not 0 < rounds_scale < float("inf"):
            raise UserError(f"`--rounds-scale` must be positive. Got {rounds_scale:g}.")
        if figure:
            require_figures()
        clear(out)
        comparisons, setups = [], []
        for part in PARTS:
            given = _given(part, rounds_scale, workers)
            experiments = [experiment_of(rule, given) for rule in part.rules]
            comparison = Comparison.of(
                labels(experiments), experiments, seeds=(seed,), folder=out / part.name
            )
            setups.append(comparison.prepare(resume=False))
            comparisons.append(comparison)
    done = []
    try:
        with running():
            for part, comparison, ready in zip(PARTS, comparisons, setups, strict=True):
                screen.print(f"\n{part.title}", style="bold")
                show_header(screen, ready, seeds=[seed], at=comparison.folder)
                mark(out)
                runs, failed = comparison.carry_out(errors, resume=False)
                if failed:
                    raise RunError(str(failed[0]))
                done.append(runs)
    except KeyboardInterrupt as error:
        raise InterruptedRun("Interrupted. Start it again with the same command.") from error
    clients, tasks = ([run for _, seeds in runs for run in seeds] for runs in done)
    with running(), (out / REPORT).open("w", encoding="utf-8") as file:
        for target in (screen, console(to=file)):
            for part, runs in zip(PARTS, done, strict=True):
                target.print(f"\n{part.title}", style="bold")
                show_results(target, runs, others=False)
            target.print("\nMeasured", style="bold")
            for sentence in _sentences(clients, tasks):
                target.print(f"- {sentence}")
    if figure:
        with running():
            draw(out, clients, tasks)
        figures = " and ".join(str(out / name) for name in FIGURES)
        screen.print(f"\nFigure: {figures}", soft_wrap=True)
    screen.print(f"Tables and sentences: {out / REPORT}", soft_wrap=True)


def clear(out: Path) -> None:
    """Make room in a folder that is new, empty or an earlier demo's.

    :raises UserError: If it holds anything else.
    """
    from ..experiments import check_writable

    check_writable(out)
    if not out.exists() or not any(out.iterdir()):
        return
    if not _is_a_demo(out):
        raise UserError(
            f"`{out}` holds something that no demo made. Choose another folder by `--out`."
        )
    for part in PARTS:
        if (out / part.name).exists():
            shutil.rmtree(out / part.name)
    for name in (*FIGURES, REPORT):
        (out / name).unlink(missing_ok=True)


def _is_a_demo(out: Path) -> bool:
    from ..experiments import read_json

    with contextlib.suppress(CheckpointError, OSError):
        return bool(read_json(out / MARKER) == MARK)
    return False


def mark(out: Path) -> None:
    """Mark a folder as a demo's, so that the next demo may replace it."""
    from ..experiments import write_json

    out.mkdir(parents=True, exist_ok=True)
    write_json(out / MARKER, MARK)


def draw(out: Path, clients: list[Any], tasks: list[Any]) -> None:
    """Write the figure."""
    from ..plots import demo_figure, write_figure

    captions = [
        f"{part.title}: {run.experiment.dataset}, {len(run.split['sizes'])} clients, "
        f"{len(run.records[0]['asked'])} a round, seed {run.experiment.seed}."
        for part, run in zip(PARTS, (clients[0], tasks[0]), strict=True)
    ]
    figure = demo_figure(clients, tasks, captions=captions)
    for name in FIGURES:
        write_figure(figure, out / name)


def _sentences(clients: list[Any], tasks: list[Any]) -> list[str]:
    from ._findings import about_clients, about_tasks, beside_published

    return [*about_clients(*clients), *about_tasks(*tasks), *beside_published(*tasks)]


def _given(part: Part, scale: float, workers: int | None) -> dict[str, Any]:
    from ..experiments import preset

    usual = preset(part.dataset)
    given: dict[str, Any] = {"dataset": part.dataset, "workers": workers}
    if scale != 1:
        given["rounds"] = max(1, round(scale * usual["rounds"]))
        given["evaluate_every"] = max(1, round(scale * usual["evaluate_every"]))
    if part.rules[1].startswith("fedhv") and scale != 1:
        given["calibration_rounds"] = max(1, round(scale * 20))
    return given
