"""Readers of the file formats that datasets come in: strict, bounded, and nothing is executed."""

from __future__ import annotations

from .bounded import LIMIT, read_file, read_members
from .cifar import binary_batch, channel_planes, channels_last, python_batch
from .idx import idx_header, read_idx
from .npz import Arrays, Member, pack_npz, read_npz
from .pickles import plain_pickle

__all__ = [
    "LIMIT",
    "Arrays",
    "Member",
    "binary_batch",
    "channel_planes",
    "channels_last",
    "idx_header",
    "pack_npz",
    "plain_pickle",
    "python_batch",
    "read_file",
    "read_idx",
    "read_members",
    "read_npz",
]
