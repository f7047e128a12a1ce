"""The knapsack of the paper (section 6.3): its table, and a network of our own beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from diconet.core.host import from_host
from diconet.core.model import DiCoNet
from diconet.core.noise import phase_generator
from diconet.core.sets import SetBatch
from diconet.learn.config import check_least
from diconet.learn.estimators import Loss
from diconet.learn.loop import TrainConfig, train
from diconet.learn.settings import read_settings
from diconet.nets.similarity import SimilarityNet
from diconet.problems.knapsack.call_loss import call_loss
from diconet.problems.knapsack.fill import NUM_INPUTS, FillSplit, RandomOrder, RatioOrder
from diconet.problems.knapsack.flip_score import FlipScore, flip_loss
from diconet.problems.knapsack.greedy import (
    greedy_that_skips,
    greedy_that_stops,
    whole_instances,
    worth,
)
from diconet.problems.knapsack.pack import PackMerge
from diconet.problems.knapsack.problem import PROBLEM
from diconet.problems.knapsack.repair import CORE_GROWTH, CoreSplit, FrontierMerge
from diconet.problems.knapsack.search import Hunt
from diconet.problems.knapsack.search import run as run_trees
from diconet.problems.knapsack.task import KnapsackTask
from diconet.problems.networks import from_runs, shipped
from diconet.problems.table import OURS_BLOCK, PAPER_BLOCK, PARTS_BLOCK, cells, in_blocks

SIZES = (50, 100, 200)
DEFAULT_MODEL = "knapsack"

MAX_SPLITS = 9
PAPER: dict[str, dict[str, tuple[float, ...]]] = {
    "Baseline": {
        "cost": (19.82, 38.79, 74.71),
        "ratio": (1.0063, 1.0435, 1.0962),
        "splits": (0, 0, 0),
    },
    "DiCoNet": {
        "cost": (19.85, 40.23, 81.09),
        "ratio": (1.0052, 1.0048, 1.0046),
        "splits": (3, 5, 7),
    },
    "Greedy": {"cost": (19.73, 40.19, 81.19), "ratio": (1.0110, 1.0057, 1.0028)},
    "Optimum": {"cost": (19.95, 40.42, 81.41), "ratio": (1.0, 1.0, 1.0)},
}
"""The paper's table at `SIZES`."""

NOT_THE_PAPERS = ", two more inputs per item"
"""What the names of the paper's rows say of our networks; see `fill_inputs`."""

Answer = Callable[[SetBatch], Tensor]
"""Anything that chooses items: a mask over those of all sets."""


LOSSES: dict[str, Loss] = {"fill": call_loss, "core": flip_loss}
"""What fits each split."""


@dataclass(frozen=True)
class Settings:
    """A network and how it is trained.

    `split` "fill" is the paper's recursion, with `num_splits` calls after the first (0: its
    Baseline), which learns by REINFORCE call by call. "core" is ours, and learns what its own
    answers flip.
    """

    split: Literal["fill", "core"] = "core"
    width: int = 32
    num_layers: int = 5
    alpha: float = 0.5
    num_splits: int = 3
    train: TrainConfig = field(default_factory=TrainConfig)

    def __post_init__(self) -> None:
        check_least(self, 1, "width", "num_layers")
        check_least(self, 0, "num_splits")

    def build(self) -> DiCoNet:
        """The network, its weights drawn from the run's seed."""
        torch.manual_seed(self.train.seed)
        if self.split == "core":
            return DiCoNet(CoreSplit(FlipScore(self.width)), FrontierMerge(), CORE_GROWTH)
        network = SimilarityNet(NUM_INPUTS, self.width, self.num_layers)
        split = FillSplit(network, self.alpha, self.num_splits)
        return DiCoNet(split, PackMerge(), depth=self.num_splits + 1)


def train_model(settings: Settings, run: Path, **how: Any) -> DiCoNet:
    """Trains a network from the reward alone, or from its own answers, in the folder `run`.

    Other arguments are those of `train`: `quiet`, `device`.
    """
    test = {size: _Test.of(size, 64, "validate", 0) for size in SIZES}

    def ratios(model: DiCoNet) -> dict[str, float]:
        model.eval()
        return {
            f"ratio_{size}": t.to(model.device).ratio(answer_of(model)) for size, t in test.items()
        }

    how |= {"evaluate": ratios, "loss": LOSSES[settings.split]}
    return train(settings.build(), KnapsackTask(), settings.train, run=run, **how)


@dataclass(frozen=True, eq=False)
class _Test:
    """Instances of one size with their optimal values."""

    sets: SetBatch
    optimum: Tensor

    @classmethod
    def of(cls, size: int, num_sets: int, phase: str, seed: int) -> _Test:
        task = KnapsackTask()
        rng = phase_generator(phase, seed, size)
        sets = task.sample(num_sets, size, rng=rng)
        return cls(sets, task.reward(sets, task.oracle(sets)))

    def to(self, device: torch.device) -> _Test:
        """The same on another device."""
        return _Test(self.sets.to(device), self.optimum.to(device))

    def values(self, answer: Answer) -> Tensor:
        """What an answer packs, set by set."""
        return worth(self.sets, answer(self.sets)) * KnapsackTask().unit

    def ratio(self, answer: Answer) -> float:
        """Mean of optimum over value, as in the paper: the lower the better."""
        return (self.optimum / self.values(answer)).mean().item()


