"""Paths that grow into a tour: take edges best first, then join the ends that are left."""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from numba import njit
from scipy.spatial import cKDTree

from diconet.tours.kicks import kicked
from diconet.tours.metric import Metric
from diconet.tours.near import near_lists
from diconet.tours.two_opt import two_opt

_FEW = 300  # so many ends are joined by looking at every pair of them
_KICKS_AN_END = 5


def greedy_fragments(
    num: int, edges: np.ndarray, scores: np.ndarray, share: float = 1.0
) -> np.ndarray:
    """Edges taken best first unless a city would get three or a cycle would close.

    Ends when there are as many as `share` of a tour. Gives for every city its two neighbours, -1
    where there is none yet.
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
    """The far end of the path that each end is of; a lone city is its own."""
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


@njit(cache=True)
@no_type_check
def join_few(x, y, link, other):
    """Joins paths end to end, always the two nearest ends, looking at every pair of ends."""
    ends = np.empty(len(link), dtype=np.int32)
    many = 0
    for city in range(len(link)):
        if link[city, 1] < 0:
            ends[many] = city
            many += 1
    pairs = np.empty((many * (many - 1) // 2, 2), dtype=np.int32)
    gaps = np.empty(len(pairs))
    at = 0
    for i in range(many):
        for j in range(i):
            a, b = ends[i], ends[j]
            pairs[at, 0], pairs[at, 1] = a, b
            gaps[at] = (x[a] - x[b]) ** 2 + (y[a] - y[b]) ** 2
            at += 1
    take_edges(pairs, np.argsort(gaps), link, other, len(link))


def join_nearest(metric: Metric, link: np.ndarray) -> np.ndarray:
    """A tour: paths joined at near ends, in rounds over the ends that are left."""
    link = link.copy()
    other = far_ends(link)
    while True:
        ends = np.flatnonzero(link[:, 1] < 0)
        if len(ends) <= _FEW:
            join_few(metric.x, metric.y, link, other)
            return walk(link)
        places = np.stack([metric.x[ends], metric.y[ends]], 1)
        gaps, found = map(np.asarray, cKDTree(places).query(places, k=8))
        edges = np.stack([np.repeat(ends, 7), ends[found[:, 1:].ravel()]], 1)
        order = np.argsort(gaps[:, 1:].ravel())
        take_edges(edges.astype(np.int32), order, link, other, len(link))


def join_by_search(metric: Metric, link: np.ndarray, *, seed: int = 0) -> np.ndarray:
    """A tour: the order and direction of the paths found by a search over their ends.

    The ends make a small travelling salesman problem of their own, in which each path is an edge
    that must stay.
    """
    rough = join_nearest(metric, link)
    is_end = link[:, 1] < 0
    ends = rough[is_end[rough]]
    if len(ends) < 6:
        return rough
    place = np.full(len(link), -1, dtype=np.int64)
    place[ends] = np.arange(len(ends))
    mate = place[far_ends(link)[ends]]
    among = metric.ends(ends, mate)
    near = near_lists(np.stack([among.x, among.y], 1), 8)
    order = two_opt(among, near, np.arange(len(ends)))
    order = kicked(among, near, order, kicks=_KICKS_AN_END * len(ends), seed=seed)
    return _spell_out(link, ends[order], far_ends(link))


@njit(cache=True)
@no_type_check
def _spell_out(link, ends, other):
    """The whole tour from the order of the paths' ends."""
    many = len(ends)
    first = 0
    if many > 1 and other[ends[0]] != ends[1] and other[ends[0]] != ends[0]:
        first = 1  # the tour enters the first path at its end in the last place
    tour = np.empty(len(link), dtype=np.int32)
    size = 0
    step = first
    while step < many + first and size < len(link):
        here = ends[step % many]
        last = other[here]
        step += 1 if last == here else 2
        previous = -1
        while True:
            tour[size] = here
            size += 1
            if here == last:
                break
            onward = link[here, 0] if link[here, 0] != previous else link[here, 1]
            previous, here = here, onward
    return tour
