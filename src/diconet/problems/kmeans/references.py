"""What clusterings are compared with: Lloyd's algorithm in several forms, and rules and networks.

Each takes packed sets with the number of clusters as context and gives a label per item.
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

from diconet.core.host import from_host, to_host
from diconet.core.model import DiCoNet
from diconet.core.sets import SetBatch
from diconet.core.tree import Growth
from diconet.nets.sweep import Candidates, SweepSplit
from diconet.problems.kmeans.reference_kernels import recursive_two_means


def lloyd(sets: SetBatch, *, restarts: int = 10, iterations: int = 300) -> Int[Tensor, "items"]:
    """scikit-learn's Lloyd with k-means++ starts, the best of `restarts`."""

    def fit(x: np.ndarray, k: int) -> np.ndarray:
        model = KMeans(k, n_init=restarts, max_iter=iterations, random_state=0)
        return np.asarray(model.fit(x).labels_)

    return _each(sets, fit)


def best_of_ten(points: np.ndarray, k: int, weights: np.ndarray) -> np.ndarray:
    """The labels of scikit-learn's Lloyd for points with weights, the best of ten starts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = KMeans(k, n_init=10, random_state=0).fit(points, sample_weight=weights)
    return np.asarray(found.labels_, dtype=np.int64)


def bisecting(sets: SetBatch) -> Int[Tensor, "items"]:
    """scikit-learn's BisectingKMeans: two-means on the costliest cluster, time after time."""

    def fit(x: np.ndarray, k: int) -> np.ndarray:
        return np.asarray(BisectingKMeans(k, random_state=0).fit(x).labels_)

    return _each(sets, fit)


def recursive_lloyd(sets: SetBatch) -> Int[Tensor, "items"]:
    """Two-means at each of log2 k levels (the paper's "Rec. Lloyd").

    The best of 10 k-means++ starts and at most 20 rounds each; in a loop of our own, because a call
    of scikit-learn for every node of every tree takes longer than all else that is compared.
    """
    depths = torch.log2(sets.context[:, 0]).round().long()
    labels = recursive_two_means(
        to_host(sets.items), to_host(sets.offsets), to_host(depths), starts=10, rounds=20
    )
    return renumbered(sets, from_host(labels, sets.items))


def renumbered(sets: SetBatch, labels: Int[Tensor, "items"]) -> Int[Tensor, "items"]:
    """Labels without gaps, so that none of a set's clusters is empty."""
    width = int(labels.max()) + 1
    used, dense = torch.unique(sets.owner * width + labels, return_inverse=True)
    first = torch.searchsorted(used, torch.arange(len(sets), device=used.device) * width)
    return dense - first[sets.owner]


def _each(sets: SetBatch, fit: Callable[[np.ndarray, int], np.ndarray]) -> Int[Tensor, "items"]:
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct points than clusters
        for points, k in zip(sets.unpack(), sets.context[:, 0].tolist(), strict=True):
            found.append(from_host(fit(to_host(points), int(k)).astype(np.int64), points))
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