def answer_of(model: DiCoNet) -> Answer:
    """What a network chooses: the likeliest calls or, with a core, trees until it is proven."""

    @torch.no_grad()
    def answer(sets: SetBatch) -> Tensor:
        chosen = []
        for which in torch.arange(len(sets), device=sets.sizes.device).split(256):
            part = sets.take(which).as_roots()
            if isinstance(model.split, CoreSplit):
                hunts = [Hunt.of(*one) for one in whole_instances(part)]
                run_trees(hunts, model, torch.zeros_like(part.sizes))
                masks = np.concatenate([hunt.chosen for hunt in hunts])
                chosen.append(from_host(masks, part.sizes))
            else:
                chosen.append(model(part).solution.mask(part))
        return torch.cat(chosen)

    return answer


def with_splits(model: DiCoNet, num_splits: int, order: nn.Module | None = None) -> DiCoNet:
    """The paper's network with another number of recursive calls, or another `order` of items."""
    split = model.split
    assert isinstance(split, FillSplit)
    split = FillSplit(order or split.network, split.alpha, num_splits)
    return DiCoNet(split, PackMerge(), depth=num_splits + 1).eval()


def best_splits(model: DiCoNet, size: int, *, num_sets: int = 64) -> int:
    """The number of recursive calls that does best at a size, on sets of its own."""
    test = _Test.of(size, num_sets, "choose", 0)
    ratios = [test.ratio(answer_of(with_splits(model, splits))) for splits in range(MAX_SPLITS + 1)]
    return min(range(len(ratios)), key=ratios.__getitem__)


NETWORKS = {"knapsack_baseline": "baseline", "knapsack_paper": "paper", DEFAULT_MODEL: "default"}
"""The presets that make the networks of the table, by the names of their weights."""


def train_all(runs: Path, *, quiet: bool = False) -> Callable[[str], DiCoNet]:
    """Trains every network of the table anew, one folder of `runs` each.

    Gives what finds them by the names of their weights.
    """
    folders = {name: runs / f"knapsack_{preset}" for name, preset in NETWORKS.items()}
    for name, preset in NETWORKS.items():
        settings = read_settings(Settings, PROBLEM.folder("presets"), preset, [])
        train_model(settings, folders[name], quiet=quiet)
    return from_runs(folders)


def reproduce(
    *, num_sets: int = 1_000, seed: int = 0, find: Callable[[str], DiCoNet] = shipped
) -> list[dict[str, Any]]:
    """The paper's table and ours, all rows on the same fresh sets; `find` gets networks by name.

    "gap_ppm" is the ratio less one in millionths, "exact" the share of sets solved to the optimum,
    in percent.
    """
    records = []
    for size in (*SIZES, 1_000):
        test = _Test.of(size, num_sets, "test", seed)
        for block, row, answer, splits in _rows(size, min(num_sets, 64), find):
            values = test.values(answer)
            ratio = test.optimum / values
            figures: dict[str, float | Tensor | None] = {
                "cost": values,
                "ratio": ratio,
                "splits": splits,
                "gap_ppm": 1e6 * (ratio - 1),
                "exact": 100 * (ratio < 1 + 1e-9).double(),
            }
            records += cells(row, f"n={size}", figures, _known(row, size), block)
        best: dict[str, float | Tensor | None] = {"cost": test.optimum, "ratio": 1.0}
        records += cells("Optimum", f"n={size}", best, _known("Optimum", size), PAPER_BLOCK)
    return in_blocks(records)


def _known(row: str, size: int) -> dict[str, float]:
    """The paper's figures of a row at a size."""
    if size not in SIZES:
        return {}
    known = PAPER.get(row.removesuffix(NOT_THE_PAPERS), {})
    return {metric: found[SIZES.index(size)] for metric, found in known.items()}


_Row = tuple[str, str, Answer, float | None]
"""A row's block and name, how it answers and, where it has them, its splits."""


def _rows(size: int, num_trials: int, find: Callable[[str], DiCoNet]) -> Iterator[_Row]:
    """Every row at a size."""
    if size in SIZES:
        plain, recursive = find("knapsack_baseline"), find("knapsack_paper")
        splits = best_splits(recursive, size, num_sets=num_trials)
        best = answer_of(with_splits(recursive, splits))
        yield PAPER_BLOCK, "Baseline" + NOT_THE_PAPERS, answer_of(plain), 0
        yield PAPER_BLOCK, "DiCoNet" + NOT_THE_PAPERS, best, splits
        yield PARTS_BLOCK, "no division, learned order", answer_of(with_splits(recursive, 0)), 0
        orders = {"random order": RandomOrder(), "value per weight": RatioOrder()}
        for calls in dict.fromkeys((3, splits)):
            for name, order in (*orders.items(), ("learned order", None)):
                answer = answer_of(with_splits(recursive, calls, order))
                yield PARTS_BLOCK, f"{calls} splits, {name}", answer, calls
    yield PAPER_BLOCK, "Greedy", greedy_that_stops, None
    yield OURS_BLOCK, "Greedy that skips", greedy_that_skips, None
    yield OURS_BLOCK, "core in halves", answer_of(find(DEFAULT_MODEL)), None
