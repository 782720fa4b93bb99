"""How figures look: colours that differ in lightness too, so that grey prints stay legible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from matplotlib.axes import Axes
from matplotlib.figure import Figure


class Measured(Protocol):
    """What can be plotted; :class:`~fedaccord.experiments.Run` is one."""

    @property
    def name(self) -> str:
        """What to call it."""
        ...

    @property
    def evaluations(self) -> Sequence[tuple[int, Mapping[str, Any]]]:
        """Evaluations, each after a number of rounds."""
        ...


@dataclass(frozen=True)
class Style:
    """How one run is drawn.

    :param colour: Of Okabe and Ito's palette, or near it.
    :param dashes: Line style.
    :param marker: Of single points.
    """

    colour: str
    dashes: str
    marker: str

    def line(self, **options: Any) -> dict[str, Any]:
        """Arguments of ``Axes.plot``."""
        look = {"color": self.colour, "linestyle": self.dashes, "linewidth": 1.8}
        return {**look, "solid_capstyle": "round", **options}


# from dark to light: the order also holds without colours
STYLES = (
    Style("#0B3C6F", "-", "o"),
    Style("#E07B00", "-", "s"),
    Style("#009E73", "--", "^"),
    Style("#B05A9E", "-.", "D"),
    Style("#56B4E9", ":", "v"),
    Style("#777777", "--", "x"),
)


def style_of(number: int) -> Style:
    """The style of a figure's run by its position; repeated when they run out."""
    return STYLES[number % len(STYLES)]


def new_figure(width: float, height: float) -> Figure:
    """A figure in inches that belongs to nobody else; no state of pyplot is touched."""
    return Figure(figsize=(width, height), layout="constrained", dpi=150)


def per_cent_axis(axes: Axes, *, label: str) -> None:
    """Make the vertical axis one of per cent, 0 to 100."""
    axes.set_ylim(-2, 102)  # so that marks at 0 and 100 are whole
    axes.set_yticks(range(0, 101, 20))
    axes.set_ylabel(label)


def tidy(axes: Axes, *, title: str, xlabel: str) -> None:
    """Leave out what carries no information."""
    axes.set_title(title, loc="left", fontsize=10, fontweight="bold")
    axes.set_xlabel(xlabel)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#DDDDDD", linewidth=0.6)
    axes.set_axisbelow(True)


def label_ends(axes: Axes, ends: Sequence[tuple[float, float, str, str]], *, gap: float) -> None:
    """Write labels to the right of where lines end, moved apart where they would overlap.

    :param axes: Where to.
    :param ends: ``(x, y, text, colour)`` of each.
    :param gap: Least distance between labels, in units of the vertical axis.
    """
    ends = sorted(ends, key=lambda end: end[1])
    heights = apart([end[1] for end in ends], gap=gap)
    for (x, _, text, colour), height in zip(ends, heights, strict=True):
        axes.annotate(
            text,
            (x, height),
            xytext=(8, 0),
            textcoords="offset points",
            color=colour,
            fontsize=8.5,
            va="center",
            annotation_clip=False,
        )


def apart(heights: Sequence[float], *, gap: float) -> list[float]:
    """Move numbers apart until neighbours differ by ``gap``; groups stay around their mean.

    :param heights: In increasing order.
    :param gap: Least difference, not negative.
    """
    # of each group: how many, and the middle they would like
    groups: list[tuple[int, float]] = []
    for height in heights:
        count, middle = 1, height
        while groups and middle - groups[-1][1] < gap * (count + groups[-1][0]) / 2:
            before, centre = groups.pop()
            middle = (before * centre + count * middle) / (before + count)
            count += before
        groups.append((count, middle))
    return [
        middle + gap * (position - (count - 1) / 2)
        for count, middle in groups
        for position in range(count)
    ]
