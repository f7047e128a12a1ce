"""One instance of each task with the shipped weights: a table, and a picture of every level."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch

from diconet.plot.levels import save_levels
from diconet.references.kmeans import bisecting, lloyd
from diconet.references.knapsack import greedy_that_skips
from diconet.references.tsp import fast_tsp_tour, nearest_neighbour_tour
from diconet.sets import SetBatch
from diconet.solve.hull import convex_hull
from diconet.solve.kmeans import kmeans
from diconet.solve.knapsack import knapsack
from diconet.solve.solution import Solution
from diconet.solve.tsp import tsp
from diconet.tasks.hull import hull_of
from diconet.tasks.knapsack import optimum_of
from diconet.tours.metric import Metric
from diconet.weights import shipped_names


@dataclass(frozen=True)
class Show:
    """An instance, what is measured, and the two methods to compare with, by name."""

    task: str
    instance: str
    measure: str
    solve: Callable[[], Any]
    reference: tuple[str, Callable[[], float]]
    oracle: tuple[str, Callable[[], float]]


def demo(folder: str | Path, *, scale: float = 1.0, seed: int = 0) -> list[dict[str, Any]]:
    """A record a task; the pictures go to `folder`.

    `seconds` are those of our answer alone, once compiled. With a `scale` below 1 the instances are
    smaller. A task whose weights are not there is left out.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    shows = [make(rng, scale) for make in (_hull, _kmeans, _knapsack, _tsp)]
    there = shipped_names()
    return [_record(show, folder) for show in shows if show.task in there]


def _record(show: Show, folder: Path) -> dict[str, Any]:
    show.solve()  # so that compiling is not timed
    start = time.perf_counter()
    solution = cast(Solution, show.solve())
    seconds = time.perf_counter() - start
    picture = folder / f"{show.task}.png"
    save_levels(solution, picture)
    return {
        "task": show.task,
        "instance": show.instance,
        "measure": show.measure,
        "ours": solution.value,
        "reference": show.reference[1](),
        "reference by": show.reference[0],
        "oracle": show.oracle[1](),
        "oracle by": show.oracle[0],
        "seconds": seconds,
        "picture": picture.name,
    }


def _hull(rng: np.random.Generator, scale: float) -> Show:
    points = rng.random((max(int(200 * scale), 8), 2))

    def octagon() -> float:
        """The hull of the points that lie farthest in eight directions."""
        angles = np.arange(8) * np.pi / 4
        farthest = (points @ [np.cos(angles), np.sin(angles)]).argmax(0)
        return area(np.unique(farthest))

    def area(some: np.ndarray) -> float:
        x, y = points[some][hull_of(points[some])].T
        return float(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2

    return Show(
        "hull",
        f"{len(points)} points",
        "area",
        lambda: convex_hull(points),
        ("8 extreme points", octagon),
        ("Qhull", lambda: area(np.arange(len(points)))),
    )


def _kmeans(rng: np.random.Generator, scale: float) -> Show:
    k = 8
    centers = rng.random((k, 2))
    points = np.concatenate([rng.normal(c, 0.06, (max(int(40 * scale), 3), 2)) for c in centers])
    sets = SetBatch.of([torch.from_numpy(points)], torch.tensor([[float(k)]]))

    def cost(labels: torch.Tensor) -> float:
        parts = [points[labels.numpy() == part] for part in range(k)]
        return float(sum(np.square(part - part.mean(0)).sum() for part in parts if len(part)))

    return Show(
        "kmeans",
        f"{len(points)} points, k = {k}",
        "cost",
        lambda: kmeans(points, k),
        ("bisecting k-means", lambda: cost(bisecting(sets))),
        ("k-means++, best of 100", lambda: cost(lloyd(sets, restarts=100))),
    )


def _knapsack(rng: np.random.Generator, scale: float) -> Show:
    size = max(int(50 * scale), 8)
    values, weights = rng.integers(1, 10_000, (2, size))
    capacity = int(weights.sum()) // 4
    sets = SetBatch.of(
        [torch.from_numpy(np.column_stack([values, weights]).astype(np.float64))],
        torch.tensor([[float(capacity)]], dtype=torch.float64),
    )
    return Show(
        "knapsack",
        f"{size} items",
        "value",
        lambda: knapsack(values, weights, capacity),
        ("greedy by ratio", lambda: float(values[greedy_that_skips(sets).numpy()].sum())),
        (
            "branch and bound",
            lambda: float(values[optimum_of((values, weights, capacity))].sum()),
        ),
    )


def _tsp(rng: np.random.Generator, scale: float) -> Show:
    cities = rng.random((max(int(100 * scale), 8), 2))
    length = Metric.of(cities).length
    return Show(
        "tsp",
        f"{len(cities)} cities",
        "length",
        lambda: tsp(cities),
        ("nearest neighbour", lambda: length(nearest_neighbour_tour(cities))),
        ("fast-tsp, 1 s", lambda: length(fast_tsp_tour(cities, 1.0))),
    )
