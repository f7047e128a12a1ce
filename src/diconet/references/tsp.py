"""Other ways to a tour: the solver that makes our labels, and what a user would pick instead."""

from __future__ import annotations

import fast_tsp
import numpy as np

_EXACT_UP_TO = 12
_SEARCH_FROM = 21


def fast_tsp_tour(cities: np.ndarray, seconds: float) -> np.ndarray:
    """A tour by fast-tsp (Lin-Kernighan with kicks), exact up to 12 cities."""
    num = len(cities)
    if num <= 3:
        return np.arange(num)
    rows = np.arange(num)
    if _EXACT_UP_TO < num < _SEARCH_FROM:
        # Up to 20 cities fast-tsp runs a dynamic programme, 70 ms at 20: copies of a city lead it
        # to its search, which is optimal there just as well and takes as long as we say.
        rows = np.concatenate([rows, np.zeros(_SEARCH_FROM - num, dtype=rows.dtype)])
    tour = rows[np.array(fast_tsp.find_tour(_whole_distances(cities[rows]), seconds))]
    _, first = np.unique(tour, return_index=True)
    return tour[np.sort(first)]


def _whole_distances(cities: np.ndarray, largest: float = 65_535.0) -> np.ndarray:
    """All distances as whole numbers, as fine as the 16 bits of fast-tsp allow."""
    gaps = cities[:, None] - cities[None]
    distances = np.sqrt((gaps**2).sum(-1))
    return np.rint(distances * (largest / max(distances.max(), 1e-30))).astype(np.int32)
