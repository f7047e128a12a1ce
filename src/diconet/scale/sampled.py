"""Centres from a weighted sample that represents any number of points.

The sample is a lightweight coreset (Bachem, Lucic & Krause, 2018): a point is drawn with
probability half uniform, half in proportion to its squared distance from the overall mean, and
weighted by the inverse. For every set of k centres at once, its cost on the sample is then within
eps (cost + cost of one centre) / 2 of that on all points, with eps in proportion to
sqrt(d k log k / m) for m points.

With many clusters, the network's split divides space: each cell's part of the sample is clustered
separately, and the network's merge corrects what lies across the cuts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
import torch
from dask.delayed import delayed

from diconet.core.model import DiCoNet
from diconet.problems.kmeans.exchange import exchanged
from diconet.problems.kmeans.frame import means_of
from diconet.problems.kmeans.lloyd import lloyd
from diconet.problems.kmeans.solve import budgeted_split, merge_of
from diconet.problems.kmeans.solve import kmeans as kmeans_in_memory
from diconet.scale.chunks import ROW_BITS, Chunks
from diconet.scale.division import Division, Sample, shuffled
from diconet.scale.work import computed, gathered, leaves, merged, reduced

_SAMPLE_PER_CLUSTER = 2_000
_SAMPLE = 20_000, 400_000
"""The minimum and maximum sample size."""

CELL = 128
"""Maximum clusters per cell: fewer are found in less time than the sample takes to move."""

_SEEN = 2**16
"""Approximate number of points by which the split divides space."""

_ROUNDS = 300


@dataclass(frozen=True, eq=False)
class Census:
    """Sizes of leaves, the mean of their points, the sum of squares around it, and some points."""

    sizes: np.ndarray
    mean: np.ndarray
    spread: float
    some: Sample

    @classmethod
    def of(cls, rows: np.ndarray, number: int, share: int, seed: int) -> Census:
        """The census of one leaf."""
        mean = np.einsum("ij->j", rows) / max(len(rows), 1)  # half the time of rows.mean(0)
        spread = float(_squares(rows, mean).sum())
        return cls(np.array([len(rows)]), mean, spread, Sample.of(rows, share, [seed, number, 1]))

    @staticmethod
    def merge(parts: list[Census]) -> Census:
        """The census of several leaves."""
        sizes = np.concatenate([part.sizes for part in parts])
        counts = np.array([part.sizes.sum() for part in parts], dtype=np.float64)
        if len({len(part.mean) for part in parts}) > 1:
            raise ValueError("points must have equally many columns in every chunk; they do not.")
        means = np.stack([part.mean for part in parts])
        mean = counts @ means / max(counts.sum(), 1)
        apart = float(counts @ np.square(means - mean).sum(1))
        spread = sum(part.spread for part in parts) + apart
        return Census(sizes, mean, spread, gathered([part.some for part in parts]))


def _squares(rows: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """The squared distance of every row from the mean."""
    apart = rows - mean
    return np.einsum("ij,ij->i", apart, apart)


def counted(chunks: Chunks, k: int, seed: int | None) -> Census:
    """The census of all chunks, with enough points to divide space by."""
    share = max(16, _SEEN // max(1, len(chunks))) if k > CELL else 1
    return reduced(Census.of, Census.merge, chunks, "census", share, seed or 0)


def first_centres(
    chunks: Chunks, census: Census, k: int, network: DiCoNet, seed: int | None
) -> tuple[np.ndarray, float, int]:
    """k centres that the network finds on a sample, their cost on it, and its size."""
    wanted = int(np.clip(_SAMPLE_PER_CLUSTER * k, *_SAMPLE))
    division = Division.by_budget(budgeted_split(network), census.some.evened(), k, CELL)
    drawn = leaves(_drawn, chunks, "sample", census, division, wanted, seed or 0)
    if len(division) == 1:
        cells = [merged(pd.concat, drawn, "sample")]
    else:
        columns = dict.fromkeys(_names(len(census.mean)), np.float64) | _KEYS
        cells = shuffled(drawn, len(division), columns)
    found = [
        delayed(_clustered, pure=False)(cell, int(budget), network, seed)
        for cell, budget in zip(cells, division.budgets, strict=True)
    ]
    joined = merged(partial(_joined, network=network), found, "clusters")
    return computed(delayed(_settled, pure=False)(joined, k, network, seed))


_KEYS = {"weight": np.float64, "address": np.int64, "cell": np.int64}


def _names(width: int) -> list[str]:
    return [f"x{i}" for i in range(width)]


def _drawn(
    rows: np.ndarray, number: int, census: Census, division: Division, wanted: int, seed: int
) -> pd.DataFrame:
    """This leaf's share of the sample: points, their weights and their cells."""
    total = int(census.sizes.sum())
    places, weights = np.arange(len(rows)), np.ones(len(rows))
    if total > wanted and len(rows):
        chance = _squares(rows, census.mean)
        chance *= 0.5 / census.spread if census.spread > 0 else 0.0
        chance += 0.5 / total
        reach = np.cumsum(chance)
        rng = np.random.default_rng([seed, number])
        many = rng.poisson(wanted * reach[-1])
        places = np.searchsorted(reach, np.sort(rng.random(many)) * reach[-1])
        places = np.minimum(places, len(rows) - 1)
        weights = 1 / (wanted * chance[places])
    points = rows[places]
    columns = dict(zip(_names(points.shape[1]), points.T, strict=True))
    keys = (weights, (number << ROW_BITS) + places, division.cells(points))
    return pd.DataFrame(columns | dict(zip(_KEYS, keys, strict=True)))


