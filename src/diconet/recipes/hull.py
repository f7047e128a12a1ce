"""The convex hull of the paper (section 6.1): the four rows of its first table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast, get_args

import torch
from torch import nn

from diconet.answers import Sequences
from diconet.merges import PointerMerge, TripleMerge
from diconet.merges.frame import Normalise
from diconet.merges.pointer import Attention, Order
from diconet.model import DiCoNet
from diconet.noise import seeds_from
from diconet.presets import read_settings
from diconet.recipes import hull_triples
from diconet.run_folder import RunFolder
from diconet.sets import SetBatch
from diconet.splits import RandomSplit, SetSplit
from diconet.tasks.hull import HullTask, metrics
from diconet.train import TrainConfig, loss_of, train
from diconet.train_config import check_least
from diconet.tree import Growth
from diconet.views import SIDES, from_sides, largest
from diconet.weights import find as find_weights
from diconet.weights import fit, from_runs, shipped

Row = Literal["baseline", "random", "diconet", "diconet_reg"]

SIZES = (25, 50, 100, 200)
DEFAULT_MODEL = "hull_diconet_reg"
PARTS = (PointerMerge, TripleMerge)
"""What networks for hulls are made of."""

ROWS: dict[str, tuple[Row, tuple[float, ...]]] = {
    "Baseline": ("baseline", (81.3, 65.6, 41.5, 13.5)),
    "DiCoNet Random Split": ("random", (59.8, 37.0, 23.5, 10.29)),
    "DiCoNet": ("diconet", (88.1, 83.7, 73.7, 52.0)),
    "DiCoNet + Split Reg": ("diconet_reg", (89.8, 87.0, 80.0, 67.2)),
}
"""The rows of the paper's table: which of ours they are, and its accuracies at `SIZES`."""


class Block(NamedTuple):
    """Rows trained with one preset: how the names of their weights begin, and of their rows end,
    by the number of sides that every set is seen from.

    They are measured on all sets asked for, or on so many times fewer.
    """

    preset: str
    prefix: str
    views: dict[int, str]
    fewer: int = 1


BLOCKS = (
    Block("plain", "hull_plain", {2: "", 1: ", one view"}),
    Block("small", "hull", {1: ", bearings"}, fewer=4),
    Block("course", "hull_course", {1: ", on course"}, fewer=8),
)
"""Rows that attend as the paper's do, that see bearings, and that name a course."""

ALL_SIDES = "DiCoNet + Split Reg, 8 views"
"""A row of our own: every set is seen from all sides of the square. It takes eight times as long,
and is measured on eight times fewer sets."""


@dataclass(frozen=True)
class Settings:
    """A row of the table: what is split how, how wide the networks are, and how it is trained.

    Training has up to three stages, each with settings of its own. The `baseline` is the pointer
    network alone. Every other row starts from one, as in the paper: from the weights that `init`
    names (and their split, if it is a learned one), or from a baseline trained first. Then, where
    there is a `first_stage`, the merge learns on small sets what to do with two halves; and last,
    in `train`, split and merge learn together.
    """

    row: Row = "diconet_reg"
    width: int = 512
    order: Order = "given"
    normalise: Normalise = "spread"
    attention: Attention = "plain"
    split_width: int = 15
    split_layers: int = 5
    split_activation: Literal["sigmoid", "tanh"] = "sigmoid"
    halve_to: float = 12.5
    init: str | None = None
    baseline: TrainConfig = field(default_factory=lambda: TrainConfig(tree_samples=1))
    first_stage: bool = False
    first: TrainConfig = field(default_factory=lambda: TrainConfig(tree_samples=1))
    train: TrainConfig = field(default_factory=TrainConfig)

    def __post_init__(self) -> None:
        check_least(self, 1, "width", "split_width", "split_layers")

    def build(self) -> DiCoNet:
        """The network of the row, its weights drawn from the run's seed."""
        torch.manual_seed(self.train.seed)
        merge = PointerMerge(
            2,
            self.width,
            order=self.order,
            normalise=self.normalise,
            attention=self.attention,
        )
        if self.row == "baseline":
            return DiCoNet(RandomSplit(), merge, depth=0)
        learned = self.row in ("diconet", "diconet_reg")
        split: nn.Module = (
            SetSplit(2, self.split_width, self.split_layers, self.split_activation)
            if learned
            else RandomSplit()
        )
        return DiCoNet(split, merge, Growth(halve_to=self.halve_to))


