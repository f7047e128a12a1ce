"""The paper's table of tours beside ours, and what in it does the work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from diconet.core.answers import Sequences
from diconet.core.coin import RandomSplit
from diconet.core.host import to_host
from diconet.core.model import DiCoNet, Part
from diconet.core.noise import phase_generator
from diconet.core.sets import SetBatch
from diconet.core.tree import Cut, Level
from diconet.nets.axes import AcrossSplit
from diconet.problems.networks import shipped
from diconet.problems.problem import cells
from diconet.problems.tsp.edges import LengthMerge
from diconet.problems.tsp.pairs import PairMerge, PairSignal
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
    """The network's place taken by the length of the edges: what learning has to beat."""
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

    def grade(self, found: Sequences) -> dict[str, float]:
        """Mean cost, and mean ratio to the oracle."""
        cost, best = lengths(self.sets, found), lengths(self.sets, self.tours)
        return {"cost": cost.mean().item(), "ratio": (cost / best).mean().item()}


def beamed(model: DiCoNet, exam: Exam, group: int = 10) -> dict[str, float]:
    """The paper's three figures of a network over pairs, which answers by beam search.

    Accuracy is the network's own, before the beam: in percent, the share of cities whose two
    likeliest neighbours are their two neighbours on the oracle's tour.
    """
    tours: list[Tensor] = []
    right = 0
    for some in torch.arange(len(exam.sets)).split(group):
        with torch.inference_mode():
            signal = model(exam.sets.take(some).as_roots()).answer
        tours += signal.solution.unpack()
        right += num_right(signal, exam.tours.take(some))
    graded = exam.grade(Sequences.of(tours))
    return {"acc": 100 * right / max(exam.sets.num_items, 1), **graded}


def num_right(signal: PairSignal, tours: Sequences) -> int:
    """How many cities have their two neighbours on the tour as their two likeliest."""
    right = 0
    for (near, _), tour in zip(signal.rows(), tours.unpack(), strict=True):
        likeliest = np.sort(near[:, :2], axis=1)
        right += int((likeliest == to_host(neighbours(tour))).all(1).sum())
    return right


def solved(model: DiCoNet, exam: Exam, refine: str) -> Sequences:
    """The tours that `diconet.tsp` gives with this network."""
    cities = [to_host(points.double()) for points in exam.sets.unpack()]
    found = tsp(cities, model=model, refine=refine)
    assert isinstance(found, list)
    return Sequences.of([torch.from_numpy(np.ascontiguousarray(one.tour)) for one in found])


class OneSide(Part):
    """The split that does not: all cities of a set on one side."""

    def forward(self, sets: SetBatch, seeds: Int[Tensor, "sets"] | None) -> Cut:
        side = torch.zeros(sets.num_items, dtype=torch.bool, device=sets.items.device)
        return Cut(side, sets.items.new_zeros(len(sets)))


class Silenced(Part):
    """A merge that sees which cities were together in a leaf, but not what the leaf said."""

    def __init__(self, merge: PairMerge) -> None:
        super().__init__()
        self.merge = merge

    def forward(
        self, level: Level, below: PairSignal | None, target: Sequences | None
    ) -> PairSignal:
        if below is not None:
            below = replace(below, logits=torch.zeros_like(below.logits))
        signal: PairSignal = self.merge(level, below, target)
        return signal


def ablated(model: DiCoNet) -> dict[str, DiCoNet]:
    """The same networks with another split, or with nothing from the leaves."""
    assert isinstance(model.merge, PairMerge)
    return {
        "DiCoNet, cut at the median": DiCoNet(AcrossSplit(), model.merge, model.growth),
        "DiCoNet, random split": DiCoNet(RandomSplit(), model.merge, model.growth),
        "DiCoNet, all on one side": DiCoNet(OneSide(), model.merge, model.growth),
        "DiCoNet, leaves silenced": DiCoNet(model.split, Silenced(model.merge), model.growth),
    }


def reproduce(
    *, num_sets: int = 1_000, seed: int = 0, find: Callable[[str], DiCoNet] = shipped
) -> list[dict[str, Any]]:
    """The paper's table, what happens when its parts are swapped, then rows of our own.

    `find` gets networks by name. The flat network trained on the same sizes as DiCoNet is BS2.
    """
    exams = {size: Exam.of(size, num_sets, seed) for size in SIZES}
    records: list[dict[str, Any]] = []
    networks = {row: find(name) for row, name in WEIGHTS.items()}
    for row, model in {**networks, **ablated(networks["DiCoNet"])}.items():
        for size, exam in exams.items():
            records += _cells(row, size, beamed(model, exam))
    models = {"tsp": find("tsp"), "length": control()}
    for row, (which, refine) in _OWN.items():
        for size, exam in exams.items():
            found = solved(models[which], exam, refine)
            records += _cells(row, size, exam.grade(found))
    return records


def _cells(row: str, size: int, grades: dict[str, float]) -> list[dict[str, Any]]:
    paper = dict(zip(("acc", "cost", "ratio"), PAPER.get(row, {}).get(size, ()), strict=False))
    return cells(row, f"n={size}", grades, paper)
