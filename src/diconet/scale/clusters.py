"""Clusters of any number of points: a weighted sample that stands for all, then a few full rounds.

The sample is a lightweight coreset (Bachem, Lucic & Krause, 2018): a point is drawn with
probability half uniform, half in proportion to its squared distance from the mean of all, and
counts by the inverse. For every set of k centres at once, its cost on the sample is then within
eps (cost + cost of one centre) / 2 of that on all points, with eps in proportion to
sqrt(d k log k / m) for m points.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, no_type_check

import dask.array as da
import numpy as np
from dask.delayed import delayed
from numba import njit

from diconet.core.model import DiCoNet
from diconet.problems.inputs import check_count, check_seed
from diconet.problems.kmeans.solve import kmeans as kmeans_in_memory
from diconet.problems.solution import Solution
from diconet.scale.chunks import Chunks
from diconet.scale.work import computed, in_order, leaves, merged

_SAMPLE_PER_CLUSTER = 2_000
_SAMPLE = 20_000, 400_000
"""How many points stand for all: per cluster, and at least and at most."""

_ENOUGH = 1e-4
"""A round of Lloyd's algorithm that gains less than this, relative to the cost, is the last."""


@dataclass(frozen=True, eq=False, repr=False)
class LargeClusters(Solution):
    """k clusters of `size` points: their `centers`, and `labels` in the order of the points.

    Labels are a Dask array, worked out when asked for. `value` is the cost of the centres on all
    points, and `sample_error` by how much, relative to it, the cost on the sample was off.
    """

    size: int
    centers: np.ndarray
    sizes: np.ndarray
    labels: da.Array
    rounds: int
    sample_size: int
    sample_error: float

    def quality(self) -> str:
        """The number of clusters, and how well the sample stood for all points."""
        return (
            f"{len(self.centers)} clusters of {self.size} points, a sample of {self.sample_size}"
            f" off by {100 * self.sample_error:.2g}%"
        )

    def record(self) -> dict[str, Any]:
        """Points, cost, clusters and centres; labels are not gathered."""
        return {
            "points": self.size,
            "value": self.value,
            "clusters": len(self.centers),
            "rounds": self.rounds,
            "centers": self.centers.tolist(),
        }

    def rows(self) -> Iterator[Sequence[Any]]:
        """The label of every point, a chunk at a time."""
        yield "index", "label"
        start = 0
        for block in self.labels.blocks:
            labels = block.compute().tolist()
            yield from enumerate(labels, start)
            start += len(labels)


@dataclass(frozen=True, eq=False)
class _Census:
    """Sizes of leaves, and the mean of their points with the sum of squares around it."""

    sizes: np.ndarray
    mean: np.ndarray
    spread: float

    @classmethod
    def of(cls, rows: np.ndarray, number: int) -> _Census:
        mean = rows.mean(0) if len(rows) else np.zeros(rows.shape[1])
        spread = float(np.square(rows - mean).sum())
        return cls(np.array([len(rows)]), mean, spread)

    @staticmethod
    def merge(parts: list[_Census]) -> _Census:
        sizes = np.concatenate([part.sizes for part in parts])
        counts = np.array([part.sizes.sum() for part in parts], dtype=np.float64)
        if len({len(part.mean) for part in parts}) > 1:
            raise ValueError("points must have as many columns in every chunk; they have not.")
        means = np.stack([part.mean for part in parts])
        mean = counts @ means / max(counts.sum(), 1)
        apart = float(counts @ np.square(means - mean).sum(1))
        return _Census(sizes, mean, sum(part.spread for part in parts) + apart)


def kmeans(
    points: Any,
    k: int,
    *,
    lloyd: int = 5,
    model: str | Path | DiCoNet | None = None,
    seed: int | None = None,
    columns: Sequence[str] | None = None,
) -> LargeClusters:
    """k clusters of a Dask array or dataframe, or of files that match a pattern.

    The network clusters a weighted sample; at most `lloyd` rounds of Lloyd's algorithm on all
    points follow, each one pass with a tree of sums. The same chunks and seed give the same
    answer, on any number of workers.
    """
    check_count(k, "k", least=1)
    check_count(lloyd, "lloyd", least=0)
    chunks = Chunks.of(points, "points", columns)
    census: _Census = computed(
        merged(_Census.merge, leaves(_Census.of, chunks, "census"), "census")
    )
    size = int(census.sizes.sum())
    if k > size:
        raise ValueError(f"k must be at most the number of points, {size}; got {k}.")
    wanted = int(np.clip(_SAMPLE_PER_CLUSTER * k, *_SAMPLE))
    sampled = leaves(_sample, chunks, "sample", census, wanted, check_seed(seed) or 0)
    start = delayed(_centres, pure=False)(merged(_joined, sampled, "sample"), k, model, seed)
    centers, on_sample, sample_size = computed(start)
    at_first: float | None = None
    for rounds in range(lloyd + 1):
        sums = leaves(_Sums.of, chunks, "round", centers)
        found: _Sums = computed(merged(_Sums.merge, sums, "round"))
        at_first = found.cost if at_first is None else at_first
        better = found.means(centers)
        gain = found.gain(centers, better)
        if rounds == lloyd or gain <= _ENOUGH * found.cost:
            break
        centers = better
    labels = in_order(leaves(_labels, chunks, "labels", centers), census.sizes, np.int32)
    error = abs(on_sample - at_first) / at_first if at_first else 0.0
    return LargeClusters(
        found.cost, (), size, centers, found.mass, labels, rounds, sample_size, error, model=model
    )


