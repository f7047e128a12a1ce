"""The merge of k-means: joins the clusters of two halves and repairs them across the cut."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from diconet.core.host import from_host, numbers, to_host
from diconet.core.model import Part
from diconet.core.sets import SetBatch
from diconet.core.threads import in_parts
from diconet.core.tree import Level
from diconet.problems.kmeans.distances import TINY
from diconet.problems.kmeans.exchange_kernels import GAIN, HALF, LABEL, LOSS
from diconet.problems.kmeans.exchange_search import exchange_node
from diconet.problems.kmeans.frame import means_of
from diconet.problems.kmeans.lloyd import lloyd

_COSTS_PER_NUMBER = 100
_KICKS, _MORE, _MOST_KICKS = 2, 25, 10
"""Kicks (unconditional exchanges) at the root: the minimum; while they pay, one more per this many
clusters, or points per cluster if fewer; the maximum."""

_PAID = 2e-4
"""The share of the cost that a kick must save to pay."""

_AT_LEAST = 65_536
"""The minimum number of points used, however few the clusters: fewer confuse near equals."""

_KICKED = 6
"""A kick exchanges one cluster in this many, plus one; half as many after a kick in vain."""

_LONGER = 5
"""After a search, points move for at most this many times the rounds before it."""

_KICKED_TRIES = 4
"""After a kick, a search has one in this many of its tries."""

_NEAR = 7, 16
"""The near clusters a point may move to: this many plus half the dimension; the maximum."""

_LEVELS_APART = 3
"""Halves are repaired at every third level; in between, their clusters are passed on."""


@dataclass(frozen=True, eq=False)
class Clustering:
    """The clusters of every node of a level.

    `labels` numbers them within their node, for the points in the `sample` (None for all), and
    `counts` is the number of clusters per node.
    """

    roots: SetBatch
    weights: Float[Tensor, "items"]
    labels: Int[Tensor, "items"]
    counts: Int[Tensor, "nodes"]
    sample: Bool[Tensor, "items"] | None = None
    log_prob: None = None

    @property
    def solution(self) -> Clustering:
        """At the root: this clustering, in place of the tree's leaves."""
        return self

    def centres(self) -> list[np.ndarray]:
        """At the root: the mean of every cluster of each set, over the sample."""
        parts = [self.roots.items, self.weights, self.labels]
        sizes = self.roots.sizes
        if self.sample is not None:
            parts = [part[self.sample] for part in parts]
            sizes = self.roots.sum(self.sample.double()).long()
        each = zip(*(part.split(numbers(sizes)) for part in parts), strict=True)
        return [
            means_of(to_host(x), to_host(w), to_host(labels), k)
            for (x, w, labels), k in zip(each, numbers(self.counts), strict=True)
        ]

    @cached_property
    def leaves(self) -> Int[Tensor, "items"]:
        """At the root: the cluster of every point; outside the sample, the nearest."""
        if self.sample is None:
            return self.labels
        parts = []
        sets = zip(self.roots.unpack(), self.roots.unpack(self.weights), strict=True)
        for (x, w), centres in zip(sets, self.centres(), strict=True):
            found = lloyd(as_array(x), to_host(w.float()), centres, rounds=0)
            parts.append(from_host(found.labels, x))
        return torch.cat(parts)


class ExchangeMerge(Part):
    """Joins the clusters of two halves, and repairs the damage of the cut.

    A cut goes through clusters, and it fixes how many lie on either side; both can be repaired only
    where the halves are joined. First points move to nearby clusters where they cost less (`rounds`
    times). Then clusters that are cheap to lose are removed so that others can be cut in two, if
    that pays. Most such exchanges do not pay, and trying one costs as much as the points around it;
    so the most promising are tried first, and the search stops when none should pay, or after
    `tries` per cluster.

    Of a set of more than 65,536 points with more than `sample` per cluster, only `sample` per
    cluster, but at least 65,536, are used.
    """

    def __init__(self, rounds: int = 2, tries: float = 4.0, sample: int = 256) -> None:
        super().__init__()
        for name, value in {"rounds": rounds, "tries": tries}.items():
            if value < 0:
                raise ValueError(f"{name} must be at least 0; got {value}.")
        if sample < 1:
            raise ValueError(f"sample must be at least 1; got {sample}.")
        self.rounds, self.tries, self.sample = rounds, tries, sample

    def forward(
        self,
        level: Level,
        below: Clustering | None,
        target: None,
        weights: Float[Tensor, "items"] | None = None,
    ) -> Clustering:
        if below is None:
            below = self._bottom(level, weights)
        counts = torch.ones_like(level.sets.sizes)
        sample = _with_every_leaf(level, below.sample)
        labels = below.labels
        if level.cut is not None:
            nodes = level.sets.take(level.inner)
            rows, owner, side = nodes.index, nodes.owner, level.cut.side
            if sample is not None:
                here = sample[rows]
                rows, owner, side = rows[here], owner[here], side[here]
            first, second = below.counts.reshape(-1, 2).unbind(1)
            counts[level.inner] = first + second
            labels = labels.clone()
            joined = labels[rows] + torch.where(side, first[owner], 0)
            sizes = torch.bincount(owner, minlength=len(level.inner))
            points, mass, number = level.roots.items[rows], below.weights[rows], first + second
            if level.number % _LEVELS_APART == 0:
                kicks = level.number == 0
                joined = exchanged(points, mass, sizes, joined, number, self, kicks=kicks)
            labels[rows] = joined
        return replace(below, labels=labels, counts=counts, sample=sample)

    def _bottom(self, level: Level, weights: Float[Tensor, "items"] | None) -> Clustering:
        """The state before anything is joined, with an evenly spaced sample of the points."""
        roots = level.roots
        if weights is None:
            weights = torch.ones(roots.num_items, device=roots.items.device)
        sample = None
        if roots.context.shape[1]:
            most = (self.sample * roots.context[:, 0].double()).clamp(min=_AT_LEAST)
            step = (roots.sizes / most).clamp(min=1)
            if bool((step > 1).any()):
                at = step[roots.owner]
                sample = (roots.position / at).floor() != ((roots.position - 1) / at).floor()
        return Clustering(roots, weights, torch.zeros_like(roots.index), roots.sizes[:0], sample)


