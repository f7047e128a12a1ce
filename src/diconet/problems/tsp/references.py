"""Reference tours: the solver that makes our labels, and the nearest-neighbour rule."""

from __future__ import annotations

from typing import no_type_check

import fast_tsp
import numpy as np
from numba import njit
from scipy.spatial.distance import cdist

from diconet.core.compiled import KERNEL

_EXACT_UP_TO = 12
_SEARCH_FROM = 21


def fast_tsp_tour(cities: np.ndarray, seconds: float) -> np.ndarray:
    """A tour by fast-tsp (Lin-Kernighan with kicks), exact up to 12 cities."""
    num = len(cities)
    if num <= 3:
        return np.arange(num)
    rows = np.arange(num)
    if _EXACT_UP_TO < num < _SEARCH_FROM:
        # Up to 20 cities fast-tsp runs a dynamic programme, 70 ms at 20; copies of a city make it
        # use its search instead, which is also optimal there and takes the given time.
        rows = np.concatenate([rows, np.zeros(_SEARCH_FROM - num, dtype=rows.dtype)])
    tour = rows[np.array(fast_tsp.find_tour(whole_distances(cities[rows]), seconds))]
    _, first = np.unique(tour, return_index=True)
    return tour[np.sort(first)]


def whole_distances(cities: np.ndarray) -> np.ndarray:
    """All distances as whole numbers, as precise as the 16 bits of fast-tsp allow."""
    distances = cdist(cities, cities)
    distances *= 65_535 / max(float(distances.max()), 1e-30)
    return np.rint(distances).astype(np.int32)


def nearest_neighbour_tour(cities: np.ndarray) -> np.ndarray:
    """From city 0 always on to the nearest unvisited city."""
    x, y = np.ascontiguousarray(cities.T, dtype=np.float64)
    return np.asarray(_nearest_neighbour(x, y))


@njit(**KERNEL)
@no_type_check
def _nearest_neighbour(x, y):
    n = len(x)
    left = np.arange(n)
    tour = np.zeros(n, dtype=np.int64)
    many = n
    place = 0
    for step in range(n):
        here = left[place]
        tour[step] = here
        many -= 1
        left[place] = left[many]
        best = np.inf
        for k in range(many):
            gap = (x[here] - x[left[k]]) ** 2 + (y[here] - y[left[k]]) ** 2
            if gap < best:
                best, place = gap, k
    return tour
