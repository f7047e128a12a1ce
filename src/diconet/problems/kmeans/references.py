"""References for clusterings: Lloyd's algorithm in several forms, and unlearned splits.

Each takes packed sets with the number of clusters as context and returns a label per item.
"""

from __future__ import annotations

import math
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
from diconet.core.noise import gumbel, mix
from diconet.core.segments import segment_argmax
from diconet.core.sets import SetBatch
from diconet.core.tree import Cut, Growth, grow
from diconet.nets.sweep import SweepSplit
from diconet.nets.sweep_candidates import Candidates

_STARTS, _ROUNDS = 10, 20
"""k-means++ starts and maximum rounds of two-means."""


def lloyd(sets: SetBatch, *, restarts: int = 10) -> Int[Tensor, "items"]:
    """The best of `restarts` k-means++ starts of scikit-learn's Lloyd."""
    return _each(sets, lambda x, k: best_start(x, k, restarts=restarts))


def best_start(
    points: np.ndarray, k: int, weights: np.ndarray | None = None, *, restarts: int = 10
) -> np.ndarray:
    """The labels of scikit-learn's Lloyd for weighted points, the best of several starts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct points than clusters
        found = KMeans(k, n_init=restarts, random_state=0).fit(points, sample_weight=weights)
    return np.asarray(found.labels_, dtype=np.int64)


def bisecting(sets: SetBatch) -> Int[Tensor, "items"]:
    """scikit-learn's BisectingKMeans: repeated two-means on the costliest cluster."""

    def fit(x: np.ndarray, k: int) -> np.ndarray:
        return np.asarray(BisectingKMeans(k, random_state=0).fit(x).labels_)

    return _each(sets, fit)


def recursive_lloyd(sets: SetBatch) -> Int[Tensor, "items"]:
    """Two-means at each of log2 k levels (the paper's "Rec. Lloyd"); all sets have the same k."""
    depth = round(math.log2(float(sets.context[0, 0])))
    seeds = mix(torch.arange(len(sets), device=sets.items.device), 0)
    return grow(two_means, sets, Growth(depth=depth), seeds).leaves


def two_means(sets: SetBatch, seeds: Int[Tensor, "sets"] | None) -> Cut:
    """A split by Lloyd's algorithm: the cheapest of ten k-means++ starts, batched over sets."""
    seeds = torch.zeros_like(sets.sizes) if seeds is None else seeds
    copies, num = sets.repeat(_STARTS), len(sets) * _STARTS
    number = torch.arange(_STARTS, device=seeds.device).repeat(len(sets))
    own = mix(seeds.repeat_interleave(_STARTS), number)
    draws = gumbel(mix(own[copies.owner], copies.position))
    x, owner = copies.items, copies.owner
    low = x[segment_argmax(draws, owner, num).clamp(max=len(x) - 1)]
    far = (x - low[owner]).square().sum(1)
    draws = gumbel(mix(own[owner], copies.position + len(x)))
    high = x[segment_argmax(torch.log(far) + draws, owner, num).clamp(max=len(x) - 1)]
    side, cost = far > 0, far
    for _ in range(_ROUNDS + 1):
        near, far = ((x - centre[owner]).square().sum(1) for centre in (low, high))
        side, cost = far < near, torch.minimum(near, far)
        count = copies.sum(side.to(x.dtype)[:, None])
        beyond, total = copies.sum(x * side[:, None]), copies.sum(x)
        high = torch.where(count > 0, beyond / count.clamp(min=1), high)
        rest = copies.sizes[:, None] - count
        low = torch.where(rest > 0, (total - beyond) / rest.clamp(min=1), low)
    best = copies.sum(cost).reshape(-1, _STARTS).argmin(1)
    kept = copies.take(torch.arange(len(sets), device=best.device) * _STARTS + best)
    return Cut(side[kept.index], torch.zeros(len(sets), device=x.device))


def _each(sets: SetBatch, fit: Callable[[np.ndarray, int], np.ndarray]) -> Int[Tensor, "items"]:
    return torch.cat(
        [
            from_host(fit(to_host(points), int(k)).astype(np.int64), points)
            for points, k in zip(sets.unpack(), sets.context[:, 0].tolist(), strict=True)
        ]
    )


class MinCostSplit(SweepSplit):
    """The candidate cut that lowers the squared distances most; nothing is learned."""

    def logits(
        self, candidates: Candidates, rows: Int[Tensor, "rows"] | slice = slice(None)
    ) -> Float[Tensor, "rows"]:
        """The logits of candidates: the cheaper, the higher."""
        return -candidates.cost[rows].sum(1)


def min_cost(share: str = "halved") -> DiCoNet:
    """A control in the form of a network: the cheapest cut at every node of the same tree."""
    split = MinCostSplit(width=2, share="halved" if share == "halved" else "proportional")
    return DiCoNet(split, growth=Growth())
