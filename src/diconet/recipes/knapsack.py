"""The knapsack of the paper (section 6.3): its table, and a network of our own beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from diconet.greedy import worth
from diconet.merges.pack import PackMerge
from diconet.model import DiCoNet
from diconet.noise import seeds_from
from diconet.presets import read_settings
from diconet.references.knapsack import greedy_that_skips, greedy_that_stops, noisy_ratio, pilot
from diconet.sets import SetBatch
from diconet.splits.fill import FillSplit
from diconet.splits.similarity import SimilarityNet
from diconet.splits.takeleave import TakeLeave
from diconet.splits.walk_search import LEFT, beam_of_walks, best_of_walks
from diconet.tasks.knapsack import KnapsackTask, proven_gap
from diconet.train import TrainConfig, train
from diconet.train_config import check_least
from diconet.tree import Growth
from diconet.weights import from_runs, shipped, start_from

SIZES = (50, 100, 200)
DEFAULT_MODEL = "knapsack"
PARTS = (PackMerge,)
"""What networks for knapsacks are made of."""

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

Answer = Callable[[SetBatch], Tensor]
"""Anything that chooses items: a mask over those of all sets."""


@dataclass(frozen=True)
class Settings:
    """A network and how it is trained.

    "fill" is the paper's recursion, with `num_splits` calls after the first (0: its Baseline);
    "takeleave" is ours, which meets instances drawn together by powers down to `least_power`.
    `init` names weights to start from.
    """

    split: Literal["fill", "takeleave"] = "takeleave"
    width: int = 128
    num_layers: int = 5
    alpha: float = 0.5
    num_splits: int = 3
    least_power: float = 1.0
    init: str | None = None
    train: TrainConfig = field(default_factory=TrainConfig)

    def __post_init__(self) -> None:
        check_least(self, 1, "width", "num_layers")
        check_least(self, 0, "num_splits")

    def build(self) -> DiCoNet:
        """The network, its weights drawn from the run's seed."""
        torch.manual_seed(self.train.seed)
        if self.split == "takeleave":
            return DiCoNet(TakeLeave(self.width), PackMerge(fill=True), depth=1)
        network = SimilarityNet(3, self.width, self.num_layers)
        split = FillSplit(network, self.alpha, self.num_splits)
        return DiCoNet(split, PackMerge(), depth=self.num_splits + 1)


def train_model(settings: Settings, run: Path, quiet: bool = False) -> DiCoNet:
    """Trains a network from the reward alone, in the folder `run`."""
    model = settings.build()
    if settings.init is not None:
        start_from(model, settings.init, "init")
    test = {size: _Test.of(size, 64, seed=9) for size in SIZES}

    def ratios(model: DiCoNet) -> dict[str, float]:
        model.eval()
        return {f"ratio_{size}": t.ratio(greedy_answer(model)) for size, t in test.items()}

    return train(
        model,
        KnapsackTask(least_power=settings.least_power),
        settings.train,
        run=run,
        evaluate=ratios,
        quiet=quiet,
    )


@dataclass(frozen=True, eq=False)
class _Test:
    """Instances of one size with their optimal values."""

    sets: SetBatch
    optimum: Tensor

    @classmethod
    def of(cls, size: int, num_sets: int, seed: int) -> _Test:
        task = KnapsackTask()
        rng = torch.Generator().manual_seed((1_000_003 * seed + size) % 2**63)
        sets = task.sample(num_sets, size, rng=rng)
        return cls(sets, task.reward(sets, task.oracle(sets)))

    def values(self, answer: Answer) -> Tensor:
        """What an answer packs, set by set."""
        return worth(self.sets, answer(self.sets)) * KnapsackTask().unit

    def ratio(self, answer: Answer) -> float:
        """Mean of optimum over value, as in the paper: the lower the better."""
        return (self.optimum / self.values(answer)).mean().item()


def greedy_answer(model: DiCoNet) -> Answer:
    """The likeliest choice, tree by tree."""

    @torch.no_grad()
    def answer(sets: SetBatch) -> Tensor:
        chosen = torch.zeros(sets.num_items, dtype=torch.bool)
        for which in torch.arange(len(sets)).split(256):
            some = sets.take(which)
            part = some.as_roots()
            chosen[some.index[model(part).solution.rows(part)]] = True
        return chosen

    return answer


def sampled_answer(split: TakeLeave, samples: int, seed: int = 0) -> Answer:
    """The best of the likeliest way and so many less one drawn ones."""

    def answer(sets: SetBatch) -> Tensor:
        seeds = seeds_from(torch.Generator().manual_seed(seed), len(sets) * (samples - 1))
        return best_of_walks(split, sets, seeds.reshape(len(sets), samples - 1)) < LEFT

    return answer


def beam_answer(split: TakeLeave, width: int) -> Answer:
    """The best of the ways that a beam keeps."""
    return lambda sets: beam_of_walks(split, sets, width) < LEFT


def with_splits(model: DiCoNet, num_splits: int, *, fill: bool = False) -> DiCoNet:
    """The paper's network with another number of recursive calls, and greedy on top if asked."""
    split = model.split
    assert isinstance(split, FillSplit)
    return DiCoNet(
        FillSplit(split.network, split.alpha, num_splits),
        PackMerge(fill=fill),
        Growth(depth=num_splits + 1),
    ).eval()


def best_splits(model: DiCoNet, size: int, *, num_sets: int = 64, seed: int = 77) -> int:
    """The number of recursive calls that does best at a size, on sets of its own."""
    test = _Test.of(size, num_sets, seed)
    ratios = [
        test.ratio(greedy_answer(with_splits(model, splits))) for splits in range(MAX_SPLITS + 1)
    ]
    return min(range(len(ratios)), key=ratios.__getitem__)