def _sample(
    rows: np.ndarray, number: int, census: _Census, wanted: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """This leaf's share of the sample, and how much each of its points counts."""
    total = int(census.sizes.sum())
    if total <= wanted:
        return rows, np.ones(len(rows))
    chance = np.square(rows - census.mean).sum(1)
    chance *= 0.5 / census.spread if census.spread > 0 else 0.0
    chance += 0.5 / total
    reach = np.cumsum(chance)
    rng = np.random.default_rng([seed, number])
    many = rng.poisson(wanted * reach[-1]) if len(rows) else 0
    places = np.searchsorted(reach, np.sort(rng.random(many)) * (reach[-1] if len(rows) else 0))
    places = np.minimum(places, len(rows) - 1)
    return rows[places], 1 / (wanted * chance[places])


def _joined(parts: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    return np.concatenate([p for p, _ in parts]), np.concatenate([w for _, w in parts])


def _centres(
    sample: tuple[np.ndarray, np.ndarray], k: int, model: Any, seed: int | None
) -> tuple[np.ndarray, float, int]:
    """Centres of the sample by the network, their cost on it in terms of all points, its size."""
    points, weights = sample
    found = kmeans_in_memory(points, k, sample_weight=weights, model=model, seed=seed)
    assert not isinstance(found, list)
    cost = float(weights @ np.square(points - found.centers[found.labels]).sum(1))
    return found.centers, cost, len(points)


@dataclass(frozen=True, eq=False)
class _Sums:
    """What the points nearest to each centre add up to, seen from that centre."""

    sums: np.ndarray
    mass: np.ndarray
    cost: float

    @classmethod
    def of(cls, rows: np.ndarray, number: int, centers: np.ndarray) -> _Sums:
        labels = np.empty(len(rows), np.int32)
        sums, mass = np.zeros(centers.shape), np.zeros(len(centers), np.int64)
        cost = nearest(rows, np.ascontiguousarray(centers.T), labels, sums, mass)
        return cls(sums, mass, float(cost))

    @staticmethod
    def merge(parts: list[_Sums]) -> _Sums:
        return _Sums(
            np.sum([part.sums for part in parts], axis=0),
            np.sum([part.mass for part in parts], axis=0),
            sum(part.cost for part in parts),
        )

    def means(self, centers: np.ndarray) -> np.ndarray:
        """New centres; one that no point is nearest to stays."""
        return centers + self.sums / np.maximum(self.mass, 1)[:, None]

    def gain(self, centers: np.ndarray, better: np.ndarray) -> float:
        """By how much the cost falls at least when the centres move."""
        return float(self.mass @ np.square(better - centers).sum(1))


def _labels(rows: np.ndarray, number: int, centers: np.ndarray) -> np.ndarray:
    labels = np.empty(len(rows), np.int32)
    spare = np.zeros(centers.shape), np.zeros(len(centers), np.int64)
    nearest(rows, np.ascontiguousarray(centers.T), labels, *spare)
    return labels


@njit(cache=True, nogil=True, fastmath=True)
@no_type_check
def nearest(x, by_feature, labels, sums, mass):
    """The nearest centre of each point, what comes together at each centre, and the cost."""
    d, k = by_feature.shape
    far = np.empty(k)
    cost = 0.0
    for i in range(len(x)):
        far[:] = 0
        for j in range(d):
            value = x[i, j]
            for c in range(k):
                gap = value - by_feature[j, c]
                far[c] += gap * gap
        least = far[0]
        for c in range(k):
            least = min(least, far[c])
        best = 0
        while far[best] > least:
            best += 1
        labels[i] = best
        cost += least
        mass[best] += 1
        for j in range(d):
            sums[best, j] += x[i, j] - by_feature[j, best]
    return cost
