"""The quality of clusters, and what they are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from sklearn.cluster import KMeans, kmeans_plusplus

from diconet.core.host import number
from diconet.core.sets import SetBatch
from diconet.problems.kmeans.references import bisecting, lloyd
from diconet.problems.kmeans.solve import Clusters, kmeans
from diconet.problems.kmeans.task import cost_of
from diconet.problems.problem import Instances, Show
from diconet.problems.solution import Partitions


def grade(instances: Instances, solutions: Sequence[Any]) -> dict[str, float]:
    """Mean cost divided by that of scikit-learn's Lloyd, the best of ten starts."""
    cost = np.mean([solution.value for solution in solutions])
    bar = np.mean([solution.reference for solution in solutions])
    return {"cost / Lloyd": float(cost / bar)}


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
    frame = kmeans(points, k, exchange=False, lloyd=0)  # checks points and k
    assert isinstance(frame, Clusters)
    centres, _ = kmeans_plusplus(frame.points, k, random_state=0)
    labels = ((frame.points[:, None] - centres) ** 2).sum(2).argmin(1)
    rounds = 0
    if search:
        fit = KMeans(k, init=centres, n_init=1).fit(frame.points)
        labels, rounds = fit.labels_.astype(np.int64), int(fit.n_iter_)
    taken = np.unique(labels)
    means = np.stack([frame.points[labels == one].mean(0) for one in taken])
    labels = np.searchsorted(taken, labels)
    cost = float(np.square(frame.points - means[labels]).sum())
    whole = Partitions.uncut(len(labels))
    return replace(frame, value=cost, tree=whole, labels=labels, centers=means, rounds=rounds)