def train_model(settings: Settings, run: Path, quiet: bool = False) -> DiCoNet:
    """Trains a row of the table in the folder `run`, stage after stage."""
    run = Path(run)
    model = settings.build()
    if settings.row == "baseline":
        return _train_stage(model, settings.baseline, run, quiet)
    weigh = settings.train.regulariser if settings.row == "diconet_reg" else 0.0
    last = replace(settings.train, regulariser=weigh)
    RunFolder(run, last, model, HullTask(), loss_of).check()  # the stages before it take long
    _start_from(model, settings, run, quiet)
    if settings.first_stage:
        _train_stage(model, replace(settings.first, regulariser=weigh), run / "first", quiet)
    return _train_stage(model, last, run, quiet)


def _start_from(model: DiCoNet, settings: Settings, run: Path, quiet: bool) -> None:
    """Puts a trained merge in place: the given one, or a baseline's that is trained now."""
    if settings.init is not None:
        start = find_weights(settings.init, "init")
    else:
        start = train_model(replace(settings, row="baseline"), run / "baseline", quiet)
    fit(
        cast(nn.Module, model.merge),
        {} if start.merge is None else start.merge.state_dict(),
        f"init must have a merge of width {settings.width} with {settings.attention} attention;"
        f" {settings.init} does not fit",
    )
    if isinstance(model.split, SetSplit) and isinstance(start.split, SetSplit):
        fit(
            model.split,
            start.split.state_dict(),
            f"init must have a split of {settings.split_layers} layers of {settings.split_width};"
            f" {settings.init} does not fit",
        )


def _train_stage(model: DiCoNet, config: TrainConfig, run: Path, quiet: bool) -> DiCoNet:
    task = HullTask()
    test = _fixed_test(sizes=(10, *SIZES), num_sets=256)
    return train(
        model,
        task,
        config,
        oracle=task.oracle,
        run=run,
        evaluate=lambda m: _accuracies(m, test),
        quiet=quiet,
    )


def _fixed_test(
    sizes: Sequence[int], num_sets: int, seed: int = 9
) -> dict[int, tuple[SetBatch, Sequences]]:
    task = HullTask()
    rng = torch.Generator().manual_seed(seed)
    samples = {size: task.sample(num_sets, size, rng=rng) for size in sizes}
    return {size: (sets, task.oracle(sets)) for size, sets in samples.items()}


def _accuracies(model: DiCoNet, test: dict[int, tuple[SetBatch, Sequences]]) -> dict[str, float]:
    model.eval()
    return {
        f"accuracy_{size}": _measure(model, sets, target, 1)[0]["accuracy"]
        for size, (sets, target) in test.items()
    }


