"""Ctrl-C that lets the step under way finish."""

from __future__ import annotations

import contextlib
import signal
from types import FrameType
from typing import Any


class StopSignal:
    """Notes the first Ctrl-C, so that the step under way is finished and kept."""

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
