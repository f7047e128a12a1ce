"""How far a run has come: by its steps or by the clock."""

from __future__ import annotations

import time

from diconet.learn.config import TrainConfig


class Budget:
    """What a run may use up, steps or seconds, and how much of it lies behind.

    Seconds count over all parts of a run that was cut off and resumed.
    """

    def __init__(self, config: TrainConfig, spent: float) -> None:
        self._config = config
        self._start = time.monotonic() - spent

    @property
    def seconds(self) -> float:
        """Seconds spent so far."""
        return time.monotonic() - self._start

    @property
    def total(self) -> float:
        """What there is to use up, in steps or in seconds."""
        return self._config.steps if self._config.seconds is None else self._config.seconds

    def used(self, done: int) -> float:
        """What is used up after `done` steps, in steps or in seconds."""
        return done if self._config.seconds is None else min(self.seconds, self.total)

    def share(self, done: int) -> float:
        """The share of the run that lies behind after a number of steps, from 0 to 1."""
        return min(1.0, self.used(done) / self.total)

    def is_spent(self, done: int) -> bool:
        """Whether the run is over."""
        return self.used(done) >= self.total

    def __str__(self) -> str:
        unit = "steps" if self._config.seconds is None else "seconds"
        return f"{self.total:g} {unit}"
