"""The settings of a training run."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

Optimiser = Literal["rmsprop", "adam", "adamax", "adamw", "muon"]
Learning = Literal["policy_gradient", "imitate"]
Schedule = Literal["epoch", "cosine", "geometric"]

_CHOICES = {
    "split_optimiser": Optimiser,
    "merge_optimiser": Optimiser,
    "estimator": Learning,
    "schedule": Schedule,
}


@dataclass(frozen=True)
class TrainConfig:
    """How a network is trained. The defaults are the paper's, as far as it gives them.

    A step is `batch_size` inputs of one size, drawn from `min_size` to `max_size`, with
    `tree_samples` random trees each. Rates fall as lr / k in epoch k of `epoch_steps` steps
    ("epoch"), along a cosine to zero ("cosine") or geometrically to `final_rate` of what they were
    ("geometric"), both after a warm-up. From `binarise_from` (a share of the run) on, levels below
    the root count as made choices in the likelihood. A reward is learned from by policy gradient,
    or by imitating the best of each input's trees ("imitate"). The policy gradient counts
    `policy_weight` beside the regulariser, and sets in at `policy_from` (a share of the run): a
    merge that cannot merge yet teaches the split not to split.
    """

    steps: int = 10_000
    batch_size: int = 128
    tree_samples: int = 4
    min_size: int = 6
    max_size: int = 50
    split_lr: float = 0.01
    merge_lr: float = 0.001
    split_optimiser: Optimiser = "rmsprop"
    merge_optimiser: Optimiser = "adam"
    estimator: Learning = "policy_gradient"
    schedule: Schedule = "epoch"
    epoch_steps: int = 7_800
    warmup: int = 100
    final_rate: float = 1e-3
    split_clip: float = 40.0
    merge_clip: float = 2.0
    regulariser: float = 0.0
    policy_weight: float = 1.0
    policy_from: float = 0.0
    binarise_from: float = 1.0
    seed: int = 0
    log_every: int = 50
    evaluate_every: int = 1_000
    checkpoint_every: int = 500

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
        for name in ("split_lr", "merge_lr", "split_clip", "merge_clip", "final_rate"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0; got {getattr(self, name)}.")
        for name in ("policy_from", "binarise_from"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(
                    f"{name} must be a share of the run, from 0 to 1; got {getattr(self, name)}."
                )

    def rate(self, step: int) -> float:
        """The factor on the learning rates at a step."""
        if self.schedule == "epoch":
            return 1 / (1 + step // self.epoch_steps)
        rising = min(1.0, (step + 1) / max(self.warmup, 1))
        if self.schedule == "geometric":
            return rising * self.final_rate ** (step / self.steps)
        return rising * 0.5 * (1 + math.cos(math.pi * step / self.steps))


def check_least(settings: Any, least: int, *names: str) -> None:
    """Settings of these names must be so large."""
    for name in names:
        if getattr(settings, name) < least:
            raise ValueError(f"{name} must be at least {least}; got {getattr(settings, name)}.")
