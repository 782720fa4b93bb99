"""Windows over a text that is kept once: samples of next-character prediction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ..clients import Batch
from ._arrays import as_rows, require_rows
from ._labels import Indices


@dataclass(frozen=True, eq=False)
class TextWindows:
    """Samples of ``window`` characters and the one that follows, cut when they are asked for.

    No window reaches over the end of a passage. The text is shared by all subsets; a window costs
    no memory, a subset eight bytes for each of its samples.

    :param text: Codes of the characters, uint8 ``[length]``.
    :param begins: Where each passage begins, int64 ``[passages]``.
    :param counts: Number of windows of each passage, int64 ``[passages]``.
    :param window: Characters of one input, at least 1.
    :param stride: Characters from the start of one window to the next one's, at least 1.
    :param rows: Which of the windows belong to these samples, int64 ``[k]``; ``None`` means all.
    """

    text: Tensor
    begins: Tensor
    counts: Tensor
    window: int
    stride: int = 1
    rows: Tensor | None = None

    @classmethod
    def over(
        cls, text: Tensor, begins: Tensor, ends: Tensor, *, window: int, stride: int = 1
    ) -> TextWindows:
        """Cut passages into as many windows as fit, each followed by a character.

        :param text: Codes of the characters, uint8 ``[length]``.
        :param begins: Where each passage begins, int64 ``[passages]``.
        :param ends: Where it ends, likewise.
        :param window: Characters of one input, at least 1.
        :param stride: Characters from the start of one window to the next one's, at least 1.
        :raises ValueError: If ``window`` or ``stride`` is below 1.
        """
        if min(window, stride) < 1:
            raise ValueError(
                f"`window` and `stride` must be at least 1. Got {window} and {stride}."
            )
        spare = ends - begins - (window + 1)
        counts = torch.where(spare >= 0, spare // stride + 1, 0)
        return cls(text, begins, counts, window, stride)

    def __len__(self) -> int:
        return int(self.counts.sum()) if self.rows is None else len(self.rows)

    def batch(self, index: Tensor) -> Batch:
        """Return windows ``[b, window]`` and next characters ``[b]``, int64, at ``index``."""
        starts = self._starts(index)
        codes = self.text[starts.unsqueeze(1) + torch.arange(self.window + 1)].to(torch.int64)
        return codes[:, :-1], codes[:, -1]

    def subset(self, index: Indices | Tensor | Sequence[int]) -> TextWindows:
        """Return the samples at ``index`` as data of their own; the text is shared.

        :param index: Integers ``[k]`` in ``[0, len(self))``; may be empty or repeat.
        :raises ValueError: If they are not integers or out of range.
        """
        rows = as_rows(index)
        require_rows(rows, len(self))
        return replace(self, rows=rows if self.rows is None else self.rows[rows])

    @property
    def inputs(self) -> Tensor:
        """All windows ``[k, window]``, int64: ``8 * window`` bytes each, so take parts of them."""
        return self.batch(torch.arange(len(self)))[0]

    @property
    def targets(self) -> Tensor:
        """All next characters ``[k]``, int64."""
        starts = self._starts(torch.arange(len(self)))
        return self.text[starts + self.window].to(torch.int64)

    def _starts(self, index: Tensor) -> Tensor:
        """Where the windows begin in the text."""
        rows = index if self.rows is None else self.rows.index_select(0, index)
        lasts = self.counts.cumsum(0)
        passage = torch.searchsorted(lasts, rows, right=True)
        within = rows - (lasts - self.counts)[passage]
        return self.begins[passage] + within * self.stride
