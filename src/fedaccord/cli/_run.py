"""``fedaccord run``: one rule, one seed, one folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ._errors import UserError, preparing, running
from ._options import place, settings


@click.command(short_help="Train with one rule.")
@click.argument("rule", required=False)
@settings
@click.option("--seed", type=int, multiple=True, help="Determines everything but the split.")
@place
def run(
    rule: str | None, out: Path | None, resume: bool, seed: tuple[int, ...], **given: Any
) -> int | None:
    """Train with RULE, for example fedpcd or fedpcd:tau=0.05,history=3.

    Settings that are not given are the usual ones of the dataset; `fedaccord list` shows names.
    The folder gets the configuration, one line of JSON a round, a checkpoint and the model.
    With --resume, settings that are not given are those in the folder.
    """
    from ..experiments import RunFolder, carry_out, prepare
    from ._experiments import changed, experiment_of, labels, slug
    from ._progress import Progress, rounds_of
    from ._show import console, show_header, show_results, warnings_as_lines

    screen, errors = console(), console(to_errors=True)
    with preparing():
        if len(seed) > 1:
            raise UserError(
                f"`run` takes one seed. Got {', '.join(map(str, seed))}; `compare` takes several."
            )
        one = seed[0] if seed else None
        if resume:
            if out is None:
                raise UserError("`--resume` needs the folder. Give it by `--out`.")
            folder = RunFolder(out)
            folder.check_resumable()
            base = folder.read_table()
            experiment = (
                changed(base, given, seed=one)
                if rule is None
                else experiment_of(rule, given, seed=one, base=base)
            )
        else:
            if rule is None:
                raise UserError("`run` needs a rule, for example `fedaccord run fedpcd`.")
            experiment = experiment_of(rule, given, seed=one)
            if given["calibration_rounds"] or given["calibration_margin"]:
                _require_calibration(experiment)
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
    except KeyboardInterrupt:
        errors.print(f"Interrupted. Go on with: fedaccord run --resume --out {out}", soft_wrap=True)
        return 130
    show_results(screen, [(name, [done])])
    return None


def _require_calibration(experiment: Any) -> None:
    if experiment.calibration is None:
        raise UserError(
            f"{experiment.rule} needs no calibration. Leave `--calibration-rounds` and "
            f"`--calibration-margin` out."
        )
