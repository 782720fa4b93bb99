"""``fedaccord compare``: several rules on the same split, schedule and seeds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import _completion as complete
from ._drawing import check_figure, draw_spread
from ._errors import InterruptedRun, RunError, UserError, preparing, running
from ._options import changes, machine, place, settings

if TYPE_CHECKING:  # PyTorch takes a second to import, which the help does without
    from ._comparison import Comparison

RESUMED_WITH = ("rounds", "workers", "data_dir")


@click.command(short_help="Train with several rules and show one table.")
@click.argument("rules", nargs=-1, shell_complete=complete.names(complete.rules))
@settings
@click.option("--seed", "seeds", type=int, multiple=True, help="May be given several times.")
@click.option(
    "--figure",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Draw mean accuracy against spread over clients, into this .png or .svg file.",
)
@place
@machine
def compare(
    rules: tuple[str, ...],
    out: Path | None,
    figure: Path | None,
    resume: bool,
    as_json: bool,
    seeds: tuple[int, ...],
    **given: Any,
) -> None:
    """Train with each of RULES, for example fedavg fedpcd fedpcd:tau=0.1 "fedhv:server=fedpcd".

    Every rule gets the same split, the same clients in every round and the same seeds. Keys of
    local training may be given with a rule and hold for it alone: uniform:server_lr=1.2,lr=0.4.
    Each run has a folder of its own inside --out. A preset may name rules, which are taken if none
    are given.
    """
    from ..experiments import count
    from ._machine import of_comparison, print_json
    from ._results import show_results
    from ._show import console, show_header

    screen, errors = console(quiet=as_json), console(to_errors=True, quiet=as_json)
    with preparing():
        if figure is not None:
            check_figure(figure)
        if resume:
            comparison = _resumed(rules, seeds, out, given)
        else:
            comparison = _new(rules, seeds, out, given)
        setups = comparison.prepare(resume=resume)
    show_header(screen, setups, seeds=comparison.seeds, at=comparison.folder)
    try:
        with running():
            done, failed = comparison.carry_out(errors, resume=resume)
    except KeyboardInterrupt as error:
        raise InterruptedRun(
            f"Interrupted. Go on with: fedaccord compare --resume --out {comparison.folder}"
        ) from error
    if not done:
        raise RunError(f"Every run failed. {failed[0]}")
    if figure is not None:
        with running():
            draw_spread(figure, done)
    if as_json:
        folders = comparison.folders_by_run
        print_json(of_comparison(done, failed, folder=comparison.folder, folders=folders))
    else:
        show_results(screen, done)
    if failed:
        told = "; ".join(map(str, failed))
        raise RunError(
            f"{len(failed)} of {count(len(comparison.entries), 'run')} failed, and rules that lack "
            f"one are not in the table: {told}"
        )


def _new(
    rules: tuple[str, ...], seeds: tuple[int, ...], out: Path | None, given: dict[str, Any]
) -> Comparison:
    from ..experiments import RunFolder, read_preset, rule_classes
    from ._comparison import Comparison
    from ._experiments import experiment_of, is_file, labels, parse_sets, slug

    if not rules and given["preset"] is not None:
        rules = read_preset(given["preset"]).rules
    if not rules:
        known = ", ".join(rule_classes())
        raise UserError(f"`compare` needs rules, for example fedavg fedpcd. Known: {known}.")
    if files := [rule for rule in rules if is_file(rule)]:
        raise UserError(
            f"`compare` takes rules. Got the file `{files[0]}`; `fedaccord run` takes files."
        )
    if "seed" in parse_sets(given["sets"]):
        raise UserError("`compare` takes seeds by `--seed`, several if wanted. Got one by `--set`.")
    experiments = [experiment_of(rule, given) for rule in rules]
    names = labels(experiments)
    out = out or Path("runs") / slug("-".join([experiments[0].dataset, *names]))
    RunFolder(out).check_new()
    return Comparison.of(names, experiments, seeds=seeds or (0,), folder=out)


def _resumed(
    rules: tuple[str, ...], seeds: tuple[int, ...], out: Path | None, given: dict[str, Any]
) -> Comparison:
    from ._comparison import Comparison

    if out is None:
        raise UserError("`--resume` needs the folder. Give it by `--out`.")
    values = changes(given)
    allowed = {key: values.pop(key) for key in RESUMED_WITH if key in values}
    if rules or seeds or values or given["sets"] or given["preset"]:
        raise UserError(
            "`compare --resume` takes everything from the folder. Give `--out`, and if wanted "
            "`--rounds`, `--workers` and `--data-dir`."
        )
    return Comparison.read(out, **allowed)
