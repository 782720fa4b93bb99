"""Figures in files."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure


def write_figure(figure: Figure, path: Path) -> None:
    """Write a figure; the same figure always gives the same bytes.

    :param figure: The figure.
    :param path: Where to; its suffix, ``.png`` or ``.svg``, names the format.
    :raises OSError: If it cannot be written.
    """
    # without these an SVG holds the time, and names of parts that differ from file to file
    metadata = {"Date": None} if path.suffix == ".svg" else None
    with mpl.rc_context({"svg.hashsalt": "fedaccord"}):
        figure.savefig(path, metadata=metadata)
