"""A figure of a split: who holds how many samples of what."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ..data import Partition
from ..data._feasibility import counted
from ..data._labels import Indices, Labels, encode_labels
from ._style import STYLES, new_figure, tidy

_NAMED = 30  # more names than this would overlap


def partition_figure(
    partition: Partition, labels: Labels, *, class_names: Sequence[str] | None = None
) -> Figure:
    """Draw the size of every client, and below it its samples of each class.

    A square of the lower part is a client's samples of a class; the darker, the more, on a
    logarithmic scale where the numbers call for one, and white means none. Clients stand in their
    order; up to 30 of them are called by their names if they have some.

    :param partition: The split, of at least one client.
    :param labels: ``[n]`` or ``[n, m]``, the class of each sample.
    :param class_names: What to call the classes, in the order of their labels.
    :raises ValueError: If there is no client, or labels or names do not fit.
    """
    if not len(partition):
        raise ValueError("A figure of a split needs at least one client. Got none.")
    codes, classes = encode_labels(labels)
    partition.verify(num_samples=len(codes))
    names = list(map(str, classes if class_names is None else class_names))
    if len(names) != len(classes):
        raise ValueError(
            f"`class_names` must have one name for each of {len(classes)} classes. "
            f"Got {len(names)}."
        )
    counts = np.stack([np.bincount(codes[part], minlength=len(classes)) for part in partition])
    # a class needs the height of a name, a client what leaves its column visible
    rows = min(len(classes), _NAMED)
    figure = new_figure(min(4 + 0.12 * len(partition), 12), 2.2 + 0.22 * rows)
    sizes, grid = figure.subplots(
        2, 1, sharex=True, gridspec_kw={"height_ratios": [1.2, 0.5 + 0.22 * rows]}
    )
    _draw_sizes(sizes, counts.sum(axis=1), title=_title(partition))
    _draw_grid(figure, grid, counts, names)
    if partition.client_names and len(partition) <= _NAMED:
        clients = list(map(str, partition.client_names))
        turned = 90 if max(map(len, clients)) * len(clients) > 40 else 0
        grid.set_xticks(range(len(clients)), clients, fontsize=8, rotation=turned)
    return figure


def _title(partition: Partition) -> str:
    values = [f"{key} {value}" for key, value in partition.parameters.items() if key == "alpha"]
    return ", ".join(
        [f"{partition.name} split of {counted(partition.num_samples, 'sample')}", *values]
    )


def _draw_sizes(axes: Axes, sizes: Indices, *, title: str) -> None:
    width = 0.9 if len(sizes) <= _NAMED else 1.0  # gaps between thin bars would flicker
    axes.bar(np.arange(len(sizes)), sizes, width=width, color=STYLES[0].colour, edgecolor="none")
    tidy(axes, title=title, xlabel="")
    axes.set_ylabel("samples")
    axes.tick_params(axis="x", bottom=False)


def _draw_grid(figure: Figure, axes: Axes, counts: Indices, names: Sequence[str]) -> None:
    largest, held = int(counts.max(initial=0)), counts[counts > 0]
    wide = len(held) > 0 and largest > 20 * int(np.median(held))
    scale = LogNorm(1, max(largest, 2)) if wide else Normalize(0, max(largest, 1))
    shown = np.ma.masked_equal(counts.T, 0)
    # the lightest colour is a sample's, told apart from the white of none
    shades = LinearSegmentedColormap.from_list(
        "samples", ["#BFD9EC", "#4F8FC0", "#0B3C6F", "#04162B"]
    )
    image = axes.imshow(shown, aspect="auto", cmap=shades, norm=scale, interpolation="nearest")
    bar = figure.colorbar(image, ax=axes, pad=0.01, fraction=0.05)
    bar.set_label("samples", fontsize=8)
    bar.ax.tick_params(labelsize=8)
    axes.set_xlabel(counted(len(counts), "client"))
    axes.set_ylabel("class")
    axes.spines[["top", "right"]].set_visible(False)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    if len(names) <= _NAMED:
        axes.set_yticks(range(len(names)), names, fontsize=8)
    else:
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
