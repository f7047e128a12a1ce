"""Candidate neighbours of each city, the only ones that local search considers."""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from numba import njit
from scipy.spatial import Delaunay, QhullError, cKDTree

from diconet.core.compiled import KERNEL

_MANY = 10_000


def near_lists(cities: np.ndarray, slots: int) -> np.ndarray:
    """For each city, its `slots` nearest others, nearest first (fewer if there are fewer)."""
    num = len(cities)
    slots = min(slots, num - 1)
    if slots < 1:
        return np.zeros((num, 0), dtype=np.int32)
    workers = -1 if num > _MANY else 1  # for few cities, starting threads takes longer
    found = np.asarray(cKDTree(cities).query(cities, k=slots + 1, workers=workers)[1])
    own = found == np.arange(num)[:, None]
    # Among copies of a city it may not find itself; then drop the farthest found.
    drop = np.where(own.any(1), own.argmax(1), slots)
    keep = np.arange(slots + 1)[None] != drop[:, None]
    return found[keep].reshape(num, slots).astype(np.int32)


def candidate_lists(
    cities: np.ndarray, likely: np.ndarray | None = None, *, near: int = 5, most: int = 12
) -> np.ndarray:
    """For each city, `near` near others, then those across Delaunay edges by length; -1 at ends.

    In a cluster the nearest are all in the same cluster; only the triangulation leads out of it.
    With `likely`, these replace the nearest, in their order: a search tries the first of a list
    most.
    """
    num = len(cities)
    first = near_lists(cities, near) if likely is None else likely.astype(np.int32)
    if first.shape[1] == num - 1:
        return near_lists(cities, num - 1)
    starts, others = _triangulated(cities)
    lists = np.full((num, most), -1, dtype=np.int32)
    _fill(np.ascontiguousarray(cities, dtype=np.float64), first, starts, others, lists)
    return lists


@njit(**KERNEL)
@no_type_check
def _fill(cities, first, starts, others, lists):
    """Fills each list with its first others, then with its Delaunay neighbours, nearest first."""
    num, most = lists.shape
    gap = np.empty(most)
    for city in range(num):
        many = 0
        for other in first[city]:
            if other >= 0 and other != city and many < most:
                lists[city, many] = other
                many += 1
        fixed = many
        for other in others[starts[city] : starts[city + 1]]:
            known = False
            for k in range(fixed):
                known = known or lists[city, k] == other
            if known:
                continue
            far = np.hypot(cities[city, 0] - cities[other, 0], cities[city, 1] - cities[other, 1])
            k = many
            while k > fixed and gap[k - 1] > far:
                if k < most:
                    gap[k] = gap[k - 1]
                    lists[city, k] = lists[city, k - 1]
                k -= 1
            if k < most:
                gap[k] = far
                lists[city, k] = other
                many = min(many + 1, most)


def _triangulated(cities: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The start of each city's Delaunay neighbours, and all of them; none for too few cities.

    Cities are joggled by about rounding error: many on one circle would take quadratic time.
    """
    try:
        starts, others = Delaunay(cities, qhull_options="Qbb Q12 QJ").vertex_neighbor_vertices
    except QhullError:
        return np.zeros(len(cities) + 1, dtype=np.int32), np.empty(0, dtype=np.int32)
    return starts, others
