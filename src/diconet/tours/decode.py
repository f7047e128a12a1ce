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
from diconet.tours.kicks import kicked
from diconet.tours.lin_kernighan import lin_kernighan
from diconet.tours.metric import Metric, tour_length
from diconet.tours.two_opt import two_opt, two_opt_in_place

Refine = Literal["none", "2opt", "lk"]


def greedy_tour(metric: Metric, edges: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """The tour that takes the best edges first and joins what is left at the nearest ends."""
    return join_nearest(metric, greedy_fragments(len(metric), edges, scores))


def searched_tour(
    metric: Metric, edges: np.ndarray, scores: np.ndarray, *, share: float = 0.6, seed: int = 0
) -> np.ndarray:
    """The tour of the greedy fragments in the best order that a search over their ends finds.

    Only the first `share` of a tour's edges is taken greedily: what comes late is what greedy gets
    wrong, and no search over ends could take it back.
    """
    fragments = greedy_fragments(len(metric), edges, scores, share)
    return join_by_search(metric, fragments, seed=seed)


def best_tour(
    metric: Metric,
    edges: np.ndarray,
    scores: np.ndarray,
    *,
    samples: int,
    noise: float = 1.5,
    near: np.ndarray | None = None,
    seed: int = 0,
) -> np.ndarray:
    """The shortest of `samples` greedy tours on scores with Gaussian noise; the first has none.

    A tenth of them are drawn afresh; each of the others keeps the noise of the best so far but for
    the edges around one city, as what greedy does with an edge depends on little else. With
    neighbour lists, all are refined by 2-opt and Or-opt before they compete.
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
    shortest = np.inf
    best = np.empty(num, dtype=np.int32)
    key = -scores
    best_key = key.copy()
    for sample in range(samples):
        if sample > 0:
            here = _somewhere(x, y, rng, afresh=sample <= samples // 10)
            for e in range(len(scores)):
                key[e] = best_key[e]
                if here[edges[e, 0]] or here[edges[e, 1]]:
                    key[e] = noise * rng.standard_normal() - scores[e]
        link = np.full((num, 2), -1, dtype=np.int32)
        other = np.arange(num).astype(np.int32)
        take_edges(edges, np.argsort(key), link, other, num)
        join_few(x, y, link, other)
        tour = walk(link)
        if near.shape[1]:
            two_opt_in_place(x, y, code, mate, near, tour)
        length = tour_length(x, y, code, mate, tour)
        if length < shortest:
            shortest = length
            best = tour
            best_key[:] = key
    return best


@njit(cache=True)
@no_type_check
def _somewhere(x, y, rng, afresh):
    """Which cities lie around one at random: about a seventh of all, 50 at most; or all."""
    num = len(x)
    many = min(max(5, num // 7), 50)
    if afresh or many >= num:
        return np.ones(num, dtype=np.bool_)
    centre = int(rng.random() * num)
    gap = (x - x[centre]) ** 2 + (y - y[centre]) ** 2
    return gap <= np.partition(gap, many - 1)[many - 1]


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
        tour = lin_kernighan(metric, near, tour)
        return kicked(metric, near, tour, kicks=kicks, seconds=seconds, seed=seed)
    return np.asarray(tour)
