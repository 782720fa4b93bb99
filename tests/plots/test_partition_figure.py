"""The figure of a split shows its numbers."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="figures need the extra `plots`")

from matplotlib.colors import LogNorm

from fedaccord.data import Partition, iid_partition, natural_partition, shards_partition
from fedaccord.plots import partition_figure

LABELS = ["b", "a", "b", "c", "b"]
SPLIT = Partition([[0, 1], [2, 4], [], [3]], 5, name="mine", parameters={"alpha": 0.1, "bins": 3})


def test_bars_are_the_sizes():
    bars = partition_figure(SPLIT, LABELS).axes[0].patches
    assert [bar.get_height() for bar in bars] == [2, 2, 0, 1]


def test_squares_are_the_samples_of_a_class_and_none_is_left_out():
    shown = partition_figure(SPLIT, LABELS).axes[1].images[0].get_array()
    # rows a, b, c by clients, counted by hand
    assert shown.filled(0).tolist() == [[1, 0, 0, 0], [1, 2, 0, 0], [0, 0, 0, 1]]
    assert np.array_equal(shown.mask, shown.filled(0) == 0)


def test_classes_are_called_by_their_labels_or_by_names():
    own, given = (
        partition_figure(SPLIT, LABELS, class_names=names).axes[1].get_yticklabels()
        for names in (None, ["ant", "bee", "cat"])
    )
    assert [text.get_text() for text in own] == ["a", "b", "c"]
    assert [text.get_text() for text in given] == ["ant", "bee", "cat"]


def test_clients_with_names_are_called_by_them():
    split = natural_partition(["north", "south", "north"])
    ticks = partition_figure(split, [0, 1, 1]).axes[1].get_xticklabels()
    assert [text.get_text() for text in ticks] == ["north", "south"]


def test_the_figure_says_what_it_shows():
    sizes, grid, *_ = partition_figure(SPLIT, LABELS).axes
    assert sizes.get_title(loc="left") == "mine split of 5 samples, alpha 0.1"
    assert sizes.get_ylabel() == "samples"
    assert (grid.get_xlabel(), grid.get_ylabel()) == ("4 clients", "class")


def test_numbers_of_several_magnitudes_have_a_logarithmic_scale():
    even = partition_figure(iid_partition(400, num_clients=4), np.arange(400) % 2)
    assert not isinstance(even.axes[1].images[0].norm, LogNorm)
    parts = [np.arange(900), *np.arange(900, 910)[:, None]]
    uneven = partition_figure(Partition(parts, 910), np.zeros(910, dtype=int))
    assert isinstance(uneven.axes[1].images[0].norm, LogNorm)


def test_names_that_would_overlap_are_left_to_numbers():
    labels = np.arange(1000) % 100
    figure = partition_figure(shards_partition(labels, num_clients=100), labels)
    assert len(figure.axes[1].get_yticks()) < 30
    assert len(figure.axes[1].get_xticks()) < 30
    assert figure.get_figwidth() <= 12


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_it_can_be_written(tmp_path: Path, suffix: str):
    path = tmp_path / f"split.{suffix}"
    partition_figure(SPLIT, LABELS).savefig(path)
    assert path.stat().st_size > 1000


@pytest.mark.parametrize("parts", [[[]], [[], []], [[0]]], ids=["empty", "all empty", "one"])
def test_splits_of_hardly_anything_are_drawn(tmp_path: Path, parts: list[list[int]]):
    partition_figure(Partition(parts, 1), [0]).savefig(tmp_path / "split.png")


def test_pyplot_is_not_touched(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delitem(
        sys.modules, "matplotlib.pyplot", raising=False
    )  # of other tests' libraries
    partition_figure(SPLIT, LABELS)
    assert "matplotlib.pyplot" not in sys.modules


def test_a_figure_needs_a_client():
    with pytest.raises(ValueError, match="at least one client. Got none."):
        partition_figure(Partition([], 5), LABELS)


def test_labels_and_names_must_fit():
    with pytest.raises(ValueError, match="data's 4 samples. It is of 5."):
        partition_figure(SPLIT, LABELS[:4])
    with pytest.raises(ValueError, match="one name for each of 3 classes. Got 2."):
        partition_figure(SPLIT, LABELS, class_names=["a", "b"])
