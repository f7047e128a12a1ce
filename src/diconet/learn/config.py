"""The settings of a training run, and its budget of steps or seconds."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any, Literal, get_args

Optimiser = Literal["rmsprop", "adam", "adamax", "adamw", "muon"]
Schedule = Literal["epoch", "cosine", "geometric"]
SizeScale = Literal["linear", "log"]

_CHOICES = {
    "split_optimiser": Optimiser,
    "merge_optimiser": Optimiser,
    "schedule": Schedule,
    "size_scale": SizeScale,
}


@dataclass(frozen=True)
class TrainConfig:
    """The settings of a training run. With the defaults, a new task learns in a minute or two.

    The paper's own values are in the presets named after it.

    Attributes:
        steps: The number of updates.
        seconds: Train for this long instead of for `steps`. Each step is still a function of the
            seed, but their number depends on the machine.
        batch_size: Inputs per step, all of one size.
        tree_samples: Random trees per input; each has the mean of the others as its baseline.
        min_size: The smallest input size; each step draws one.
        max_size: The largest input size.
        size_scale: Whether all sizes are equally likely ("linear"), or all doublings ("log").
        split_lr: Learning rate of the split.
        merge_lr: Learning rate of the merge.
        split_optimiser: Optimiser of the split.
        merge_optimiser: Optimiser of the merge.
        schedule: Learning rates decay along a cosine to zero ("cosine"), geometrically to
            `final_rate` of their start ("geometric"), or as 1 / k in epoch k ("epoch").
        warmup: Steps over which the rates rise at the start; not for "epoch".
        epoch_steps: Steps per epoch.
        final_rate: The final factor of "geometric".
        split_clip: Maximum norm of the split's gradient.
        merge_clip: Maximum norm of the merge's gradient.
        normalise_advantage: Divide the advantage by its standard deviation over the batch, so that
            the scale of a reward does not matter.
        regulariser: Weight of the variance of split probabilities (eq. 18), which balances trees.
        policy_weight: Weight of the policy gradient relative to likelihood and regulariser.
        policy_from: The share of the run after which the split learns: a merge that cannot merge
            yet teaches the split not to split.
        seed: Determines everything random in a run.
        log_every: Steps between lines of metrics.
        evaluate_every: Steps between evaluations.
        checkpoint_every: Steps between checkpoints.
    """

    steps: int = 1_000
    seconds: float | None = None
    batch_size: int = 64
    tree_samples: int = 8
    min_size: int = 6
    max_size: int = 50
    size_scale: SizeScale = "linear"
    split_lr: float = 0.003
    merge_lr: float = 0.003
    split_optimiser: Optimiser = "adam"
    merge_optimiser: Optimiser = "adam"
    schedule: Schedule = "cosine"
    warmup: int = 20
    epoch_steps: int = 7_800
    final_rate: float = 1e-3
    split_clip: float = 1.0
    merge_clip: float = 1.0
    normalise_advantage: bool = True
    regulariser: float = 0.0
    policy_weight: float = 1.0
    policy_from: float = 0.0
    seed: int = 0
    log_every: int = 20
    evaluate_every: int = 1_000
    checkpoint_every: int = 100

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in get_args(choices):
                raise ValueError(
                    f"{name} must be one of {', '.join(get_args(choices))};"
                    f" got {getattr(self, name)!r}."
                )
        for name in ("regulariser", "policy_weight"):
            if not math.isfinite(getattr(self, name)):
                raise ValueError(f"{name} must be a finite number; got {getattr(self, name)}.")
        every = ("log_every", "evaluate_every", "checkpoint_every")
        counts = ("steps", "batch_size", "tree_samples", "min_size", "epoch_steps", *every)
        check_least(self, 1, *counts)
        check_least(self, 0, "warmup")
        if self.max_size < self.min_size:
            raise ValueError(
                f"max_size must be at least min_size, {self.min_size}; got {self.max_size}."
            )
        above = ("split_lr", "merge_lr", "split_clip", "merge_clip", "final_rate", "seconds")
        for name in above:
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name} must be above 0; got {value}.")
        if not 0 <= self.policy_from <= 1:
            raise ValueError(
                f"policy_from must be a share of the run, from 0 to 1; got {self.policy_from}."
            )

    def rate(self, step: int, share: float | None = None) -> float:
        """The factor on the learning rates at a step, given the share of the run already done."""
        if self.schedule == "epoch":
            return 1 / (1 + step // self.epoch_steps)
        share = step / self.steps if share is None else share
        rising = min(1.0, (step + 1) / max(self.warmup, 1))
        if self.schedule == "geometric":
            return rising * self.final_rate**share
        return rising * 0.5 * (1 + math.cos(math.pi * share))


def check_least(settings: Any, least: int, *names: str) -> None:
    """Checks that the settings with these names are at least `least`."""
    for name in names:
        if getattr(settings, name) < least:
            raise ValueError(f"{name} must be at least {least}; got {getattr(settings, name)}.")


class Budget:
    """The budget of a run, in steps or seconds, and how much of it is spent.

    Seconds add up over all parts of an interrupted and resumed run.
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
        """The whole budget, in steps or in seconds."""
        return self._config.steps if self._config.seconds is None else self._config.seconds

    def used(self, done: int) -> float:
        """The budget spent after `done` steps, in steps or in seconds."""
        return done if self._config.seconds is None else min(self.seconds, self.total)

    def share(self, done: int) -> float:
        """The share of the run done after a number of steps, from 0 to 1."""
        return min(1.0, self.used(done) / self.total)

    def is_spent(self, done: int) -> bool:
        """Whether the run is over."""
        return self.used(done) >= self.total

    def __str__(self) -> str:
        unit = "steps" if self._config.seconds is None else "seconds"
        return f"{self.total:g} {unit}"
