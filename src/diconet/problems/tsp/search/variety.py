"""How often each edge occurs among many tours, and what replacing edges costs in variety."""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from numba import njit

from diconet.core.compiled import INNER, KERNEL
from diconet.problems.tsp.search.exchange import held

_SLOTS = 12  # neighbours of a city whose edges are counted


@njit(**KERNEL)
@no_type_check
def frequencies(tours, links):
    """Each city's neighbours on all tours, and the number of tours with each of these edges."""
    n = tours.shape[1]
    seen = np.full((n, _SLOTS), -1, dtype=np.int32)
    times = np.zeros((n, _SLOTS), dtype=np.int32)
    edges = np.empty((n, 2), dtype=np.int32)
    for which in range(len(tours)):
        tour, link, many = tours[which], links[which], 0
        for place in range(n):
            edges[many, 0], edges[many, 1] = tour[place - 1], tour[place]
            if not held(link, tour[place - 1], tour[place]):
                many += 1
        count(seen, times, edges, many, 1)
    return seen, times


@njit(**INNER)
@no_type_check
def count(seen, times, edges, many, change):
    """Adds `change` to the counts of edges, except rare ones for which there is no slot."""
    for i in range(many):
        for a, b in ((edges[i, 0], edges[i, 1]), (edges[i, 1], edges[i, 0])):
            k = _slot(seen, times, a, b)
            if k >= 0 and (change > 0 or seen[a, k] == b):
                seen[a, k] = b
                times[a, k] = max(times[a, k] + change, 0)


@njit(**INNER)
@no_type_check
def loss(seen, times, surprise, removed, added, many):
    """By how much replacing edges in one tour lowers the entropy of the edges of all tours.

    `surprise[i]` is what an edge that i tours have contributes.
    """
    total = 0.0
    for i in range(many):
        now = _times(seen, times, removed[i, 0], removed[i, 1])
        total += surprise[now] - surprise[max(now - 1, 0)]
        now = _times(seen, times, added[i, 0], added[i, 1])
        total += surprise[now] - surprise[now + 1]
    return total


@njit(**INNER)
@no_type_check
def _times(seen, times, a, b):
    """The number of tours that have an edge."""
    k = _slot(seen, times, a, b)
    return times[a, k] if k >= 0 and seen[a, k] == b else 0


@njit(**INNER)
@no_type_check
def _slot(seen, times, a, b):
    """Where the edge a-b is counted at a; if it is not, a free slot, or -1."""
    free = -1
    for k in range(_SLOTS):
        if seen[a, k] == b:
            return k
        if times[a, k] == 0:
            free = k
    return free
