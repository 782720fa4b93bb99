"""``fedaccord verify``: whether the files of runs belong together."""

from __future__ import annotations

from pathlib import Path

import click

from ._errors import UserError, preparing
from ._options import machine


@click.command(short_help="Check the folders of runs.")
@click.argument("folders", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--rerun", type=int, default=0, metavar="N", help="Train the first N rounds again, and compare."
)
@machine
def verify(folders: tuple[Path, ...], rerun: int, as_json: bool) -> int:
    """Check runs and comparisons in FOLDERS: files, checksums, splits, models, summaries.

    Ends with exit code 1 if something is wrong. Nothing is written.
    """
    from ..experiments import verify as verify_run
    from ._machine import print_json
    from ._show import console

    with preparing():
        if not folders:
            raise UserError("`verify` needs folders of runs, for example `runs/first`.")
        found = {
            folder: verify_run(folder, rerun=rerun) for each in folders for folder in runs_in(each)
        }
    wrong = sum(check.outcome == "bad" for checks in found.values() for check in checks)
    if as_json:
        runs = [{"folder": str(folder), "checks": checks} for folder, checks in found.items()]
        print_json({"wrong": wrong, "runs": runs})
        return int(wrong > 0)
    screen = console()
    for folder, checks in found.items():
        screen.print(str(folder), style="bold", soft_wrap=True)
        for check in checks:
            screen.print(f"  {check.outcome:5}{check.name:14}{check.detail}", soft_wrap=True)
    total = sum(map(len, found.values()))
    screen.print(f"{wrong} of {total} checks found something wrong." if wrong else "Nothing wrong.")
    return int(wrong > 0)


def runs_in(folder: Path) -> list[Path]:
    """The folder itself, or those of the comparison in it.

    :raises FolderError: If it holds neither.
    """
    from ..experiments import FolderError, RunFolder
    from ._comparison import FILE, listed

    if RunFolder(folder).experiment_file.is_file():
        return [folder]
    if (folder / FILE).is_file():
        return [folder / each["folder"] for each in listed(folder)]
    raise FolderError(
        f"`{folder}` holds neither a run nor a comparison: there is no `experiment.toml` and no "
        f"`{FILE}` in it."
    )
