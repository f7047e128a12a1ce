"""Training of the hull networks, and the paper's table (section 6.1) beside ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

from diconet.core.coin import RandomSplit
from diconet.core.model import DiCoNet
from diconet.core.noise import phase_generator
from diconet.core.tree import Growth
from diconet.learn.config import TrainConfig
from diconet.learn.settings import read_settings
from diconet.nets.axes import AcrossSplit
from diconet.nets.classic import MedianSplit
from diconet.problems.hull.measure import answers_of
from diconet.problems.hull.problem import PROBLEM
from diconet.problems.hull.task import HullTask, metrics
from diconet.problems.hull.train_rows import PaperRow, PointerSettings, train_row
from diconet.problems.hull.train_triples import MERGE_TRAIN, TripleSettings, train_triples
from diconet.problems.networks import from_runs, shipped
from diconet.problems.table import OURS_BLOCK, PAPER_BLOCK, PARTS_BLOCK, cells

Row = Literal["triples", "baseline", "random", "diconet", "diconet_reg"]

SIZES = (25, 50, 100, 200)
LARGE_SIZES = (1_000, 10_000)
"""Sizes at which only the default network is measured."""

ROWS: dict[str, tuple[PaperRow, tuple[float, ...]]] = {
    "Baseline": ("baseline", (81.3, 65.6, 41.5, 13.5)),
    "DiCoNet Random Split": ("random", (59.8, 37.0, 23.5, 10.29)),
    "DiCoNet": ("diconet", (88.1, 83.7, 73.7, 52.0)),
    "DiCoNet + Split Reg": ("diconet_reg", (89.8, 87.0, 80.0, 67.2)),
}
"""The rows of the paper's table: the name of ours, and its accuracies at `SIZES`."""

TRIPLES = "Triple merge (ours)"
"""The name of the default network's row."""

ROWS_PRESET = "rows"
"""The preset for the rows of the table: the paper's procedure at a smaller width."""


@dataclass(frozen=True)
class Settings:
    """Which network is trained, and how.

    The `row` is the default network, "triples", or one of the paper's table. `train` configures its
    main part: the merge at each resolution, or split and merge together. `triples` and `pointer`
    hold the settings that the two kinds of networks do not share.
    """

    row: Row = "triples"
    train: TrainConfig = MERGE_TRAIN
    triples: TripleSettings = field(default_factory=TripleSettings)
    pointer: PointerSettings = field(default_factory=PointerSettings)

    @property
    def total_steps(self) -> int:
        """The total number of steps of all parts of a run."""
        if self.row == "triples":
            merge = len(self.triples.resolutions) * self.train.steps
            return merge + self.triples.split_train.steps
        return self.pointer.alone_steps + self.train.steps + self.pointer.hard_steps


def train_model(
    settings: Settings,
    run: Path,
    quiet: bool = False,
    device: str | torch.device | None = None,
) -> DiCoNet:
    """Trains a network in the folder `run`."""
    run = Path(run)
    if settings.row == "triples":
        return train_triples(settings.triples, settings.train, run, quiet, device)
    return train_row(settings.row, settings.pointer, settings.train, run, quiet, device)


def train_all(runs: Path, *, quiet: bool = False) -> Callable[[str], DiCoNet]:
    """Trains the default network and all rows, each in a folder of `runs`, to be found by name.

    The rows of the table start from one pointer network, as in the paper.
    """
    presets = PROBLEM.folder("presets")
    settings = read_settings(Settings, presets, ROWS_PRESET, [])
    folders = {f"hull_{row}": runs / f"hull_{row}" for row, _ in ROWS.values()}
    for row, _ in ROWS.values():
        alone = None if row == "baseline" else str(folders["hull_baseline"] / "alone")
        pointer = replace(settings.pointer, init=alone)
        train_model(replace(settings, row=row, pointer=pointer), folders[f"hull_{row}"], quiet)
    folders["hull"] = runs / "hull"
    train_model(read_settings(Settings, presets, "default", []), folders["hull"], quiet)
    return from_runs(folders)


def reproduce(
    *, num_sets: int = 4_096, seed: int = 0, find: Callable[[str], DiCoNet] = shipped
) -> list[dict[str, Any]]:
    """The paper's table and ours, all on the same fresh sets; `find` looks up a network by name."""
    table = _Table(num_sets, seed)
    records = []
    for name, (row, paper) in ROWS.items():
        model = find(f"hull_{row}")
        how: dict[str, Any] = model.merge.config  # type: ignore[union-attr,assignment]
        shown = f"{name}, width {how['width']}"
        if how.get("begin") == "lowest":
            shown += ", from the lowest corner"
        for size, figure in zip(SIZES, paper, strict=True):
            records += table.cells(shown, model, size, PAPER_BLOCK, {"accuracy": figure})
    for name, model in _divided_otherwise(find("hull_diconet_reg")).items():
        for size in SIZES:
            records += table.cells(f"last row, {name}", model, size, PARTS_BLOCK)
    for size in (*SIZES, *LARGE_SIZES):
        records += table.cells(TRIPLES, find("hull"), size, OURS_BLOCK)
    return records


def _divided_otherwise(model: DiCoNet) -> dict[str, DiCoNet]:
    """Networks with the same merge and other splits."""
    divisions: dict[str, tuple[nn.Module, Growth]] = {
        "no division": (model.split, Growth(depth=0)),
        "random split": (RandomSplit(), model.growth),
        "cut at the median of x": (MedianSplit(), model.growth),
        "cut at the median, longest axis": (AcrossSplit(), model.growth),
    }
    return {name: DiCoNet(split, model.merge, how) for name, (split, how) in divisions.items()}


@dataclass(frozen=True)
class _Table:
    """The sets of a table: up to `num_sets` per size, fewer if they are large."""

    num_sets: int
    seed: int

    def cells(
        self,
        row: str,
        model: DiCoNet,
        size: int,
        block: str,
        paper: Mapping[str, float] | None = None,
    ) -> list[dict[str, Any]]:
        """The records of one row at one size; the paper has accuracies only."""
        task = HullTask()
        some = max(1, min(self.num_sets, 1_000_000 // size))
        sets = task.sample(some, size, rng=phase_generator("test", self.seed, size))
        measured = metrics(sets, answers_of(model.eval(), sets), task.oracle(sets))
        return cells(row, f"n={size}", measured, paper, block)
