"""Figures that commands draw, and what can be wrong before anything is trained."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ._errors import UserError

if TYPE_CHECKING:  # PyTorch takes a second to import, which the help does without
    from ..experiments import Run

FORMATS = (".png", ".svg")


def require_figures(*, without: str = "--no-figure") -> None:
    """Check that figures can be drawn, before anything is trained.

    :param without: How to leave the figure out, for the message.
    :raises UserError: If matplotlib is not installed, where the message names the extra, or does
        not work.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise UserError(
            "Figures need matplotlib, which is not installed. Install it with "
            f"`pip install 'fedaccord[plots]'`, or leave the figure out by `{without}`."
        )
    try:
        importlib.import_module("..plots", __package__)
    except Exception as error:  # a broken installation may raise anything
        raise UserError(
            f"Figures need matplotlib, which is installed and does not load: {error}. Install it "
            f"again, or leave the figure out by `{without}`."
        ) from error


def check_figure(path: Path) -> None:
    """Check that a figure can be drawn into a file.

    :raises UserError: If its name ends in no format we write, or there is no such folder.
    """
    if path.suffix not in FORMATS:
        raise UserError(f"`--figure` must end in {' or '.join(FORMATS)}. Got `{path}`.")
    if not path.parent.is_dir():
        raise UserError(f"There is no folder `{path.parent}` to draw `{path.name}` into.")
    require_figures(without="calling without --figure")


def draw_spread(path: Path, runs: Sequence[tuple[str, Sequence[Run]]]) -> None:
    """Draw the clients' mean accuracy against its spread, a point a rule."""
    from ..plots import accuracy_against_spread, write_figure

    write_figure(accuracy_against_spread([run for _, seeds in runs for run in seeds]), path)
