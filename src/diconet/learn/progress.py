"""A run's progress bar, its final warnings, and how Ctrl-C stops it."""

from __future__ import annotations

import contextlib
import math
import signal
from collections.abc import Iterable
from types import FrameType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

_KEEP = 0.9
"""The weight of earlier steps in the displayed score."""


class ProgressBar:
    """A line with the stage, the progress, the score, the best score, and the time left.

    Scores are running means, since those of single steps fluctuate.
    """

    def __init__(self, stage: str, total: float, done: float, hidden: bool) -> None:
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.completed:.0f}/{task.total:.0f}"),
            TextColumn("{task.fields[note]}"),
            TimeRemainingColumn(elapsed_when_finished=True),
            console=Console(stderr=True),
            disable=hidden,
            transient=True,
        )
        self._line = self._bar.add_task(stage, total=total, completed=round(done), note="")
        self._score, self._best = math.nan, -math.inf

    def __enter__(self) -> ProgressBar:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def show(self, used: float, score: float, complaints: Iterable[str] = ()) -> None:
        """Advances the bar; the first complaint follows the scores, truncated."""
        known = math.isfinite(self._score)
        self._score = _KEEP * self._score + (1 - _KEEP) * score if known else score
        self._best = max(self._best, self._score)
        note = f"score {self._score:.4g}, best {self._best:.4g}"
        for line in complaints:
            note += f" [yellow]({line.partition(':')[0].partition('.')[0][:60]})[/]"
            break
        self._bar.update(self._line, completed=used, note=note)


def warn(lines: Iterable[str], hidden: bool) -> None:
    """Prints warnings to standard error, one line each."""
    if not hidden:
        console = Console(stderr=True, soft_wrap=True, highlight=False)
        for line in lines:
            console.print(f"[yellow]warning:[/] {line}")


class StopSignal:
    """Records the first Ctrl-C, so that the current step can finish and be saved."""

    def __init__(self) -> None:
        self.asked = False
        self._before: Any = None

    def __enter__(self) -> StopSignal:
        # Outside the main thread, Ctrl-C does not arrive anyway.
        with contextlib.suppress(ValueError):
            self._before = signal.signal(signal.SIGINT, self._ask)
        return self

    def __exit__(self, *_: object) -> None:
        self._restore()

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        self._restore()  # a second Ctrl-C stops at once

    def _restore(self) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
