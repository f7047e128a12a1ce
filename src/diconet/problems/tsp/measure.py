"""The quality of tours, and what they are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from diconet.problems.problem import Instances, Show
from diconet.problems.tsp.references import fast_tsp_tour, nearest_neighbour_tour
from diconet.problems.tsp.search.metric import Metric


def grade(instances: Instances, solutions: Sequence[Any]) -> dict[str, float]:
    """Mean length, and its ratio to fast-tsp's, whose time grows with n."""
    costs, ratios = [], []
    for solution in solutions:
        length = Metric.of(solution.cities, solution.kind).length
        best = length(fast_tsp_tour(solution.cities, 0.02 + 0.001 * len(solution.cities)))
        costs.append(solution.value)
        ratios.append(solution.value / best if best > 0 else 1.0)
    return {"cost": float(np.mean(costs)), "ratio": float(np.mean(ratios))}


def show(rng: np.random.Generator, scale: float) -> Show:
    """One instance for the demo."""
    cities = rng.random((max(int(100 * scale), 8), 2))
    length = Metric.of(cities).length
    return Show(
        Instances(["demo"], [cities]),
        f"{len(cities)} cities",
        "length",
        ("nearest neighbour", lambda: length(nearest_neighbour_tour(cities))),
        ("fast-tsp, 1 s", lambda: length(fast_tsp_tour(cities, 1.0))),
    )
