"""Beam search for a tour, city by city from city 0, as in the paper's appendix C."""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from numba import njit

from diconet.core.compiled import INNER, KERNEL
from diconet.problems.tsp.search.metric import Metric, tour_length

_UNLIKELY = -20.0  # the log-probability of a step that is in no list


def beam_tour(metric: Metric, near: np.ndarray, scores: np.ndarray, width: int = 40) -> np.ndarray:
    """The shortest of the `width` likeliest tours that remain at the end of the search.

    `near` lists the possible next cities of every city, `scores` their log-probabilities. A city
    with no next city left steps to the nearest unvisited one, so the answer is a permutation
    whatever the lists hold.
    """
    if width < 1:
        raise ValueError(f"width must be at least 1; got {width}.")
    if len(metric) <= 3:
        return np.arange(len(metric))
    args = (metric.xy, metric.code)
    found = _beam(*args, near.astype(np.int32), scores.astype(np.float64), width)
    return np.asarray(found, dtype=np.int64)


@njit(**KERNEL)
@no_type_check
def _beam(xy, code, near, scores, width):
    n, slots = near.shape
    paths = np.zeros((width, n), dtype=np.int32)
    seen = np.zeros((width, n), dtype=np.bool_)
    seen[0, 0] = True
    total = np.zeros(width)
    alive = 1
    offered = np.empty(width * max(slots, 1))
    parent = np.empty(len(offered), dtype=np.int32)
    city = np.empty(len(offered), dtype=np.int32)
    for step in range(1, n):
        many = 0
        for b in range(alive):
            here = paths[b, step - 1]
            before = many
            for slot in range(slots):
                there = near[here, slot]
                if not seen[b, there]:
                    offered[many] = total[b] + scores[here, slot]
                    parent[many] = b
                    city[many] = there
                    many += 1
            if many == before:
                offered[many] = total[b] + _UNLIKELY
                parent[many] = b
                city[many] = _nearest_unseen(xy, seen[b], here)
                many += 1
        best = _likeliest(offered[:many], width)
        alive = len(best)
        new_paths, new_seen = paths.copy(), seen.copy()
        for b in range(alive):
            new_paths[b, :step] = paths[parent[best[b]], :step]
            new_paths[b, step] = city[best[b]]
            new_seen[b] = seen[parent[best[b]]]
            new_seen[b, city[best[b]]] = True
        total[:alive] = offered[best]
        paths, seen = new_paths, new_seen
    shortest, kept = np.inf, 0
    for b in range(alive):
        length = tour_length(xy, code, paths[b])
        if length < shortest or (length == shortest and total[b] > total[kept]):
            shortest, kept = length, b
    return paths[kept]


@njit(**INNER)
@no_type_check
def _likeliest(offered, width):
    """The best `width` offers, in no order: sorting them all takes longer."""
    if len(offered) <= width:
        return np.arange(len(offered))
    least = np.partition(offered, len(offered) - width)[len(offered) - width]
    best = np.empty(width, dtype=np.int64)
    better = np.flatnonzero(offered > least)
    best[: len(better)] = better
    best[len(better) :] = np.flatnonzero(offered == least)[: width - len(better)]
    return best


@njit(**INNER)
@no_type_check
def _nearest_unseen(xy, seen, here):
    best, found = np.inf, here
    for there in range(len(xy)):
        gap = (xy[here, 0] - xy[there, 0]) ** 2 + (xy[here, 1] - xy[there, 1]) ** 2
        if not seen[there] and gap < best:
            best, found = gap, there
    return found
