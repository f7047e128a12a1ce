"""The quality of clusters, and what they are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from sklearn.cluster import kmeans_plusplus

from diconet.core.host import number
from diconet.core.model import DiCoNet
from diconet.core.sets import SetBatch
from diconet.problems.kmeans.answer import Clusters, clusters_of
from diconet.problems.kmeans.frame import Frame
from diconet.problems.kmeans.lloyd import lloyd as settled
from diconet.problems.kmeans.references import bisecting, lloyd
from diconet.problems.kmeans.solve import kmeans, num_features_of
from diconet.problems.kmeans.table import costs, labels_by
from diconet.problems.kmeans.task import cost_of
from diconet.problems.problem import Instances, Problem, Show
from diconet.problems.solution import Partitions


def grade(instances: Instances, solutions: Sequence[Any]) -> dict[str, float]:
    """Mean cost divided by that of scikit-learn's Lloyd, the best of ten starts."""
    cost = np.mean([solution.value for solution in solutions])
    bar = np.mean([solution.reference for solution in solutions])
    return {"cost / Lloyd": float(cost / bar)}


def figures_of_labels(problem: Problem, network: DiCoNet, num_sets: int) -> str:
    """The figures of a network that labels all points at once, without a tree or a search."""
    features, lines = num_features_of(network), []
    for size in problem.sizes:
        drawn = problem.fresh(size, num_sets, 0, features=features)
        points = [torch.from_numpy(array).float() for array in drawn.data]
        sets = SetBatch.of(points, torch.tensor(drawn.given["k"]).float()[:, None])
        cost, bar = costs(labels_by(network), sets).mean(), costs(lloyd, sets).mean()
        lines.append(f"n={size} cost / Lloyd {number(cost / bar):.5g}")
    return ", ".join(lines)


def show(rng: np.random.Generator, scale: float) -> Show:
    """One set of clusters for the demo."""
    k, each = 8, max(int(40 * scale), 3)
    centers = rng.random((k, 2))
    points = np.concatenate([rng.normal(c, 0.06, (each, 2)) for c in centers])
    sets = SetBatch.of([torch.from_numpy(points)], torch.tensor([[float(k)]]))
    return Show(
        Instances(["demo"], [points], {"k": [k]}),
        f"{len(points)} points, k = {k}",
        "cost",
        ("bisecting k-means", lambda: number(cost_of(sets, bisecting(sets)))),
        ("k-means++, best of 100", lambda: number(cost_of(sets, lloyd(sets, restarts=100)))),
    )


def undivided(points: np.ndarray, k: int, *, search: bool) -> Clusters:
    """One k-means++ start; with `search`, followed by Lloyd's rounds."""
    checked = kmeans(points, k, exchange=False, lloyd=0)
    frame = Frame.of(checked.points, checked.weights)
    x, weights = frame.x.astype(np.float32), frame.weights.astype(np.float32)
    centres, _ = kmeans_plusplus(x, k, random_state=0)
    found = settled(x, weights, centres, rounds=300 if search else 0)
    return clusters_of(frame, found, k, Partitions.uncut(len(points)), None)
