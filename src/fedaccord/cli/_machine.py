"""What programs read: the results of a command as one JSON value."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from ..experiments import Run, dumps, measures, over_seeds, remarks, to_table
from ._comparison import Failed


def print_json(content: Any) -> None:
    """Print a value as strict JSON; what is not finite becomes null."""
    click.echo(dumps(content), nl=False)


def of_run(name: str, run: Run, folder: Path) -> dict[str, Any]:
    """A run.

    :param name: What to call it.
    :param run: Its files, read.
    :param folder: Where they are.
    """
    return {
        "name": name,
        "folder": str(folder),
        "finished": run.finished,
        "experiment": to_table(run.experiment),
        "summary": run.summary,
        "remarks": remarks(run.summary),
    }


def of_comparison(
    runs: Sequence[tuple[str, Sequence[Run]]],
    failed: Sequence[Failed],
    *,
    folder: Path,
    folders: Mapping[tuple[str, int], Path],
) -> dict[str, Any]:
    """Several rules with several seeds.

    :param runs: Name and runs, one a seed, of each rule.
    :param folder: The comparison's folder.
    :param failed: The runs that did not end.
    :param folders: Those of the runs, by the rule's name and the seed.
    """
    rules = [
        {
            "name": name,
            "measures": _measures(seeds),
            "runs": [of_run(name, run, folders[name, run.experiment.seed]) for run in seeds],
        }
        for name, seeds in runs
    ]
    seeds = [run.experiment.seed for run in runs[0][1]]
    return {
        "folder": str(folder),
        "seeds": seeds,
        "rules": rules,
        "failed": [dataclasses.asdict(each) for each in failed],
    }


def _measures(seeds: Sequence[Run]) -> list[dict[str, Any]]:
    """Each number of the table: mean and sample deviation over the seeds."""
    found = []
    for each in zip(*(measures(run.final) for run in seeds), strict=True):
        mean, deviation = over_seeds([measure.value for measure in each])
        found.append(
            {
                "name": each[0].name,
                "mean": mean,
                "deviation": deviation,
                "fraction": each[0].fraction,
                "lower_is_better": each[0].lower_is_better,
            }
        )
    return found
