"""Clusters without a tree, to see beside those of one: a single start of k-means++."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sklearn.cluster import KMeans, kmeans_plusplus

from diconet.problems.kmeans.solve import Clusters, kmeans
from diconet.problems.solution import Partitions


def undivided(points: np.ndarray, k: int, *, search: bool) -> Clusters:
    """One start of k-means++; with search, Lloyd's rounds after it."""
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
    whole = Partitions(np.zeros((0, len(labels)), dtype=bool))
    return replace(frame, value=cost, tree=whole, labels=labels, centers=means, rounds=rounds)
