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
from diconet.clusters import cost_of, lloyd_steps, node_cost
from diconet.merges.exchange import ExchangeMerge
from diconet.model import DiCoNet
from diconet.noise import seeds_from
from diconet.segments import segment_max
from diconet.sets import SetBatch
from diconet.solve.inputs import as_points, check_count, check_seed, is_many
from diconet.solve.networks import as_network
from diconet.solve.solution import Labels, Model, Solution, labels_of
from diconet.splits.graph import GraphSplit
from diconet.splits.sweep import SweepSplit
from diconet.tree import Cut, PartitionTree, Split, fold, grow

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
        x = _Frame.of(self.points).x
        whole = float(np.square(x).sum())
        kept = 1 - _apart(x, self.labels, len(self.centers)) / whole if whole > 0 else 1.0
        text = f"{len(self.centers)} clusters, {100 * kept:.1f}% of the variance explained"
        if self.points.size * len(self.centers) > _CHEAP:
            return text
        return f"{text}, cost of k-means++: {self.reference:.6g}"

    @cached_property
    def reference(self) -> float:
        """The cost of scikit-learn's Lloyd: the best of 10 k-means++ starts, run when asked for."""
        from diconet.references.kmeans import lloyd

        frame = _Frame.of(self.points)
        k = torch.tensor([[float(len(self.centers))]])
        labels = lloyd(SetBatch.of([torch.from_numpy(frame.x)], k)).numpy()
        return frame.cost(labels, int(labels.max()) + 1)

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
    check_count(lloyd, "lloyd", least=0)
    seed = check_seed(seed)
    parts = (SweepSplit, GraphSplit)
    network = as_network(model, default=DEFAULT_MODEL, task="k-means", parts=parts, device=device)
    _check_columns(arrays, network)
    frames = [_Frame.of(array) for array in arrays]
    sets = SetBatch.of(
        [torch.from_numpy(frame.x).to(device) for frame in frames],
        torch.tensor(counts, dtype=torch.float32, device=device)[:, None],
    )
    seeds = None
    if seed is not None:
        seeds = seeds_from(torch.Generator().manual_seed(seed), len(sets)).to(device)
    with torch.inference_mode():
        tree = clusters_tree(network, sets, seeds)
        leaves = _exchanged(sets, tree) if exchange else tree.leaves
        labels = lloyd_steps(sets, leaves, int(lloyd))
    found = [
        frame.clusters(part.cpu().numpy(), count, partitions, model)
        for frame, part, count, partitions in zip(
            frames, sets.unpack(labels), counts, labels_of(tree), strict=True
        )
    ]
    return found if many else found[0]


def clusters_tree(
    network: DiCoNet, sets: SetBatch, seeds: torch.Tensor | None = None
) -> PartitionTree:
    """A tree with as many leaves as each set's context says.

    A split that divides a budget of leaves does so; one that does not is grown best-first.
    """
    split = _AtItsOwnScale(network.split)
    if isinstance(network.split, GraphSplit):
        return grow_best_first(split, sets, sets.context[:, 0].long(), node_cost, seeds)
    return grow(split, sets, network.growth, seeds, closed=sets.context[:, 0] <= 1)


@dataclass(frozen=True)
class _AtItsOwnScale:
    """Shows a split every node around zero and of size one, where single precision serves."""

    split: Split

    def __call__(self, sets: SetBatch, seeds: torch.Tensor | None) -> Cut:
        x = sets.items - sets.mean(sets.items)[sets.owner]
        reach = segment_max(x.abs().amax(1), sets.owner, len(sets))
        x = x / torch.where(reach > 0, reach, 1)[sets.owner][:, None]
        return self.split(sets.with_items(x.float()), seeds)


def _exchanged(sets: SetBatch, tree: PartitionTree) -> torch.Tensor:
    """The clusters after the merge, or the tree's own where those cost less.

    Exchanges are weighed in single precision, where a point far off hides what others would gain.
    """
    before, after = tree.leaves, fold(ExchangeMerge(), tree).leaves
    worse = cost_of(sets, after) > cost_of(sets, before)
    return torch.where(worse[sets.owner], before, after)


def _counts(k: Any, arrays: list[np.ndarray]) -> list[int]:
    k = k.item() if isinstance(k, np.ndarray) and k.ndim == 0 else k
    counts = list(k) if isinstance(k, Sequence | np.ndarray) else [k] * len(arrays)
    if len(counts) != len(arrays):
        raise ValueError(f"k must be one number or {len(arrays)}, one an array; got {len(counts)}.")
    for count, array in zip(counts, arrays, strict=True):
        if check_count(count, "k", least=1) > len(array):
            raise ValueError(f"k must be at most the number of points, {len(array)}; got {count}.")
    return [int(count) for count in counts]


def _check_columns(arrays: list[np.ndarray], network: DiCoNet) -> None:
    """Refuses arrays of different widths, or of another than the network was made for."""
    wide = arrays[0].shape[1]
    made_for = ""
    if isinstance(network.split, GraphSplit):
        wide, made_for = network.split.config["num_features"], " for this model"
    for array in arrays:
        if array.shape[1] != wide:
            raise ValueError(f"points must have shape (n, {wide}){made_for}; got {array.shape}.")


@dataclass(frozen=True, eq=False)
class _Frame:
    """Points around zero and of size one: `points = (x * reach + mean) * largest`.

    In this order nothing overflows, however far out the points lie.
    """

    points: np.ndarray
    x: np.ndarray
    mean: np.ndarray
    reach: float
    largest: float

    @classmethod
    def of(cls, points: np.ndarray) -> _Frame:
        largest = float(np.abs(points).max(initial=0.0)) or 1.0
        small = points / largest
        mean = small.mean(0)
        reach = float(np.abs(small - mean).max(initial=0.0)) or 1.0
        return cls(points, (small - mean) / reach, mean, reach, largest)

    def clusters(self, labels: Labels, k: int, tree: Sequence[Labels], model: Model) -> Clusters:
        """The answer that these labels are."""
        centers = (_means(self.x, labels, k) * self.reach + self.mean) * self.largest
        return Clusters(self.cost(labels, k), tree, self.points, labels, centers, model=model)

    def cost(self, labels: Labels, k: int) -> float:
        """The sum of squared distances to the means, in the points' own units."""
        return _apart(self.x, labels, k) * self.reach * self.reach * self.largest * self.largest


def _means(x: np.ndarray, labels: Labels, k: int) -> np.ndarray:
    count = np.bincount(labels, minlength=k)
    sums = np.stack([np.bincount(labels, column, minlength=k) for column in x.T], 1)
    return sums / count[:, None]


def _apart(x: np.ndarray, labels: Labels, k: int) -> float:
    return float(np.square(x - _means(x, labels, k)[labels]).sum())
