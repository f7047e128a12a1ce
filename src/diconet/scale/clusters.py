"""Clusters of any number of points: centres of a sample that stands for all, then full rounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, no_type_check

import dask.array as da
import numpy as np
from numba import njit

from diconet.core.compiled import KERNEL
from diconet.core.model import DiCoNet
from diconet.problems.inputs import check_count, check_seed
from diconet.problems.kmeans.problem import PROBLEM
from diconet.problems.networks import as_network
from diconet.problems.solution import Solution
from diconet.scale.chunks import Chunks
from diconet.scale.sampled import counted, first_centres
from diconet.scale.work import added, by_block, in_order, leaves, reduced

_ENOUGH = 1e-3
"""Another round of Lloyd's algorithm, a pass over all points, must gain this share of the cost."""


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
        for start, labels in by_block(self.labels):
            yield from enumerate(labels.tolist(), start)


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
    points follow, each one pass with a tree of sums, while a round gains more than 0.1%. The same
    chunks and seed give the same answer, on any number of workers. `columns` says which, by name
    or number from 1; else all.
    """
    check_count(k, "k", least=1)
    check_count(lloyd, "lloyd", least=0)
    chunks = Chunks.of(points, "points", asked=columns)
    network = as_network(PROBLEM, model)
    census = counted(chunks, k, check_seed(seed))
    size = int(census.sizes.sum())
    if k > size:
        raise ValueError(f"k must be at most the number of points, {size}; got {k}.")
    centers, on_sample, sample_size = first_centres(chunks, census, k, network, seed)
    at_first: float | None = None
    for rounds in range(lloyd + 1):
        sums, mass, cost = reduced(_sums, added, chunks, "round", centers)
        at_first = cost if at_first is None else at_first
        better = centers + sums / np.maximum(mass, 1)[:, None]  # without points, a centre stays
        gain = float(mass @ np.square(better - centers).sum(1))  # at least
        if rounds == lloyd or gain <= _ENOUGH * cost:
            break
        centers = better
    labels = in_order(leaves(_labels, chunks, "labels", centers), census.sizes, np.int32)
    error = abs(on_sample - at_first) / at_first if at_first else 0.0
    return LargeClusters(
        cost, (), size, centers, mass, labels, rounds, sample_size, error, model=model
    )


def _sums(
    rows: np.ndarray, number: int, centers: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """What the points nearest to each centre add up to, seen from it; their number; the cost."""
    return _nearest(rows, centers)[1:]


def _labels(rows: np.ndarray, number: int, centers: np.ndarray) -> np.ndarray:
    return _nearest(rows, centers)[0]


def _nearest(
    rows: np.ndarray, centers: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    labels, mass = np.empty(len(rows), np.int32), np.zeros(len(centers), np.int64)
    sums = np.zeros(centers.shape)
    cost = nearest(rows, np.ascontiguousarray(centers.T), labels, sums, mass)
    return labels, sums, mass, float(cost)


@njit(**KERNEL, fastmath=True)
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
