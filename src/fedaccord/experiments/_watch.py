"""Who is told how a run goes on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class Watch(Protocol):
    """Is told how a run goes on."""

    def __call__(
        self, stage: str, /, *, done: int, of: int, evaluation: Mapping[str, Any] | None = None
    ) -> None:
        """Another round is done.

        :param stage: ``"calibration"`` or ``"training"``.
        :param done: Rounds done so far.
        :param of: Rounds in all.
        :param evaluation: What the model achieved, where it was measured.
        """
        ...


def unwatched(
    stage: str, /, *, done: int, of: int, evaluation: Mapping[str, Any] | None = None
) -> None:
    """Watch nothing."""