def evaluate(
    model: DiCoNet, *, sizes: Sequence[int] = SIZES, num_sets: int = 1_000, seed: int = 0
) -> list[dict[str, Any]]:
    """Ratio of the optimum to a network's answers, and the gap that is proven without it."""
    model.eval()
    records = []
    for size in sizes:
        test = _Test.of(size, num_sets, seed)
        answers = {"": greedy_answer(model)}
        if isinstance(model.split, TakeLeave):
            answers["_best_of_16"] = sampled_answer(model.split, 16)
            answers["_beam_16"] = beam_answer(model.split, 16)
        for name, answer in answers.items():
            values = test.values(answer)
            gap = proven_gap(test.sets, values, KnapsackTask().unit)
            figures = {"ratio": test.optimum / values, "proven_ratio": 1 + gap}
            for metric, value in figures.items():
                records.append(
                    {"size": size, "metric": metric + name, "value": value.mean().item()}
                )
    return records


def train_all(runs: Path, *, quiet: bool = False) -> Callable[[str], DiCoNet]:
    """Trains every network of the table anew, one folder of `runs` each.

    Gives what finds them by the names of their weights.
    """
    folders = {preset: runs / f"knapsack_{preset}" for preset in ("baseline", "paper", "small")}
    for preset, folder in folders.items():
        train_model(read_settings(Settings, "knapsack", preset, []), folder, quiet)
    return from_runs(
        {
            "knapsack_baseline": folders["baseline"],
            "knapsack_paper": folders["paper"],
            DEFAULT_MODEL: folders["small"],
        }
    )


def reproduce(
    *, num_sets: int = 1_000, seed: int = 0, find: Callable[[str], DiCoNet] = shipped
) -> list[dict[str, Any]]:
    """The paper's table and ours, all rows on the same fresh sets; `find` gets networks by name.

    "gap_ppm" is the ratio less one in millionths, "exact" the share of sets solved to the optimum,
    in percent.
    """
    records = []
    for size in (*SIZES, 1_000):
        test = _Test.of(size, num_sets, seed)
        for row, answer, splits in _rows(size, min(num_sets, 64), find):
            values = test.values(answer)
            ratio = test.optimum / values
            figures = {
                "cost": values.mean().item(),
                "ratio": ratio.mean().item(),
                "splits": splits,
                "gap_ppm": 1e6 * (ratio.mean().item() - 1),
                "exact": 100 * (ratio < 1 + 1e-9).double().mean().item(),
            }
            records += _records(row, size, figures)
        best = {"cost": test.optimum.mean().item(), "ratio": 1.0}
        bound = proven_gap(test.sets, test.optimum, KnapsackTask().unit).mean().item()
        records += _records("Optimum", size, best)
        records += _records("Fractional bound / Optimum", size, {"ratio": 1 + bound})
    return sorted(records, key=lambda r: _ROW_ORDER.get(r["row"], len(_ROW_ORDER)))


_ROW_ORDER = {name: place for place, name in enumerate(PAPER)}


def _rows(
    size: int, num_trials: int, find: Callable[[str], DiCoNet]
) -> Iterator[tuple[str, Answer, float | None]]:
    """Every row at a size: its name, how it answers and, where it has them, its splits."""
    if size in SIZES:
        plain, recursive = find("knapsack_baseline"), find("knapsack_paper")
        splits = best_splits(recursive, size, num_sets=num_trials)
        yield "Baseline", greedy_answer(plain), 0
        yield "DiCoNet", greedy_answer(with_splits(recursive, splits)), splits
        filled = greedy_answer(with_splits(recursive, splits, fill=True))
        yield "DiCoNet, then greedy that skips", filled, splits
    yield "Greedy", greedy_that_stops, None
    yield "Greedy that skips", greedy_that_skips, None
    yield "Pilot (no learning)", pilot, None
    yield "Noisy ratio, best of 16 (no learning)", lambda s: noisy_ratio(s, 16), None
    ours = find(DEFAULT_MODEL)
    unlearned = Settings().build().eval()
    for name, model in (("Look-ahead", unlearned), ("Take or leave", ours)):
        note = " (no learning)" if model is unlearned else ""
        assert isinstance(model.split, TakeLeave)
        yield f"{name}, greedy{note}", greedy_answer(model), None
        yield f"{name}, best of 16{note}", sampled_answer(model.split, 16), None
        yield f"{name}, beam of 16{note}", beam_answer(model.split, 16), None


def _records(row: str, size: int, figures: Mapping[str, float | None]) -> list[dict[str, Any]]:
    paper = PAPER.get(row, {})
    return [
        {
            "row": row,
            "column": f"n={size}",
            "metric": metric,
            "ours": value,
            "paper": paper[metric][SIZES.index(size)]
            if metric in paper and size in SIZES
            else None,
        }
        for metric, value in figures.items()
        if value is not None
    ]


def pictures(model: DiCoNet, folder: Path, *, size: int = 60, seed: int = 3) -> list[Path]:
    """What each call takes, among the items by weight and value."""
    from diconet.plot import save_levels
    from diconet.solve.knapsack import Packing, knapsack

    sets = KnapsackTask().sample(1, size, rng=torch.Generator().manual_seed(seed))
    values, weights = sets.items.numpy().T
    solution = knapsack(values, weights, sets.context.item(), model=model)
    assert isinstance(solution, Packing)
    return [save_levels(solution, folder / "knapsack_levels.png", model=model)]
