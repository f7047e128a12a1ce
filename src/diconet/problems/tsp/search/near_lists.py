"""Where a city's neighbours on a tour may be: all that local search looks at."""

from __future__ import annotations

import numpy as np
from scipy.spatial import Delaunay, QhullError, cKDTree

_MANY = 10_000


def near_lists(cities: np.ndarray, slots: int) -> np.ndarray:
    """For each city, its `slots` nearest others, nearest first (fewer where there are fewer)."""
    num = len(cities)
    slots = min(slots, num - 1)
    if slots < 1:
        return np.zeros((num, 0), dtype=np.int32)
    workers = -1 if num > _MANY else 1  # to start threads takes longer than few cities do
    found = np.asarray(cKDTree(cities).query(cities, k=slots + 1, workers=workers)[1])
    own = found == np.arange(num)[:, None]
    # Among copies of a city it may not find itself; then the farthest found is left out.
    drop = np.where(own.any(1), own.argmax(1), slots)
    keep = np.arange(slots + 1)[None] != drop[:, None]
    return found[keep].reshape(num, slots).astype(np.int32)


def candidate_lists(
    cities: np.ndarray, likely: np.ndarray | None = None, *, near: int = 5, most: int = 12
) -> np.ndarray:
    """For each city, `near` near others and those across Delaunay edges, nearest first; -1 at ends.

    In a cluster the nearest are all of the same cluster, and no list would lead out of it but for
    the triangulation. With `likely`, these others take the place of the nearest.
    """
    num = len(cities)
    some = near_lists(cities, near) if likely is None else likely
    if some.shape[1] == num - 1:
        return near_lists(cities, num - 1)
    rows = np.repeat(np.arange(num), some.shape[1])
    pairs = np.concatenate([np.stack([rows, some.ravel()]), _triangulated(cities)], 1)
    pairs = pairs[:, (pairs[1] >= 0) & (pairs[0] != pairs[1])]
    rows, others = np.divmod(np.unique(pairs[0] * num + pairs[1]), num)
    gaps = np.linalg.norm(cities[rows] - cities[others], axis=1)
    order = np.lexsort((gaps, rows))
    rows, others = rows[order], others[order]
    count = np.bincount(rows, minlength=num)
    place = np.arange(len(rows)) - np.repeat(np.cumsum(count) - count, count)
    lists = np.full((num, min(most, int(count.max()))), -1, dtype=np.int32)
    kept = place < lists.shape[1]
    lists[rows[kept], place[kept]] = others[kept]
    return lists


def _triangulated(cities: np.ndarray) -> np.ndarray:
    """Both directions of every edge of the Delaunay triangulation; none of cities on a line."""
    try:
        starts, others = Delaunay(cities).vertex_neighbor_vertices
    except QhullError:
        return np.empty((2, 0), dtype=np.int64)
    rows = np.repeat(np.arange(len(cities)), np.diff(starts))
    return np.stack([rows, others.astype(np.int64)])
