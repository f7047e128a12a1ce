"""Paths that grow into a tour: takes edges best first, then joins the remaining ends."""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from numba import njit
from scipy.spatial import cKDTree

from diconet.problems.tsp.search.metric import Metric

_FEW = 300  # up to this many ends, every pair of them is examined


def greedy_fragments(
    num: int, edges: np.ndarray, scores: np.ndarray, share: float = 1.0
) -> np.ndarray:
    """Edges taken best first unless a city would get three or a cycle would close.

    Stops at a `share` of the edges of a tour. Returns the two neighbours of every city, -1
    for none yet.
    """
    link = np.full((num, 2), -1, dtype=np.int32)
    other = np.arange(num, dtype=np.int32)
    take_edges(edges, np.argsort(-scores, kind="stable"), link, other, int(share * num))
    return link


@njit(cache=True)
@no_type_check
def take_edges(edges, order, link, other, most):
    """Adds up to `most` edges where they fit; `other` is the far end of every end's path."""
    taken = 0
    for rank in range(len(order)):
        if taken == most:
            break
        a, b = edges[order[rank], 0], edges[order[rank], 1]
        if link[a, 1] >= 0 or link[b, 1] >= 0 or other[a] == b or a == b:
            continue
        taken += 1
        for here, there in ((a, b), (b, a)):
            if link[here, 0] < 0:
                link[here, 0] = there
            else:
                link[here, 1] = there
        far_a, far_b = other[a], other[b]
        other[far_a] = far_b
        other[far_b] = far_a


@njit(cache=True)
@no_type_check
def far_ends(link):
    """The far end of each end's path; a single city is its own."""
    num = len(link)
    other = np.full(num, -1, dtype=np.int32)
    for start in range(num):
        if link[start, 1] >= 0 or other[start] >= 0:
            continue
        previous, here = -1, start
        while True:
            onward = link[here, 0] if link[here, 0] != previous else link[here, 1]
            if onward < 0 or (here != start and link[here, 1] < 0):
                break
            previous, here = here, onward
        other[start], other[here] = here, start
    return other


@njit(cache=True)
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


def join_few(xy: np.ndarray, link: np.ndarray, other: np.ndarray) -> None:
    """Joins paths end to end, always at the two nearest ends, examining every pair of ends."""
    ends = np.flatnonzero(link[:, 1] < 0)
    pairs = np.stack(np.tril_indices(len(ends), -1), 1)
    edges = ends[pairs].astype(np.int32)
    gaps = ((xy[edges[:, 0]] - xy[edges[:, 1]]) ** 2).sum(1)
    take_edges(edges, np.argsort(gaps), link, other, len(link))


def join_nearest(metric: Metric, link: np.ndarray) -> np.ndarray:
    """A tour from paths, joined at near ends in rounds over the remaining ends."""
    link = link.copy()
    other = far_ends(link)
    while True:
        ends = np.flatnonzero(link[:, 1] < 0)
        if len(ends) <= _FEW:
            join_few(metric.xy, link, other)
            return walk(link)
        places = metric.xy[ends]
        gaps, found = map(np.asarray, cKDTree(places).query(places, k=8))
        edges = np.stack([np.repeat(ends, 7), ends[found[:, 1:].ravel()]], 1)
        order = np.argsort(gaps[:, 1:].ravel())
        take_edges(edges.astype(np.int32), order, link, other, len(link))
