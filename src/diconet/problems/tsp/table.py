"""The paper's table of tours beside ours, and what in it does the work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor, nn

from diconet.core.answers import Sequences
from diconet.core.coin import RandomSplit
from diconet.core.host import to_host
from diconet.core.model import DiCoNet, Part
from diconet.core.noise import phase_generator
from diconet.core.sets import SetBatch
from diconet.core.tree import Cut, Growth, Level
from diconet.nets.axes import AcrossSplit
from diconet.nets.pair_net import Pairs
from diconet.problems.networks import shipped
from diconet.problems.table import PAPER_BLOCK, PARTS_BLOCK, cells, in_blocks
from diconet.problems.tsp.edges import LengthMerge
from diconet.problems.tsp.pairs import SURE, PairMerge, PairSignal, nearest, steps_of
from diconet.problems.tsp.solve import tsp
from diconet.problems.tsp.task import TspTask, lengths, neighbours

SIZES = (10, 20, 40, 80)

PAPER: dict[str, dict[int, tuple[float, float, float]]] = {
    "BS1": {
        10: (78.71, 2.89, 1.01),
        20: (27.36, 4.74, 1.24),
        40: (15.06, 9.12, 1.77),
        80: (13.76, 15.07, 2.15),
    },
    "BS2": {
        10: (19.45, 3.68, 1.29),
        20: (54.34, 4.04, 1.05),
        40: (28.42, 6.29, 1.22),
        80: (15.72, 11.23, 1.60),
    },
    "DiCoNet": {
        10: (41.82, 3.15, 1.11),
        20: (43.86, 4.06, 1.06),
        40: (35.46, 6.01, 1.18),
        80: (29.44, 9.01, 1.28),
    },
}
"""Accuracy, cost and ratio of the paper's table, by row and n."""

WEIGHTS = {"BS1": "tsp_bs1", "BS2": "tsp_bs2", "DiCoNet": "tsp_paper"}
"""The weights of its rows."""

_OWN: dict[str, tuple[str, str]] = {
    "ours, greedy": ("tsp", "none"),
    "edge lengths, greedy": ("length", "none"),
    "ours + 2opt": ("tsp", "2opt"),
    "edge lengths + 2opt": ("length", "2opt"),
    "ours": ("tsp", "lk"),
    "edge lengths": ("length", "lk"),
}
"""Which network, and what refines its greedy tour."""


def control() -> DiCoNet:
    """A control without a network, which scores edges by their length."""
    return DiCoNet(AcrossSplit(), LengthMerge(), depth=0)


@dataclass(frozen=True, eq=False)
class Exam:
    """Instances of one size with the oracle's tours."""

    sets: SetBatch
    tours: Sequences

    @classmethod
    def of(cls, size: int, num_sets: int, seed: int) -> Exam:
        """Fresh test instances, solved by fast-tsp in a time that grows with their size."""
        task = TspTask(seconds=0.02 + 0.001 * size)
        sets = task.sample(num_sets, size, rng=phase_generator("test", seed, size))
        return cls(sets, task.oracle(sets))

    def grade(self, found: Sequences) -> dict[str, Tensor]:
        """The cost of every tour, and its ratio to the oracle's."""
        cost, best = lengths(self.sets, found), lengths(self.sets, self.tours)
        return {"cost": cost, "ratio": cost / best}


def beamed(model: DiCoNet, exam: Exam, group: int = 10) -> dict[str, Tensor]:
    """The paper's three figures for a network over pairs, decoded by beam search.

    Accuracy is the network's own, before the beam: in percent, the share of cities whose two
    likeliest neighbours are their two neighbours on the oracle's tour.
    """
    tours: list[Tensor] = []
    right: list[int] = []
    for some in torch.arange(len(exam.sets)).split(group):
        known = exam.tours.take(some)
        with torch.inference_mode():
            signal = model(exam.sets.take(some).as_roots(), target=known).answer
        tours += signal.solution.unpack()
        right += num_right(signal, known)
    share = torch.tensor(right) / exam.sets.sizes.clamp(min=1)
    return {"acc": 100 * share, **exam.grade(Sequences.of(tours))}


def num_right(signal: PairSignal, tours: Sequences) -> list[int]:
    """The number of cities per set whose two likeliest neighbours are those on the tour."""
    return [
        int((np.sort(near[:, :2], axis=1) == to_host(neighbours(tour))).all(1).sum())
        for (near, _), tour in zip(signal.rows(), tours.unpack(), strict=True)
    ]


def solved(model: DiCoNet, exam: Exam, refine: str) -> Sequences:
    """The tours that `diconet.tsp` gives with this network."""
    cities = [to_host(points.double()) for points in exam.sets.unpack()]
    found = tsp(cities, model=model, refine=refine)
    assert isinstance(found, list)
    return Sequences.of([torch.from_numpy(np.ascontiguousarray(one.tour)) for one in found])


class OneSide(Part):
    """A split that puts all cities of a set on one side."""

    def forward(self, sets: SetBatch, seeds: Int[Tensor, "sets"] | None) -> Cut:
        side = torch.zeros(sets.num_items, dtype=torch.bool, device=sets.items.device)
        return Cut(side, sets.items.new_zeros(len(sets)))


