"""From scores of edges to a tour: the best of many noisy greedy tries, or one joined by search."""

from __future__ import annotations

from typing import Literal, no_type_check

import numpy as np
from numba import njit

from diconet.tours.fragments import (
    greedy_fragments,
    join_by_search,
    join_few,
    join_nearest,
    take_edges,
    walk,
)
from diconet.tours.lin_kernighan import lin_kernighan
from diconet.tours.metric import Metric, tour_length
from diconet.tours.two_opt import two_opt, two_opt_in_place

Refine = Literal["none", "2opt", "lk"]


def greedy_tour(metric: Metric, edges: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """The tour that takes the best edges first and joins what is left at the nearest ends."""
    return join_nearest(metric, greedy_fragments(len(metric), edges, scores))


def searched_tour(
    metric: Metric, edges: np.ndarray, scores: np.ndarray, *, seed: int = 0
) -> np.ndarray:
    """The tour of the greedy fragments in the best order that a search over their ends finds."""
    return join_by_search(metric, greedy_fragments(len(metric), edges, scores), seed=seed)


def best_tour(
    metric: Metric,
    edges: np.ndarray,
    scores: np.ndarray,
    *,
    samples: int,
    noise: float = 1.0,
    near: np.ndarray | None = None,
    seed: int = 0,
) -> np.ndarray:
    """The shortest of `samples` greedy tours on scores with Gaussian noise; the first has none.

    With neighbour lists, every one of them is refined by 2-opt and Or-opt before they compete.
    """
    if near is None:
        near = np.zeros((len(metric), 0), dtype=np.int32)
    if len(metric) <= 3:
        return np.arange(len(metric), dtype=np.int32)
    args = (metric.x, metric.y, metric.code, metric.mate, edges, scores.astype(np.float64))
    rng = np.random.default_rng(seed)
    return np.asarray(_best_tour(*args, samples, noise, near, rng))


@njit(cache=True)
@no_type_check
def _best_tour(x, y, code, mate, edges, scores, samples, noise, near, rng):
    num = len(x)
    best = np.inf
    kept = np.empty(num, dtype=np.int32)
    key = np.empty(len(scores))
    for sample in range(samples):
        for e in range(len(scores)):
            key[e] = -scores[e]
            if sample > 0:
                key[e] += noise * rng.standard_normal()
        link = np.full((num, 2), -1, dtype=np.int32)
        other = np.arange(num).astype(np.int32)
        take_edges(edges, np.argsort(key), link, other)
        join_few(x, y, link, other)
        tour = walk(link)
        if near.shape[1]:
            two_opt_in_place(x, y, code, mate, near, tour)
        length = tour_length(x, y, code, mate, tour)
        if length < best:
            best = length
            kept = tour
    return kept


def refined(
    metric: Metric,
    near: np.ndarray,
    tour: np.ndarray,
    refine: Refine,
    *,
    kicks_a_city: float = 1.0,
    seconds: float | None = None,
    seed: int = 0,
) -> np.ndarray:
    """The tour as it is, or made shorter; never longer."""
    if refine == "2opt":
        return two_opt(metric, near, tour)
    if refine == "lk":
        kicks = int(kicks_a_city * len(tour))
        return lin_kernighan(metric, near, tour, kicks=kicks, seconds=seconds, seed=seed)
    return np.asarray(tour)
