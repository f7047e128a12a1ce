"""The quality of packings, and what they are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from diconet.core.host import to_host
from diconet.core.noise import phase_generator
from diconet.problems.knapsack.search import Hunt
from diconet.problems.knapsack.task import KnapsackTask, optimum_of
from diconet.problems.problem import Instances, Show


def fresh(size: int, num_sets: int, seed: int) -> Instances:
    """Fresh knapsacks in a user's form: whole values and weights, and a capacity."""
    sets = KnapsackTask().sample(num_sets, size, rng=phase_generator("test", seed, size))
    data = [tuple(to_host(items.long()).T) for items in sets.unpack()]
    names = [f"{size}[{number}]" for number in range(num_sets)]
    return Instances(names, data, {"capacity": sets.context[:, 0].long().tolist()})


def grade(instances: Instances, solutions: Sequence[Any]) -> dict[str, float]:
    """Mean of optimum over value and of bound over value, and the shares of both that are 1."""
    values = np.array([solution.value for solution in solutions])
    best = np.array([_optimum(solution) for solution in solutions])
    gaps = np.array([solution.gap for solution in solutions])
    return {
        "ratio": float((best / values).mean()),
        "proven ratio": 1 + float(gaps.mean()),
        "optimal": 100 * float((best <= values).mean()),
        "proven optimal": 100 * float((gaps == 0).mean()),
    }


def _optimum(solution: Any) -> float:
    values, weights = solution.values.astype(int), solution.weights.astype(int)
    return float(values[optimum_of((values, weights, int(solution.capacity)))].sum())


def show(rng: np.random.Generator, scale: float) -> Show:
    """One knapsack for the demo."""
    size = max(int(50 * scale), 8)
    values, weights = rng.integers(1, 10_000, (2, size))
    capacity = int(weights.sum()) // 4
    return Show(
        Instances(["demo"], [(values, weights)], {"capacity": [capacity]}),
        f"{size} items",
        "value",
        ("greedy by ratio", lambda: float(Hunt.of(values, weights, capacity).prices.best)),
        ("branch and bound", lambda: float(values[optimum_of((values, weights, capacity))].sum())),
    )
