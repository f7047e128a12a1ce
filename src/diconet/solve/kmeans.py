"""Clusters of a user's own points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from diconet.best_first import grow_best_first
from diconet.clusters import lloyd_steps, node_cost
from diconet.merges.exchange import ExchangeMerge
from diconet.model import DiCoNet
from diconet.noise import seeds_from
from diconet.sets import SetBatch
from diconet.solve.inputs import as_points, check_seed, is_many
from diconet.solve.networks import as_network
from diconet.solve.solution import Solution, labels_of
from diconet.splits.graph import GraphSplit
from diconet.splits.sweep import SweepSplit
from diconet.tree import PartitionTree, fold, grow

DEFAULT_MODEL = "kmeans"
"""The shipped network that answers where none is asked for."""

_CHEAP = 1_000_000


@dataclass(frozen=True, eq=False, repr=False)
class Clusters(Solution):
    """Points in k clusters, none of them empty: `labels` from 0 to k - 1 and their `centers`.

    `value` is the k-means cost, the sum of squared distances to the centres, and `reference` the
    one that Lloyd's algorithm reaches. The tree's last partition is what the network said, before
    anything was exchanged or moved.
    """

    points: np.ndarray
    labels: np.ndarray
    centers: np.ndarray

    @property
    def sizes(self) -> np.ndarray:
        """Points a cluster."""
        return np.bincount(self.labels, minlength=len(self.centers))

    def quality(self) -> str:
        """The number of clusters, and how much of the points' variance lies between them."""
        whole = float(np.square(self.points - self.points.mean(0)).sum())
        kept = 1 - self.value / whole if whole > 0 else 1.0
        text = f"{len(self.centers)} clusters, {100 * kept:.1f}% of the variance explained"
        if self.points.size * len(self.centers) > _CHEAP:
            return text
        return f"{text}, cost of k-means++: {self.reference:.6g}"

    @cached_property
    def reference(self) -> float:
        """The cost of scikit-learn's Lloyd: the best of 10 k-means++ starts, run when asked for."""
        from diconet.references.kmeans import lloyd

        sets = SetBatch.of(
            [torch.from_numpy(_scaled(self.points))], torch.tensor([[float(len(self.centers))]])
        )
        labels = lloyd(sets).numpy()
        return _clusters(self.points, labels, self.tree, int(labels.max()) + 1).value

    def record(self) -> dict[str, Any]:
        """Points, cost beside that of k-means++ where it is cheap to know, clusters and labels."""
        cheap = self.points.size * len(self.centers) <= _CHEAP
        return {
            "points": len(self.points),
            "value": self.value,
            "k-means++": self.reference if cheap else None,
            "clusters": len(self.centers),
            "labels": self.labels.tolist(),
        }


def kmeans(
    points: Any,
    k: int | Sequence[int] | np.ndarray,
    *,
    lloyd: int = 5,
    exchange: bool = True,
    model: str | Path | DiCoNet | None = None,
    seed: int | None = None,
    device: str | torch.device = "cpu",
) -> Clusters | list[Clusters]:
    """Parts (n, d) points into k clusters, or each of several such arrays (solved as one batch).

    A network cuts the points in two, and the parts again, until there are k. On the way back up,
    clusters are put right where two halves meet (`ExchangeMerge`), and then come so many steps of
    Lloyd's algorithm (`exchange=False, lloyd=0` for the leaves of the tree as they are). `k` may be
    a list, one number an array. `seed` draws the network's cuts at random instead of taking the
    likeliest.
    """
    many = is_many(points, dims=2)
    arrays = [as_points(array, "points") for array in (points if many else [points])]
    counts = _counts(k, arrays)
    if isinstance(lloyd, bool) or not isinstance(lloyd, int | np.integer) or lloyd < 0:
        raise ValueError(f"lloyd must be a whole number of at least 0; got {lloyd!r}.")
    parts = (SweepSplit, GraphSplit)
    network = as_network(model, default=DEFAULT_MODEL, task="k-means", parts=parts, device=device)
    sets = SetBatch.of(
        [torch.from_numpy(_scaled(array)).to(device) for array in arrays],
        torch.tensor(counts, dtype=torch.float32, device=device)[:, None],
    )
    seed = check_seed(seed)
    seeds = None
    if seed is not None:
        seeds = seeds_from(torch.Generator().manual_seed(seed), len(sets)).to(device)
    with torch.inference_mode():
        tree = clusters_tree(network, sets, seeds)
        leaves = fold(ExchangeMerge(), tree).leaves if exchange else tree.leaves
        labels = lloyd_steps(sets, leaves, int(lloyd))
    found = [
        _clusters(array, part.cpu().numpy(), partitions, count)
        for array, part, partitions, count in zip(
            arrays, sets.unpack(labels), labels_of(tree), counts, strict=True
        )
    ]
    return found if many else found[0]


def clusters_tree(
    network: DiCoNet, sets: SetBatch, seeds: torch.Tensor | None = None
) -> PartitionTree:
    """A tree with as many leaves as each set's context says.

    A split that divides a budget of leaves does so; one that does not is grown best-first.
    """
    if isinstance(network.split, GraphSplit):
        return grow_best_first(network.split, sets, sets.context[:, 0].long(), node_cost, seeds)
    return grow(network.split, sets, network.growth, seeds, closed=sets.context[:, 0] <= 1)


def _counts(k: Any, arrays: list[np.ndarray]) -> list[int]:
    counts = list(k) if isinstance(k, Sequence | np.ndarray) else [k] * len(arrays)
    if len(counts) != len(arrays):
        raise ValueError(f"k must be one number or {len(arrays)}, one an array; got {len(counts)}.")
    for count, array in zip(counts, arrays, strict=True):
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
            raise ValueError(f"k must be a whole number of at least 1; got {count!r}.")
        if count > len(array):
            raise ValueError(f"k must be at most the number of points, {len(array)}; got {count}.")
    return [int(count) for count in counts]


def _scaled(points: np.ndarray) -> np.ndarray:
    """Points around zero and of size one, so that single precision serves at any scale."""
    half = points / 2  # so that the widest range of doubles does not overflow
    centred = half - half.mean(0)
    largest = np.abs(centred).max(initial=0.0)
    return (centred / (largest if largest > 0 else 1.0)).astype(np.float32)


def _clusters(points: np.ndarray, labels: np.ndarray, tree: Any, k: int) -> Clusters:
    count = np.bincount(labels, minlength=k)
    base = points.mean(0)
    shifted = points - base
    sums = np.stack([np.bincount(labels, column, minlength=k) for column in shifted.T], 1)
    centers = sums / count[:, None]
    cost = float(np.square(shifted - centers[labels]).sum())
    return Clusters(cost, tree, points, labels, centers + base)
