"""How the triple merge for convex hulls is trained, evaluated and set beside the paper's table."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from diconet.answers import Sequences
from diconet.merges import TripleJudge, TripleMerge
from diconet.model import DiCoNet
from diconet.sets import SetBatch
from diconet.splits import Balanced, RandomSplit, SetSplit
from diconet.splits.aligned import Aligned
from diconet.tasks.clouds import CLOUDS, CloudTask
from diconet.tasks.hull import HullTask, metrics
from diconet.train import TrainConfig, train
from diconet.tree import Growth
from diconet.weights import save, shipped

ROW = "Triple merge"
"""The name of its row beside the paper's."""

DEFAULT_MODEL = "hull"
SIZES = (25, 50, 100, 200)
LARGE_SIZES = (1_000, 10_000)


@dataclass(frozen=True)
class Settings:
    """First the merge learns, on random trees; then the split, with the merge it has.

    The merge learns in stages, one for each of `resolutions`, from coarse to fine: `train` says
    how, with `merge_lr` in units of the resolution (but at most `max_lr`). A merge that is always
    right says nothing of splits, so while the split learns (`split_train`), the judge is made to
    see only `blunt_resolution`, and trees with clear cases win. Trees end at leaves of `leaf_size`;
    for solving, neither side of a cut gets less than `share` of the points, and points in doubt are
    kept with `patience`.
    """

    num_forms: int = 1
    resolutions: tuple[float, ...] = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
    max_lr: float = 0.1
    patience: float = 0.95
    split_width: int = 8
    split_layers: int = 3
    blunt_resolution: float = 0.02
    leaf_size: int = 8
    share: float = 0.4
    kinds: tuple[str, ...] = ("uniform", "gaussian", "circle", "sides")
    split_kinds: tuple[str, ...] = ("uniform", "gaussian", "circle")
    train: TrainConfig = field(
        default_factory=lambda: TrainConfig(
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
    )
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
            regulariser=1.0,
        )
    )

    def __post_init__(self) -> None:
        if not self.resolutions or min(self.resolutions) <= 0:
            raise ValueError(f"resolutions must all be above 0; got {self.resolutions}.")


def build(settings: Settings) -> DiCoNet:
    """The network that the settings describe, untrained."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.train.seed)
        split = Aligned(SetSplit(2, settings.split_width, settings.split_layers))
        judge = TripleJudge(settings.num_forms, settings.resolutions[-1])
    return DiCoNet(split, TripleMerge(judge), Growth(leaf_size=settings.leaf_size))


def train_model(settings: Settings, run: str | Path | None = None, quiet: bool = False) -> DiCoNet:
    """Trains a network from hulls alone; gives it as it solves, with balanced trees."""
    model = build(settings)
    folder = None if run is None else Path(run)
    _train_merge(model, settings, folder, quiet)
    _train_split(model, settings, folder, quiet)
    solver = solver_of(model, settings)
    if folder is not None:
        save(solver, folder / "weights.safetensors", half=False)  # its point is the last digits
    return solver


def solver_of(model: DiCoNet, settings: Settings) -> DiCoNet:
    """The same network as it solves: trees are balanced, and ties are kept."""
    assert isinstance(model.merge, TripleMerge)
    merge = TripleMerge(model.merge.judge, settings.patience)
    return DiCoNet(Balanced(model.split, settings.share), merge, model.growth).eval()


def _train_merge(model: DiCoNet, settings: Settings, folder: Path | None, quiet: bool) -> None:
    """Finer and finer: what one stage leaves undone is the next one's whole field of view."""
    task = CloudTask(settings.kinds)
    how = settings.train
    for number, resolution in enumerate(settings.resolutions):
        rate = min(how.merge_lr * resolution, settings.max_lr)
        with _seeing(model.merge, resolution):
            train(
                DiCoNet(RandomSplit(), model.merge, model.growth),
                task,
                replace(how, merge_lr=rate, seed=how.seed + number),
                oracle=task.oracle,
                run=folder and folder / f"merge_{number}",
                quiet=quiet,
            )


def _train_split(model: DiCoNet, settings: Settings, folder: Path | None, quiet: bool) -> None:
    """By policy gradient from a merge that stays as it is."""
    assert model.merge is not None
    task = CloudTask(settings.split_kinds)
    model.merge.requires_grad_(False)
    with _seeing(model.merge, settings.blunt_resolution):
        train(
            model,
            task,
            settings.split_train,
            oracle=task.oracle,
            run=folder and folder / "split",
            quiet=quiet,
        )
    model.merge.requires_grad_(True)


@contextmanager
def _seeing(merge: nn.Module | None, resolution: float) -> Iterator[None]:
    """The merge's judge at another resolution for a while."""
    assert isinstance(merge, TripleMerge)
    before = merge.judge.resolution
    merge.judge.resolution = resolution
    yield
    merge.judge.resolution = before


def evaluate(
    model: DiCoNet,
    *,
    sizes: Sequence[int] = SIZES,
    num_sets: int = 1_024,
    seed: int = 0,
    cloud: str = "uniform",
) -> list[dict[str, Any]]:
    """Quality of a network on fresh clouds of one kind, one record a size and metric."""
    return [
        {"size": size, "metric": metric, "value": value}
        for size in sizes
        for metric, value in _measured(model, cloud, size, num_sets, seed).items()
    ]


def reproduce(
    *, num_sets: int = 4_096, seed: int = 0, find: Callable[[str], DiCoNet] = shipped
) -> list[dict[str, Any]]:
    """The extra row for the paper's hull table: its sizes, and larger ones on fewer sets."""
    model = find(DEFAULT_MODEL)
    counts = dict.fromkeys(SIZES, num_sets)
    counts |= {size: max(1, min(num_sets, 500_000 // size)) for size in LARGE_SIZES}
    return [
        {"row": ROW, "column": f"n={size}", "metric": metric, "ours": value, "paper": None}
        for size, count in counts.items()
        for metric, value in _measured(model, "uniform", size, count, seed).items()
    ]


def _measured(
    model: DiCoNet, cloud: str, size: int, num_sets: int, seed: int, batch_items: int = 200_000
) -> dict[str, float]:
    """Metrics over fresh sets, batch by batch so that memory stays bounded."""
    rng = torch.Generator().manual_seed(seed)
    at_once = max(1, batch_items // size)
    total: dict[str, float] = {}
    for start in range(0, num_sets, at_once):
        count = min(at_once, num_sets - start)
        items = CLOUDS[cloud](count, size, rng).reshape(-1, 2)
        sets = SetBatch.pack(items, torch.full((count,), size))
        with torch.inference_mode():
            found: Sequences = model(sets).solution
        part = metrics(sets, found, HullTask().oracle(sets))
        total = {name: total.get(name, 0.0) + value * count for name, value in part.items()}
    return {name: value / num_sets for name, value in total.items()}
