"""``fedaccord run``: one rule, one seed, one folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import _completion as complete
from ._errors import InterruptedRun, UserError, preparing, running
from ._options import machine, place, settings

if TYPE_CHECKING:  # PyTorch takes a second to import, which the help does without
    from ..experiments import Experiment


@click.command(short_help="Train with one rule.")
@click.argument(
    "rule",
    required=False,
    metavar="[RULE|FILE.toml]",
    shell_complete=complete.names(complete.rules, files=True),
)
@settings
@click.option("--seed", type=int, multiple=True, help="Determines everything but the split.")
@place
@machine
def run(
    rule: str | None,
    out: Path | None,
    resume: bool,
    as_json: bool,
    seed: tuple[int, ...],
    **given: Any,
) -> None:
    """Train with RULE, for example fedpcd or fedpcd:tau=0.05,history=3, or as FILE.toml says.

    Settings that are not given are the usual ones of the dataset; `fedaccord list` shows names.
    The folder gets the configuration, one line of JSON a round, a checkpoint and the model.
    With --resume, settings that are not given are those in the folder.
    """
    from ..experiments import carry_out, prepare
    from ._experiments import labels, slug
    from ._machine import of_run, print_json
    from ._progress import Progress, rounds_of
    from ._results import show_results
    from ._show import console, show_header, warnings_as_lines

    screen, errors = console(quiet=as_json), console(to_errors=True, quiet=as_json)
    with preparing():
        if len(seed) > 1:
            raise UserError(
                f"`run` takes one seed. Got {', '.join(map(str, seed))}; `compare` takes several."
            )
        if resume and out is None:
            raise UserError("`--resume` needs the folder. Give it by `--out`.")
        experiment = _experiment(rule, given, seed[0] if seed else None, out if resume else None)
        out = out or Path("runs") / slug(f"{experiment.dataset}-{experiment.rule}")
        setup = prepare(experiment, out, resume=resume)
    name = labels([setup.experiment])[0]
    show_header(screen, [setup], seeds=[setup.experiment.seed], at=out)
    try:
        with (
            running(),
            warnings_as_lines(errors),
            Progress(errors, total=rounds_of(setup.experiment)) as progress,
        ):
            progress.now(name, setup.experiment)
            done = carry_out(setup, out, resume=resume, watch=progress)
    except KeyboardInterrupt as error:
        raise InterruptedRun(
            f"Interrupted. Go on with: fedaccord run --resume --out {out}"
        ) from error
    if as_json:
        print_json(of_run(name, done, out))
    else:
        show_results(screen, [(name, [done])])


def _experiment(
    rule: str | None, given: dict[str, Any], seed: int | None, resumed: Path | None
) -> Experiment:
    """The experiment that a call describes, from the folder it goes on in if there is one."""
    from ..experiments import RunFolder
    from ._experiments import experiment_of, is_file

    if resumed is None:
        experiment = experiment_of(rule, given, seed=seed)
        if experiment.calibration is None and _speaks_of_calibration(given):
            raise UserError(
                f"{experiment.rule} needs no calibration. Leave `--calibration-rounds` and "
                f"`--calibration-margin` out."
            )
        return experiment
    if given["preset"] is not None:
        raise UserError("With `--resume` settings come from the folder. Leave `--preset` out.")
    folder = RunFolder(resumed)
    folder.check_resumable()
    base = None if is_file(rule) else folder.read_table()
    return experiment_of(rule, given, seed=seed, base=base)


def _speaks_of_calibration(given: dict[str, Any]) -> bool:
    options = given["calibration_rounds"], given["calibration_margin"]
    return any(options) or any(text.startswith("calibration.") for text in given["sets"])