@torch.no_grad()
def _measure(
    model: DiCoNet,
    sets: SetBatch,
    target: Sequences,
    *views: int,
    chunk_items: int = 25_600,
) -> list[dict[str, float]]:
    """Accuracy, area and F1 of a network's answers, for each number of views.

    They are worked through in chunks of bounded memory.
    """
    most = max(views)
    chunk = max(1, chunk_items // (most * max(int(sets.sizes.max()), 1)))
    # A random split needs seeds to be random; a learned one takes the likelier side.
    seeds = seeds_from(torch.Generator().manual_seed(0), len(sets))
    found: list[list[torch.Tensor]] = [[] for _ in views]
    for part in torch.arange(len(sets)).split(chunk):
        some = sets.take(part).as_roots()
        drawn = seeds[part] if isinstance(model.split, RandomSplit) else None
        cycles = from_sides(model, some, drawn, num_views=most)
        for answers, count in zip(found, views, strict=True):
            seen = cycles.take(torch.arange(count * len(some)))
            answers += largest(some, seen).unpack()
    return [metrics(sets, Sequences.of(answers), target) for answers in found]


def evaluate(
    model: DiCoNet,
    *,
    sizes: Sequence[int] = SIZES,
    num_sets: int = 1_024,
    seed: int = 0,
    views: int = 1,
) -> list[dict[str, Any]]:
    """Quality of a network on fresh sets seen from so many sides, one record a size and metric."""
    return [
        {"size": size, "metric": metric, "value": value}
        for size, (sets, target) in _fixed_test(sizes, num_sets, seed).items()
        for metric, value in _measure(model, sets, target, views)[0].items()
    ]


def train_all(runs: Path, *, quiet: bool = False) -> Callable[[str], DiCoNet]:
    """Trains the rows anew, one folder of `runs` each; all start from their baseline's merge.

    Gives what finds them by the names of their weights; the triple merge's are the shipped ones.
    """
    folders: dict[str, Path] = {}
    for preset, prefix, *_ in BLOCKS:
        folders |= {f"{prefix}_{row}": runs / f"{prefix}_{row}" for row in get_args(Row)}
        settings = read_settings(Settings, "hull", preset, [])
        start = folders[f"{prefix}_baseline"]
        train_model(replace(settings, row="baseline"), start, quiet)
        for row in get_args(Row):
            if row != "baseline":
                begun = replace(settings, row=row, init=str(start / "weights.safetensors"))
                train_model(begun, folders[f"{prefix}_{row}"], quiet)
    return from_runs(folders)


def reproduce(
    *, num_sets: int = 4_096, seed: int = 0, find: Callable[[str], DiCoNet] = shipped
) -> list[dict[str, Any]]:
    """The paper's table, a block's rows on the same fresh sets; `find` gets a network by name."""
    records = []
    for _, prefix, views, fewer in BLOCKS:
        test = _fixed_test(SIZES, max(1, num_sets // fewer), seed)
        rows: list[list[dict[str, Any]]] = [[] for _ in views]
        for name, (row, paper) in ROWS.items():
            model = find(f"{prefix}_{row}")
            for figure, (size, (sets, target)) in zip(paper, test.items(), strict=True):
                measured = _measure(model, sets, target, *views)
                for cells, suffix, values in zip(rows, views.values(), measured, strict=True):
                    cells += _cells(name + suffix, size, values, figure)
        records += [cell for cells in rows for cell in cells]
    model = find("hull_plain_diconet_reg")
    for size, (sets, target) in _fixed_test(SIZES, max(1, num_sets // 8), seed).items():
        (values,) = _measure(model, sets, target, len(SIDES))
        records += _cells(ALL_SIDES, size, values, None)
    return records + hull_triples.reproduce(num_sets=num_sets, seed=seed, find=find)


def _cells(
    row: str, size: int, measured: dict[str, float], paper: float | None
) -> list[dict[str, Any]]:
    """The records of one row at one size; the paper gives accuracies only."""
    return [
        {
            "row": row,
            "column": f"n={size}",
            "metric": metric,
            "ours": value,
            "paper": paper if metric == "accuracy" else None,
        }
        for metric, value in measured.items()
    ]


def pictures(model: DiCoNet, folder: Path, *, size: int = 50, seed: int = 3) -> list[Path]:
    """The paper's figures 2 and 4: partial hulls by level, learned and random; hulls by depth.

    And the learned ones once more as an animation.
    """
    from diconet.plot import save_hull_animation, save_hull_levels, save_hull_outputs

    rng = torch.Generator().manual_seed(seed)
    sets = HullTask().sample(1, size, rng=rng)
    coins = DiCoNet(RandomSplit(), model.merge, model.growth)
    return [
        save_hull_levels(model, sets, folder / "hull_learned_split.png", title="learned split"),
        save_hull_levels(
            coins,
            sets,
            folder / "hull_random_split.png",
            title="random split",
            seeds=seeds_from(rng, 1),
        ),
        save_hull_outputs(
            {
                name: DiCoNet(model.split, model.merge, depth=depth)
                for depth, name in enumerate(("no cut", "one cut", "two cuts"))
            },
            HullTask().sample(4, size // 2, rng=rng),
            folder / "hull_by_depth.png",
        ),
        save_hull_animation(model, HullTask().sample(1, 90, rng=rng), folder / "hull.gif"),
    ]
