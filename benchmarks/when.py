"""When to use this: each problem compared with the usual alternative, for the same CPU time."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial import ConvexHull
from sklearn.cluster import KMeans

import diconet
from diconet.problems.knapsack.measure import fresh
from diconet.problems.knapsack.task import optimum_of
from diconet.problems.tsp.references import fast_tsp_tour
from diconet.problems.tsp.search.metric import Metric

Timed = tuple[Any, float]


def timed(work: Callable[[], Any]) -> Timed:
    """The result of some work, and the CPU seconds it took."""
    start = time.process_time()
    found = work()
    return found, time.process_time() - start


def hulls(rng: np.random.Generator) -> list[dict[str, Any]]:
    """Hulls by both methods, which are exact: only the time differs."""
    records = []
    for size in (1_000, 100_000):
        points = rng.random((size, 2))
        diconet.convex_hull(points)
        ours, took = timed(lambda points=points: diconet.convex_hull(points))
        hull, other = timed(lambda points=points: ConvexHull(points))
        assert sorted(ours.indices) == sorted(hull.vertices)
        records.append(row("hull", size, "exact", took, "exact", "Qhull", other))
    return records


def clusters(rng: np.random.Generator) -> list[dict[str, Any]]:
    """Cost relative to the better of the two; Lloyd restarts until it has had as much time."""
    records = []
    for size, k in ((2_000, 10), (2_000, 100), (20_000, 200)):
        points = rng.random((k, 2))[rng.integers(k, size=size)] + 0.02 * rng.normal(size=(size, 2))
        diconet.kmeans(points, k)
        ours, took = timed(lambda points=points, k=k: diconet.kmeans(points, k))
        best, used, runs = np.inf, 0.0, 0
        while used < took:
            fit, spent = timed(lambda p=points, k=k, s=runs: KMeans(k, random_state=s).fit(p))
            best, used, runs = min(best, fit.inertia_), used + spent, runs + 1
        least = min(best, ours.value)
        figures = ours.value / least, best / least
        name = f"k-means++, {runs} start{'s' * (runs > 1)}"
        records.append(row(f"k-means, k = {k}", size, figures[0], took, figures[1], name, used))
    return records


def packs() -> list[dict[str, Any]]:
    """The share of knapsacks solved to the optimum, which ours proves."""
    records = []
    for size in (50, 200):
        found = fresh(size, 100, 0)
        values, weights = ([one[side] for one in found.data] for side in (0, 1))
        capacity = found.given["capacity"]
        diconet.knapsack(values[:2], weights[:2], capacity[:2])
        ours, took = timed(lambda v=values, w=weights, c=capacity: diconet.knapsack(v, w, c))
        exact, other = timed(lambda v=values, w=weights, c=capacity: optima(v, w, c))
        share = np.mean([a.value >= b * (1 - 1e-9) for a, b in zip(ours, exact, strict=True)])
        name = "OR-Tools, branch and bound"
        records.append(
            row("knapsack, 100 of them", size, f"{share:.0%}", took, "100%", name, other)
        )
    return records


def optima(values: Any, weights: Any, capacities: Any) -> list[float]:
    """The values that OR-Tools finds, one knapsack after the other."""
    three = zip(values, weights, capacities, strict=True)
    return [float(one[0][optimum_of(one)].sum()) for one in three]


def tours(
    rng: np.random.Generator, sizes: tuple[int, ...] = (200, 1_000, 5_000)
) -> list[dict[str, Any]]:
    """Length relative to the shorter; fast-tsp's wall-clock limit is the CPU time of ours."""
    records = []
    for size in sizes:
        cities = rng.random((size, 2))
        diconet.tsp(cities[:150])
        ours, took = timed(lambda cities=cities: diconet.tsp(cities))
        tour, other = timed(lambda cities=cities, took=took: fast_tsp_tour(cities, took))
        length = Metric.of(cities).length(tour)
        least = min(length, ours.value)
        figures = ours.value / least, length / least
        records.append(row("tsp", size, figures[0], took, figures[1], "fast-tsp", other))
    return records


def row(
    problem: str, n: int, ours: Any, took: float, theirs: Any, rival: str, other: float
) -> dict[str, Any]:
    ours, theirs = (x if isinstance(x, str) else round(x, 4) for x in (ours, theirs))
    record = {"problem": problem, "n": n, "diconet": ours, "seconds": round(took, 4)}
    return {**record, "rival": rival, "its result": theirs, "its seconds": round(other, 4)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    records = [*hulls(rng), *clusters(rng), *packs(), *tours(rng)]
    if options.json:
        print(json.dumps(records))
        return
    print(" | ".join(records[0]))
    for record in records:
        print(" | ".join(str(cell) for cell in record.values()))


if __name__ == "__main__":
    main()