@dataclass(frozen=True, eq=False)
class _Clusters:
    """Points of the sample in `count` clusters, with their weights and labels."""

    points: np.ndarray
    weights: np.ndarray
    labels: np.ndarray
    count: int

    def centres(self) -> np.ndarray:
        return means_of(self.points, self.weights, self.labels, self.count)


def _clustered(cell: pd.DataFrame, budget: int, network: DiCoNet, seed: int | None) -> _Clusters:
    """The network's clusters of a cell, at most as many as it has points."""
    cell = cell.sort_values("address", kind="stable")
    points = cell[[name for name in cell.columns if name not in _KEYS]].to_numpy()
    return _by_network(points, cell["weight"].to_numpy(), budget, network, seed)


def _by_network(
    points: np.ndarray, weights: np.ndarray, budget: int, network: DiCoNet, seed: int | None
) -> _Clusters:
    budget = min(budget, len(points))
    if budget == 0:
        return _Clusters(points, weights, np.empty(0, np.int64), 0)
    found = kmeans_in_memory(points, budget, sample_weight=weights, model=network, seed=seed)
    return _Clusters(points, weights, found.labels, budget)


def _joined(parts: list[_Clusters], network: DiCoNet) -> _Clusters:
    """The clusters of several cells, corrected by the network's merge on some of their points."""
    if len(parts) == 1:
        return parts[0]
    points = np.concatenate([part.points for part in parts])
    weights = np.concatenate([part.weights for part in parts])
    firsts = np.cumsum([0, *(part.count for part in parts)])
    labels = np.concatenate([p.labels + first for p, first in zip(parts, firsts, strict=False)])
    count, merge = int(firsts[-1]), merge_of(network)
    step = max(1, len(points) // max(1, merge.sample * count))
    rows = np.union1d(np.arange(0, len(points), step), np.unique(labels, return_index=True)[1])
    mean = points.mean(0)
    x = (points[rows] - mean) / (np.abs(points - mean).max(initial=0.0) or 1.0)
    better = exchanged(
        torch.from_numpy(x),
        torch.from_numpy(weights[rows] / weights.mean()),
        torch.tensor([len(rows)]),
        torch.from_numpy(labels[rows]),
        torch.tensor([count]),
        merge,
        kicks=True,
    ).numpy()
    centres = _Clusters(points[rows], weights[rows], better, count).centres()
    return _Clusters(points, weights, lloyd(points, weights, centres, rounds=0).labels, count)


def _settled(
    found: _Clusters, k: int, network: DiCoNet, seed: int | None
) -> tuple[np.ndarray, float, int]:
    """Centres after Lloyd's algorithm on the whole sample, their cost on it, and its size."""
    points, weights = found.points, found.weights
    if found.count < k:  # a cell had fewer points than clusters
        found = _by_network(points, weights, k, network, seed)
    labels = lloyd(points, weights, found.centres(), rounds=_ROUNDS, labels=found.labels).labels
    centres = _Clusters(points, weights, labels, k).centres()
    cost = float(weights @ np.square(points - centres[labels]).sum(1))
    return centres, cost, len(points)
