"""What clusterings are compared with: Lloyd's algorithm in several forms, and rules and networks.

Each takes packed sets with the number of clusters as context and gives a label an item.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Float, Int
from sklearn.cluster import BisectingKMeans, KMeans
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from diconet.model import DiCoNet
from diconet.sets import SetBatch
from diconet.splits.sweep import Candidates, SweepSplit
from diconet.tree import Growth


def lloyd(sets: SetBatch, *, restarts: int = 10, iterations: int = 300) -> Int[Tensor, "items"]:
    """scikit-learn's Lloyd with k-means++ starts, the best of so many restarts."""

    def fit(x: np.ndarray, k: int) -> np.ndarray:
        model = KMeans(k, n_init=restarts, max_iter=iterations, random_state=0)
        return np.asarray(model.fit(x).labels_)

    return _each(sets, fit)


def bisecting(sets: SetBatch) -> Int[Tensor, "items"]:
    """scikit-learn's BisectingKMeans: two-means on the costliest cluster, time after time."""

    def fit(x: np.ndarray, k: int) -> np.ndarray:
        return np.asarray(BisectingKMeans(k, random_state=0).fit(x).labels_)

    return _each(sets, fit)


def recursive_lloyd(sets: SetBatch) -> Int[Tensor, "items"]:
    """Two-means, at most 20 rounds, at each of log2 k levels (the paper's "Rec. Lloyd")."""

    def fit(x: np.ndarray, k: int) -> np.ndarray:
        labels = np.zeros(len(x), np.int64)
        for _ in range(round(float(np.log2(k)))):
            finer = 2 * labels
            for part in np.unique(labels):
                rows = np.flatnonzero(labels == part)
                if len(rows) > 1:
                    two = KMeans(2, n_init=10, max_iter=20, random_state=0)
                    finer[rows] += two.fit(x[rows]).labels_
            labels = finer
        return np.unique(labels, return_inverse=True)[1]

    return _each(sets, fit)


def _each(sets: SetBatch, fit: Callable[[np.ndarray, int], np.ndarray]) -> Int[Tensor, "items"]:
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct points than clusters
        for points, k in zip(sets.unpack(), sets.context[:, 0].tolist(), strict=True):
            found.append(torch.from_numpy(fit(points.numpy(), int(k)).astype(np.int64)))
    return torch.cat(found)


class MinCostSplit(SweepSplit):
    """The cut that lowers the squared distances most, among the same candidates: learns nothing."""

    def logits(self, candidates: Candidates) -> Float[Tensor, "cuts"]:
        """The less a cut costs, the better."""
        return -candidates.cost.sum(1)


def min_cost(share: str = "halved") -> DiCoNet:
    """A network-shaped control: the cheapest cut at every node of the same tree."""
    split = MinCostSplit(width=2, share="halved" if share == "halved" else "proportional")
    return DiCoNet(split, growth=Growth())
