"""Training of the triple merge: first its judge, from coarse to fine, then the split."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from diconet.core.coin import RandomSplit
from diconet.core.model import DiCoNet
from diconet.core.tree import Growth
from diconet.core.weights import save
from diconet.learn.config import TrainConfig
from diconet.learn.loop import train
from diconet.nets.axes import Aligned
from diconet.nets.classic import Balanced
from diconet.nets.set_split import SetSplit
from diconet.problems.hull.clouds import CloudTask
from diconet.problems.hull.triples import TripleJudge, TripleMerge

MERGE_TRAIN = TrainConfig(
    steps=200,
    batch_size=16,
    tree_samples=1,
    min_size=3,
    max_size=50,
    merge_lr=5.0,
    schedule="geometric",
    final_rate=0.02,
    warmup=10,
    merge_clip=math.inf,
)
"""How the merge is trained at each resolution."""


@dataclass(frozen=True)
class TripleSettings:
    """First the merge learns, on random trees; then the split, with the merge fixed.

    The merge is trained at each of `resolutions` in turn, from coarse to fine, with `merge_lr` in
    units of the resolution (but at most `max_lr`). A merge that is always right gives no signal
    about splits, so while the split learns (`split_train`), the judge works at `blunt_resolution`,
    which favours trees with clear cases. Trees end at leaves of `leaf_size` points, or of
    `solve_leaf_size` when solving, which takes fewer levels; there, either side of a cut gets at
    least `share` of the points, and points in doubt are kept with `patience`. `kinds` and
    `split_kinds` are the clouds that merge and split are trained on.
    """

    num_forms: int = 1
    resolutions: tuple[float, ...] = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
    max_lr: float = 0.1
    patience: float = 0.95
    split_width: int = 8
    split_layers: int = 3
    blunt_resolution: float = 0.02
    leaf_size: int = 8
    solve_leaf_size: int = 16
    share: float = 0.4
    kinds: tuple[str, ...] = ("uniform", "gaussian", "circle", "sides")
    split_kinds: tuple[str, ...] = ("uniform", "gaussian", "circle")
    split_train: TrainConfig = field(
        default_factory=lambda: TrainConfig(
            steps=200,
            batch_size=16,
            tree_samples=8,
            min_size=9,
            max_size=50,
            split_lr=0.03,
            split_optimiser="adam",
            schedule="cosine",
            warmup=10,
            split_clip=40.0,
            normalise_advantage=False,
            regulariser=1.0,
        )
    )

    def __post_init__(self) -> None:
        if not self.resolutions or min(self.resolutions) <= 0:
            raise ValueError(f"resolutions must all be above 0; got {self.resolutions}.")


def build_triples(settings: TripleSettings, seed: int) -> DiCoNet:
    """The untrained network for these settings."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        split = Aligned(SetSplit(2, settings.split_width, settings.split_layers))
        judge = TripleJudge(settings.num_forms, settings.resolutions[-1])
    return DiCoNet(split, TripleMerge(judge), Growth(leaf_size=settings.leaf_size))


def train_triples(
    settings: TripleSettings,
    merge_train: TrainConfig,
    run: Path,
    quiet: bool = False,
    device: str | torch.device | None = None,
) -> DiCoNet:
    """Trains a network from hulls alone; returns it for solving, with balanced trees."""
    model = build_triples(settings, merge_train.seed)
    _train_merge(model, settings, merge_train, run, {"quiet": quiet, "device": device})
    _train_split(model, settings, run, {"quiet": quiet, "device": device})
    assert isinstance(model.merge, TripleMerge)
    merge = TripleMerge(model.merge.judge, settings.patience)
    growth = Growth(leaf_size=settings.solve_leaf_size)
    solver = DiCoNet(Balanced(model.split, settings.share), merge, growth).eval()
    save(solver, run / "weights.safetensors", half=False)  # the last digits matter here
    return solver


def _train_merge(
    model: DiCoNet, settings: TripleSettings, how: TrainConfig, run: Path, also: dict[str, Any]
) -> None:
    """Trains the merge at finer and finer resolutions; each sees what the last left undecided."""
    task = CloudTask(settings.kinds)
    for number, resolution in enumerate(settings.resolutions):
        rate = min(how.merge_lr * resolution, settings.max_lr)
        with _seeing(model.merge, resolution):
            train(
                DiCoNet(RandomSplit(), model.merge, model.growth),
                task,
                replace(how, merge_lr=rate, seed=how.seed + number),
                oracle=task.oracle,
                run=run / f"merge_{number}",
                **also,
            )


def _train_split(model: DiCoNet, settings: TripleSettings, run: Path, also: dict[str, Any]) -> None:
    """Trains the split by policy gradient, with the merge fixed."""
    assert model.merge is not None
    task = CloudTask(settings.split_kinds)
    model.merge.requires_grad_(False)
    with _seeing(model.merge, settings.blunt_resolution):
        train(
            model,
            task,
            settings.split_train,
            oracle=task.oracle,
            run=run / "split",
            **also,
        )
    model.merge.requires_grad_(True)


@contextmanager
def _seeing(merge: nn.Module | None, resolution: float) -> Iterator[None]:
    """Temporarily sets the merge's judge to another resolution."""
    assert isinstance(merge, TripleMerge)
    before = merge.judge.resolution
    merge.judge.resolution = resolution
    yield
    merge.judge.resolution = before
