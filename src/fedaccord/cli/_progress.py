"""How far long work is."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from ..experiments import Experiment

SECONDS_BETWEEN_LINES = 15.0


def rounds_of(experiment: Experiment) -> int:
    """All rounds that an experiment takes, those of calibration included."""
    needed = experiment.calibration if experiment.rule.lacks_reference else None
    return experiment.rounds + (needed.rounds if needed else 0)


class Progress:
    """A bar with the time left on a terminal; elsewhere a plain line now and then.

    :param console: Where to, usually standard error.
    :param total: Rounds in all.
    """

    def __init__(self, console: Console, *, total: int) -> None:
        self._console = console
        self._total = total
        self._before = 0
        self._own = 0
        self._name = ""
        self._last_line = time.monotonic()
        self._task: TaskID | None = None
        self._bar = Bar(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )

    def __enter__(self) -> Progress:
        self._bar.start()
        self._task = self._bar.add_task("", total=self._total)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def now(self, name: str, experiment: Experiment) -> None:
        """Say what is worked on from here; what was before is done."""
        self._name = name
        self._before += self._own
        self._own = rounds_of(experiment)

    def __call__(
        self, stage: str, /, *, done: int, of: int, evaluation: Mapping[str, Any] | None = None
    ) -> None:
        """Say how far it is."""
        calibrating = stage == "calibration"
        text = f"{self._name} (calibration)" if calibrating else self._name
        # of a resumed run, rounds of earlier sittings count as done
        completed = self._before + done + (0 if calibrating else self._own - of)
        assert self._task is not None
        self._bar.update(self._task, description=text, completed=completed)
        now = time.monotonic()
        if self._bar.disable and now - self._last_line >= SECONDS_BETWEEN_LINES:
            self._last_line = now
            line = f"{text}: round {done} of {of}"
            self._console.print(line, markup=False, highlight=False, soft_wrap=True)
