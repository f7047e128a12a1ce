"""The quality of hulls, and what they are compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from diconet.core.answers import Sequences
from diconet.core.coin import RandomSplit
from diconet.core.model import DiCoNet
from diconet.core.noise import seeds_from
from diconet.core.sets import SetBatch
from diconet.problems.hull.solve import area
from diconet.problems.hull.task import HullTask, exact, hull_of, metrics
from diconet.problems.problem import Instances, Show


def grade(instances: Instances, solutions: Sequence[Any]) -> dict[str, float]:
    """Accuracy, area covered and vertex F1 in percent, and the share proven right.

    All of these grade the network's proposal, before any repair.
    """
    sets = SetBatch.of([torch.from_numpy(np.asarray(cloud)) for cloud in instances.data])
    found = Sequences.of([torch.from_numpy(solution.proposed) for solution in solutions])
    proved = 100 * float(
        np.mean([solution.exact and not solution.repaired for solution in solutions])
    )
    measured = metrics(sets, found, HullTask().oracle(sets))
    return {**{name: each.mean().item() for name, each in measured.items()}, "proved": proved}


@torch.no_grad()
def answers_of(model: DiCoNet, sets: SetBatch, chunk_items: int = 25_600) -> Sequences:
    """A network's answers without repair, computed in chunks to bound memory.

    A random split draws different coins for every set; a learned one takes the likelier side.
    """
    seeds = seeds_from(torch.Generator().manual_seed(0), len(sets)).to(sets.sizes.device)
    chunk = max(1, chunk_items // max(int(sets.sizes.max()), 1))
    found: list[torch.Tensor] = []
    for part in torch.arange(len(sets), device=seeds.device).split(chunk):
        some = sets.take(part).as_roots()
        drawn = seeds[part] if isinstance(model.split, RandomSplit) else None
        found += model(some, drawn).solution.unpack()
    return Sequences.of(found)


def accuracies(model: DiCoNet, tests: Mapping[int, SetBatch]) -> dict[str, float]:
    """The percentage of sets whose whole hull is right, for each size."""
    model.eval()
    task = HullTask()
    there = {size: sets.to(model.device) for size, sets in tests.items()}
    right = {
        size: exact(answers_of(model, sets), task.oracle(sets)) for size, sets in there.items()
    }
    return {f"accuracy_{size}": 100 * each.double().mean().item() for size, each in right.items()}


def show(rng: np.random.Generator, scale: float) -> Show:
    """One cloud for the demo."""
    points = rng.random((max(int(200 * scale), 8), 2))

    def octagon() -> float:
        """The area of the hull of the extreme points in eight directions."""
        angles = np.arange(8) * np.pi / 4
        farthest = points[np.unique((points @ [np.cos(angles), np.sin(angles)]).argmax(0))]
        return area(farthest[hull_of(farthest)])

    return Show(
        Instances(["demo"], [points]),
        f"{len(points)} points",
        "area",
        ("8 extreme points", octagon),
        ("Qhull", lambda: area(points[hull_of(points)])),
    )