def _with_every_leaf(
    level: Level, sample: Bool[Tensor, "items"] | None
) -> Bool[Tensor, "items"] | None:
    """The sample with at least one point of every leaf of the level."""
    if sample is None:
        return None
    sets = level.sets
    inside = torch.zeros_like(sets.sizes).index_add(0, sets.owner, sample[sets.index].long())
    bare = level.is_leaf & (inside == 0) & (sets.sizes > 0)
    if not bool(bare.any()):
        return sample
    sample = sample.clone()
    sample[sets.index[sets.offsets[:-1][bare]]] = True
    return sample


def exchanged(
    points: Float[Tensor, "items features"],
    weights: Float[Tensor, "items"],
    sizes: Int[Tensor, "sets"],
    labels: Int[Tensor, "items"],
    counts: Int[Tensor, "sets"],
    merge: ExchangeMerge,
    *,
    kicks: bool = False,
) -> Int[Tensor, "items"]:
    """Improved labels for points in `counts` clusters per set.

    A kick exchanges a few clusters unconditionally; the result is kept if it costs less.
    """
    better = to_host(labels).copy()
    x, w = as_array(points), to_host(weights.float())
    offsets = np.concatenate([[0], np.cumsum(to_host(sizes))])
    number = numbers(counts)

    def work(node: int) -> None:
        low, high, k = offsets[node], offsets[node + 1], number[node]
        if high - low > 1 and k > 1:
            here = slice(low, high)
            better[here] = _searched(x[here], w[here], better[here], k, merge, kicks)

    in_parts(work, range(len(number)), work=x.size * _COSTS_PER_NUMBER)
    return from_host(better, labels)


def _searched(
    x: np.ndarray, w: np.ndarray, labels: np.ndarray, k: int, merge: ExchangeMerge, kicks: bool
) -> np.ndarray:
    """The labels of one node after its search, and after kicks for as long as these pay."""
    tries, size, in_vain = int(merge.tries * k), 1 + k // _KICKED, 0
    order = np.argsort(labels, kind="stable")  # the loops go from cluster to cluster
    x, w, labels = x[order], w[order], labels[order]
    squares = float((np.square(x, dtype=np.float64).sum(1) * w).sum())

    def search(labels: np.ndarray, tries: int) -> tuple[np.ndarray, ...]:
        known = arrays_of(x, labels, k)
        for rounds, upto in ((merge.rounds, tries), (_LONGER * merge.rounds, 0)):
            exchange_node(x, w, *known, rounds, upto)
        return known

    best = search(labels, tries)
    most = _explained(best[2][:k])
    most_kicks = min(_KICKS + min(k, len(x) // k) // _MORE, _MOST_KICKS)
    for _ in range(most_kicks if kicks and tries > 0 and k > 2 else 0):
        known = search(kicked(best, size), tries // _KICKED_TRIES)
        explained = _explained(known[2][:k])
        if explained - most <= _PAID * (squares - most):
            in_vain, size = in_vain + 1, max(1, size // 2)
        if explained > most:
            best, most = known, explained
        if in_vain == _KICKS:
            break
    labels[order] = best[0][LABEL]
    return labels


def _explained(sums: np.ndarray) -> float:
    """The part of the points' sum of squares that clusters explain."""
    return float((np.square(sums[:, :-1]).sum(1) / np.maximum(sums[:, -1], TINY)).sum())


def kicked(known: tuple[np.ndarray, ...], number: int) -> np.ndarray:
    """Labels with the clusters that seem least needed removed, and others cut in halves."""
    at, near, seen = known[0], known[4], known[6]
    labels, loss, gain = at[LABEL].copy(), seen[LOSS], seen[GAIN]
    given_up, cut = np.argsort(loss)[:number], np.argsort(-gain)[:number]
    for a, b in zip(given_up, cut, strict=True):
        mine = labels == b
        half = mine & (at[HALF] > 0)
        if a != b and 0 < half.sum() < mine.sum():
            labels[labels == a] = near[a, 0]
            labels[half] = a
    return labels


def arrays_of(x: np.ndarray, labels: np.ndarray, k: int) -> tuple[np.ndarray, ...]:
    """Work arrays for what the loops store about a node's points and clusters."""
    (n, d), m = x.shape, min(_NEAR[0] + x.shape[1] // 2, _NEAR[1], k - 1)
    tried = 2 * m + 3  # clusters near either of two, and these
    at = np.empty((5, n), np.int64)
    at[LABEL] = labels
    clusters = np.empty((k + tried, d + 1)), np.empty((k + tried, d), x.dtype)
    near = np.empty((k, m), np.int64), np.empty((k, m), np.float32)
    spare, y = np.zeros((3, max(k, tried)), np.int64), np.empty((n + 1, d), np.float32)
    return at, np.empty(k + 1, np.int64), *clusters, *near, np.zeros((5, k)), spare, y


def as_array(points: Float[Tensor, "items features"]) -> np.ndarray:
    """Points for the compiled loops, which take single and double precision."""
    return np.ascontiguousarray(to_host(points))
