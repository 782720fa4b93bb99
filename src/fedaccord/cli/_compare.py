"""``fedaccord compare``: several rules on the same split, schedule and seeds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ._errors import UserError, preparing, running
from ._options import place, settings


@click.command(short_help="Train with several rules and show one table.")
@click.argument("rules", nargs=-1)
@settings
@click.option("--seed", "seeds", type=int, multiple=True, help="May be given several times.")
@place
def compare(
    rules: tuple[str, ...], out: Path | None, resume: bool, seeds: tuple[int, ...], **given: Any
) -> int | None:
    """Train with each of RULES, for example fedavg fedpcd fedpcd:tau=0.1 "fedhv:server=fedpcd".

    Every rule gets the same split, the same clients in every round and the same seeds. Keys of
    local training may be given with a rule and hold for it alone: uniform:server_lr=1.2,lr=0.4.
    Each run has a folder of its own inside --out.
    """
    from ..experiments import RunFolder, rule_classes
    from ._comparison import Comparison
    from ._experiments import experiment_of, labels, slug
    from ._show import console, show_header, show_results

    screen, errors = console(), console(to_errors=True)
    with preparing():
        if resume:
            if out is None:
                raise UserError("`--resume` needs the folder. Give it by `--out`.")
            if rules or seeds or any(value is not None for value in given.values()):
                raise UserError(
                    "`compare --resume` takes everything from the folder. Give `--out` only."
                )
            comparison = Comparison.read(out)
        else:
            if not rules:
                known = ", ".join(rule_classes())
                raise UserError(
                    f"`compare` needs rules, for example fedavg fedpcd. Known: {known}."
                )
            experiments = [experiment_of(rule, given) for rule in rules]
            names = labels(experiments)
            out = out or Path("runs") / slug("-".join([experiments[0].dataset, *names]))
            RunFolder(out).check_new()
            comparison = Comparison.of(names, experiments, seeds=seeds or (0,), folder=out)
        setups = comparison.prepare(resume=resume)
    show_header(screen, setups, seeds=comparison.seeds, at=out)
    try:
        with running():
            done = comparison.carry_out(errors)
    except KeyboardInterrupt:
        errors.print(
            f"Interrupted. Go on with: fedaccord compare --resume --out {out}", soft_wrap=True
        )
        return 130
    show_results(screen, done)
    return None
