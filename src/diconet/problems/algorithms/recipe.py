"""Training of the five algorithms, and the table of their accuracy at up to a million items."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import nn

from diconet.core.coin import RandomSplit
from diconet.core.model import DiCoNet
from diconet.core.noise import phase_generator
from diconet.core.weights import save
from diconet.learn.config import TrainConfig
from diconet.learn.loop import train
from diconet.nets.classic import MedianSplit
from diconet.nets.line_split import LineSplit
from diconet.nets.rules import RuleMerge
from diconet.problems.algorithms.measure import divided_by
from diconet.problems.algorithms.networks import NETWORKS
from diconet.problems.algorithms.tasks import TASKS, TRAIN_KINDS
from diconet.problems.catalog import find_problem
from diconet.problems.networks import from_runs, shipped
from diconet.problems.problem import Record
from diconet.problems.table import cells

SHARE = 0.25
"""When solving, either side of a cut gets at least this share of the items."""

COUNTS = {64: 1_000, 1_000: 1_000, 100_000: 100, 1_000_000: 10}
"""The number of inputs of each size in the table."""

SMALL = 1_000
"""The largest size at which other divisions are measured."""

PUBLISHED = {"sort": 98.0, "select": 3.0}
"""The best figures published for CLRS-30 at n = 64, in percent of single nodes."""

TRAIN = TrainConfig(
    steps=400,
    batch_size=32,
    tree_samples=2,
    min_size=2,
    max_size=32,
    split_lr=0.1,
    merge_lr=0.1,
    split_clip=5.0,
    merge_clip=5.0,
    regulariser=1.0,
)
"""The default training of an algorithm; `TRAINS` has exceptions."""

TRAINS = dict.fromkeys(TASKS, TRAIN) | {
    "select": replace(TRAIN, steps=500),
    "subarray": replace(TRAIN, steps=1_000, max_size=8),
    "closest": replace(TRAIN, max_size=16),
    "skyline": replace(TRAIN, steps=250, max_size=12),
}


def _settings(name: str) -> type[Any]:
    @dataclass(frozen=True)
    class Settings:
        """Settings for the training of an algorithm."""

        algorithm: ClassVar[str] = name
        train: TrainConfig = TRAINS[name]

    return Settings


class Recipe:
    """Trains the network of one algorithm; makes the table of all."""

    def __init__(self, name: str) -> None:
        self.Settings = _settings(name)

    def train_model(self, settings: Any, run: Path, **how: Any) -> DiCoNet:
        """Trains a network in the folder `run`; returns it in the form used for solving.

        Other arguments are those of `train`: `quiet`, `device`.
        """
        model = built(settings.algorithm, settings.train.seed)
        task = TASKS[settings.algorithm](TRAIN_KINDS)
        train(model, task, settings.train, oracle=task.oracle, run=run, **how)
        model = settled(model, task, settings.train)
        save(model, run / "weights.safetensors", half=False)
        return model

    def train_all(self, runs: Path, *, quiet: bool = False) -> Callable[[str], DiCoNet]:
        """Trains all five, each in a folder of `runs`; returns a lookup by name."""
        for name in TASKS:
            self.train_model(_settings(name)(), runs / name, quiet=quiet)
        return from_runs({name: runs / name for name in TASKS})

    def reproduce(
        self, *, num_sets: int = 1_000, seed: int = 0, find: Callable[[str], DiCoNet] = shipped
    ) -> list[Record]:
        """Percentage of answers right as a whole, by size; other divisions at small sizes."""
        records: list[Record] = []
        for name in TASKS:
            learned = find(name)
            for row, network, most in divisions(name, learned):
                for size, usual in COUNTS.items():
                    if size <= most:
                        some = max(1, usual * num_sets // 1_000)
                        records += _cells(name, row, network, size, some, seed)
        for size, usual in COUNTS.items():
            some = max(1, usual * num_sets // 1_000)
            records += _cells("hull", "hull", find("hull"), size, some, seed)
        return records


def built(name: str, seed: int) -> DiCoNet:
    """The untrained network of an algorithm."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return NETWORKS[name]()


def settled(model: DiCoNet, task: Any, how: TrainConfig) -> DiCoNet:
    """The network for solving: with balanced cuts and, of several tables, the best.

    The best table is the one most often right on fresh training inputs.
    """
    line = getattr(model.split, "split", model.split)
    assert isinstance(line, LineSplit)
    line.share = line.config["share"] = SHARE
    model.eval()
    if isinstance(model.merge, RuleMerge):
        rng = phase_generator("tables", how.seed)
        sets = task.sample(256, how.max_size, rng=rng).to(model.device)
        tables = [
            DiCoNet(model.split, model.merge.settled(number), model.growth).eval()
            for number in range(len(model.merge.rules))
        ]
        with torch.no_grad():
            right = [float(task.right(sets, one(sets).solution).double().mean()) for one in tables]
        model = tables[right.index(max(right))]
    return model


def divisions(name: str, learned: DiCoNet) -> Iterator[tuple[str, DiCoNet, int]]:
    """A network and the same with other divisions, each with its row name and largest size."""
    yield name, learned, max(COUNTS)
    yield f"{name}, random division", divided_by(learned, RandomSplit()), SMALL
    yield f"{name}, median division", divided_by(learned, middle(name)), SMALL


def middle(name: str) -> nn.Module:
    """Equal halves: of a sequence by position, else along the first feature."""
    if name != "subarray":
        return MedianSplit()
    line = LineSplit(1, ordered=True)
    line.place.data.zero_()
    return line


def _cells(
    name: str, row: str, network: DiCoNet, size: int, num_sets: int, seed: int
) -> list[Record]:
    """Accuracy, share proven, and seconds per input of one row at one size."""
    problem = find_problem(name)
    coins = seed if "random" in row else None
    sums: dict[str, float] = {"accuracy": 0.0, "proved": 0.0, "seconds": 0.0}
    part = max(1, 1_000_000 // size)
    for number, start in enumerate(range(0, num_sets, part)):
        some = min(part, num_sets - start)
        instances = problem.fresh(size, some, seed + number)
        begin = time.perf_counter()
        solutions = problem.solve(instances, model=network, seed=coins)
        sums["seconds"] += time.perf_counter() - begin
        graded = problem.grade(instances, solutions)
        for metric in ("accuracy", "proved"):
            sums[metric] += some * graded[metric]
    figures: dict[str, float | None] = {one: total / num_sets for one, total in sums.items()}
    known = {"accuracy": PUBLISHED[name]} if size == 64 and row in PUBLISHED else {}
    return cells(row, f"n={size:,}", figures, known)