class Leaves(Part):
    """A merge whose leaves output nothing ("silent") or the edges of the best tour ("oracle").

    It still sees which cities share a leaf.
    """

    def __init__(self, merge: nn.Module, say: Literal["silent", "oracle"]) -> None:
        super().__init__()
        self.merge = merge
        self.say = say

    def forward(
        self, level: Level, below: PairSignal | None, target: Sequences | None
    ) -> PairSignal:
        if below is not None:
            logits = torch.zeros_like(below.logits)
            if self.say == "oracle":
                assert target is not None
                after = torch.full_like(level.roots.index, -1)
                here, there = steps_of(level.roots, target)
                after[here] = there
                index = below.pairs.sets.index
                one, other = index[below.pairs.one], index[below.pairs.other]
                logits = SURE * ((after[one] == other) | (after[other] == one)).to(logits.dtype)
            below = replace(below, logits=logits)
        signal: PairSignal = self.merge(level, below, target)
        return signal


class ByLength(Part):
    """A signal without a network: minus the length of each pair, the nearest city's being one."""

    def forward(
        self, level: Level, below: PairSignal | None, target: Sequences | None
    ) -> PairSignal:
        pairs = Pairs.of(level.sets)
        return PairSignal(pairs, -pairs.distance / nearest(pairs)[pairs.sets.owner[pairs.one]])


def swapped(model: DiCoNet, flat: DiCoNet) -> dict[str, DiCoNet]:
    """DiCoNet with its split, its leaves or its depth replaced, by row of the table.

    With all cities on one side there is no cut: BS1 solves the one leaf, and the merge follows.
    Silent and oracle leaves hand up what they say as it is, at every level.
    """
    merge = model.merge
    assert isinstance(merge, PairMerge)
    assert isinstance(flat.merge, PairMerge)
    said, stronger = merge_of(merge, merge, binarise=False), merge_of(flat.merge, merge)
    splits = {
        "learned split": model.split,
        "cut at the median": AcrossSplit(),
        "random split": RandomSplit(),
        "all on one side": OneSide(),
    }
    rows = {name: DiCoNet(split, merge, model.growth) for name, split in splits.items()}
    once, twice = Growth(depth=1), Growth(halve_to=2 * min(SIZES))
    rows["one cut, learned split"] = DiCoNet(model.split, merge, once)
    rows["one cut, random split"] = DiCoNet(RandomSplit(), merge, once)
    rows["BS2 at leaves of 20, learned split"] = DiCoNet(model.split, stronger, twice)
    rows["BS2 at leaves of 20, random split"] = DiCoNet(RandomSplit(), stronger, twice)
    rows["scores handed up, not tours"] = DiCoNet(model.split, said, model.growth)
    rows["no network: edge lengths in the beam"] = DiCoNet(RandomSplit(), ByLength(), depth=0)
    rows["leaves silenced"] = DiCoNet(model.split, Leaves(said, "silent"), model.growth)
    rows["oracle leaves"] = DiCoNet(model.split, Leaves(said, "oracle"), model.growth)
    rows["oracle leaves, random split"] = DiCoNet(
        RandomSplit(), Leaves(said, "oracle"), model.growth
    )
    return rows


def merge_of(leaves: PairMerge, merge: PairMerge, binarise: bool | None = None) -> PairMerge:
    """A merge with the leaves of one network and the rest of another."""
    how = merge.binarise if binarise is None else binarise
    both = PairMerge(leaves.leaf, merge.merge, how)
    both.leaf_head, both.merge_head = leaves.leaf_head, merge.merge_head
    return both


def reproduce(
    *, num_sets: int = 200, seed: int = 0, find: Callable[[str], DiCoNet] = shipped
) -> list[dict[str, Any]]:
    """The paper's table, then DiCoNet with parts replaced, then our own rows.

    `find` looks up networks by name. BS2 is the flat network trained on the same sizes as DiCoNet.
    At most 8,000 cities per column are drawn, so beyond 40 cities there are fewer sets.
    """
    exams = {size: Exam.of(size, min(num_sets, 8_000 // size), seed) for size in SIZES}
    networks = {row: find(name) for row, name in WEIGHTS.items()}
    parts = swapped(networks["DiCoNet"], networks["BS2"])
    paper = {(PAPER_BLOCK, row): model for row, model in networks.items()}
    models = {"tsp": find("tsp"), "length": control()}
    records: list[dict[str, Any]] = []
    for size, exam in exams.items():
        for (block, row), model in {
            **paper,
            **{(PARTS_BLOCK, r): m for r, m in parts.items()},
        }.items():
            known = PAPER.get(row, {}).get(size, ())
            figures = dict(zip(("acc", "cost", "ratio"), known, strict=False))
            records += cells(row, f"n={size}", beamed(model, exam), figures, block)
        for row, (which, refine) in _OWN.items():
            graded = exam.grade(solved(models[which], exam, refine))
            records += cells(row, f"n={size}", graded)
    return in_blocks(records)
