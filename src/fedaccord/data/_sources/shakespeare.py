"""Shakespeare by role: the next character of what a role says, a client for each role."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from ...errors import DataFileError
from .._dataset import Dataset
from .._formats import Arrays, Member
from .._info import DatasetInfo
from .._text_windows import TextWindows
from ._source import Published, Source, require_codes, require_rows
from ._tables import archive_form, arrays_sha256

_MEMBERS = {
    "text": Member("u", (None,)),
    "offsets": Member("i", (None,)),
    "n_lines": Member("i", (None,)),
    "play": Member("i", (None,)),
    "role_names": Member("U", (None,)),
    "play_names": Member("U", (None,)),
}
_SHA256 = "8402428f04fe5d4bf7b2256ca4788fa2db61f3d039ddac8630bdaa8a75daa430"
_NEWLINE = ord("\n")
_TRAIN_FRACTION = 0.8
WINDOW = 80


def _training_ends(
    text: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Where each role's first 80 % of lines end, rounded down but at least one line.

    :param text: All roles' lines, one after the other.
    :param offsets: ``[roles + 1]``, where each role begins, and the end.
    :return: ``[roles]``, a position after a newline, or the role's end if it has one line.
    """
    newlines = np.flatnonzero(text == _NEWLINE)
    ends = offsets[1:].copy()
    for role, (first, last) in enumerate(
        np.searchsorted(newlines, np.stack([offsets[:-1], offsets[1:]], axis=1))
    ):
        num_lines = int(last - first) + 1  # lines are joined by newlines
        if num_lines > 1:
            kept = max(1, int(num_lines * _TRAIN_FRACTION + 1e-9))  # 0.8 * 5 is 4
            ends[role] = newlines[first + kept - 1] + 1
    return ends


def build(
    info: DatasetInfo,
    arrays: Arrays,
    record: Mapping[str, Any],
    *,
    window: int = WINDOW,
    stride: int = 1,
) -> Dataset:
    """Make windows over each role's lines; those of training and test do not overlap.

    :param window: Characters of one input, at least 1.
    :param stride: Characters from one window to the next, at least 1.
    :raises DataFileError: If the arrays do not fit together.
    :raises ValueError: If ``window`` or ``stride`` is below 1.
    """
    require_rows(arrays, ("n_lines", "play", "role_names"), "`shakespeare`")
    require_codes(arrays, "play", len(arrays["play_names"]))
    offsets, characters = arrays["offsets"].astype(np.int64), arrays["text"]
    whole = len(offsets) == len(arrays["play"]) + 1 and offsets[-1] == len(characters)
    if characters.dtype != np.uint8 or not whole or offsets[0] != 0 or (np.diff(offsets) < 1).any():
        raise DataFileError(
            "`offsets` must rise from 0 to the length of `text`, of uint8, one step for each role."
        )
    vocabulary, codes = np.unique(characters, return_inverse=True)
    text = torch.tensor(codes.astype(np.uint8))
    begins, middles, ends = (
        torch.tensor(part)
        for part in (offsets[:-1], _training_ends(characters, offsets), offsets[1:])
    )
    cut = partial(TextWindows.over, text, window=window, stride=stride)
    train, test = cut(begins=begins, ends=middles), cut(begins=middles, ends=ends)
    plays = arrays["play_names"][arrays["play"]].tolist()
    names = [f"{p}: {r}" for p, r in zip(plays, arrays["role_names"].tolist(), strict=True)]
    return Dataset(
        name=info.name,
        title=info.title,
        description=info.description,
        train=train,
        test=test,
        tasks=info.tasks,
        class_names=(tuple(map(chr, vocabulary.tolist())),),
        licence=info.licence,
        citation=info.citation,
        metadata={
            **record,
            "window": window,
            "stride": stride,
            "too_short": [n for n, c in zip(names, train.counts.tolist(), strict=True) if not c],
            "construction": "The first 80 % of a role's lines, rounded down but at least one, are "
            f"to train on, the others to test on; a sample is {window} characters and the next "
            "one. Roles in `too_short` have no training sample.",
        },
        client_ids=_owners(train),
        test_client_ids=_owners(test),
        client_names=tuple(names),
    )


def _owners(windows: TextWindows) -> torch.Tensor:
    """Whose passage each window is in, int64 ``[n]``."""
    return torch.repeat_interleave(torch.arange(len(windows.counts)), windows.counts)


SHAKESPEARE = Source(
    DatasetInfo(
        name="shakespeare",
        title="Shakespeare by role",
        description="The next character of what a role says, from the 80 before it, among 76; "
        "1,346 clients, the speaking roles of 37 plays.",
        tasks=("character",),
        kinds=("classes",),
        num_train=3_350_651,
        num_test=784_624,
        num_clients=1_346,
        licence="Public domain",
        citation=(
            "Shakespeare. The plays, in the Moby text.",
            "McMahan, Moore, Ramage, Hampson, Aguera y Arcas. Communication-Efficient Learning of "
            "Deep Networks from Decentralized Data. AISTATS 2017 (a client for each role).",
            "Caldas et al. LEAF: A Benchmark for Federated Settings. arXiv:1812.01097, 2018 (80 "
            "characters predict the next).",
        ),
    ),
    origin="The plays of Shakespeare in the public-domain Moby edition, the lines of each speaking "
    "role put together. LEAF takes another edition, so its counts and accuracies differ.",
    folders=(),
    forms=(archive_form(("shakespeare.npz", "shakespeare_roles.npz"), _MEMBERS),),
    published=Published("SHA-256", MappingProxyType({"arrays": _SHA256}), arrays_sha256),
    build=build,
)
