"""Tours from edge scores: edges are taken best first, then the remaining paths are joined."""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from numba import njit
from scipy.spatial import cKDTree

from diconet.core.compiled import KERNEL
from diconet.problems.tsp.search.metric import Metric

_FEW = 300  # up to this many ends, every pair of them is examined


def greedy_tour(metric: Metric, edges: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """The tour that takes the best edges first and joins the remaining paths at near ends."""
    link = np.full((len(metric), 2), -1, dtype=np.int32)
    other = np.arange(len(metric), dtype=np.int32)
    take_edges(edges, np.argsort(-scores, kind="stable"), link, other)
    return join_nearest(metric, link, other)


@njit(**KERNEL)
@no_type_check
def take_edges(edges, order, link, other):
    """Adds edges in order, unless a city would get three or a cycle would close.

    `link` holds the two neighbours of every city, -1 where there is none yet; `other` the far end
    of every end's path.
    """
    for rank in range(len(order)):
        a, b = edges[order[rank], 0], edges[order[rank], 1]
        if link[a, 1] >= 0 or link[b, 1] >= 0 or other[a] == b or a == b:
            continue
        for here, there in ((a, b), (b, a)):
            if link[here, 0] < 0:
                link[here, 0] = there
            else:
                link[here, 1] = there
        far_a, far_b = other[a], other[b]
        other[far_a] = far_b
        other[far_b] = far_a


def join_nearest(metric: Metric, link: np.ndarray, other: np.ndarray) -> np.ndarray:
    """A tour: paths joined at near ends, in rounds over the ends that are left."""
    while True:
        ends = np.flatnonzero(link[:, 1] < 0)
        places, is_last = metric.xy[ends], len(ends) <= _FEW
        if is_last:
            one, two = np.tril_indices(len(ends), -1)
            gaps = ((places[one] - places[two]) ** 2).sum(1)
        else:
            far, found = map(np.asarray, cKDTree(places).query(places, k=8))
            one, two, gaps = np.repeat(np.arange(len(ends)), 7), found[:, 1:].ravel(), far[:, 1:]
        edges = ends[np.stack([one, two], 1)].astype(np.int32)
        take_edges(edges, np.argsort(gaps.ravel()), link, other)
        if is_last:
            return walk(link)


@njit(**KERNEL)
@no_type_check
def walk(link):
    """The cities in order, along a single path or cycle."""
    num = len(link)
    tour = np.empty(num, dtype=np.int32)
    here = 0
    for city in range(num):
        if link[city, 1] < 0:
            here = city
            break
    previous = -1
    for place in range(num):
        tour[place] = here
        onward = link[here, 0] if link[here, 0] != previous else link[here, 1]
        previous, here = here, onward
    return tour


def strip_tour(cities: np.ndarray) -> np.ndarray:
    """The tour up and down strips of the map, for when there is no time for anything else."""
    wide = max(float(np.ptp(cities[:, 0])), np.finfo(np.float64).tiny)
    many = max(1, round((len(cities) / 3) ** 0.5))
    strip = np.minimum((cities[:, 0] - cities[:, 0].min()) / wide * many, many - 1).astype(np.int64)
    return np.lexsort((np.where(strip % 2 == 0, cities[:, 1], -cities[:, 1]), strip))
