"""Where a city's neighbours on a tour may be: all that local search looks at."""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

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
    cities: np.ndarray, likely: np.ndarray | None = None, *, near: int = 5, seen: int = 16
) -> np.ndarray:
    """For each city, `near` near others and the nearest in each quadrant, by distance; -1 at ends.

    In a cluster the nearest are all of the same cluster, and no list would lead out of it but for
    the quadrants. With `likely`, these others take the place of the nearest.
    """
    lists = near_lists(cities, seen)
    if lists.shape[1] <= near:
        return lists
    if likely is None:
        keep = np.zeros(lists.shape, dtype=bool)
        keep[:, :near] = True
    else:
        keep = (lists[:, :, None] == likely[:, None]).any(2)
    gap = cities[lists] - cities[:, None]
    quadrant = 2 * (gap[..., 0] >= 0) + (gap[..., 1] >= 0)
    for number in range(4):
        here = quadrant == number
        keep |= here & (np.cumsum(here, axis=1) == 1)
    width = int(keep.sum(1).max())
    order = np.argsort(~keep, axis=1, kind="stable")[:, :width]
    chosen = np.take_along_axis(lists, order, axis=1)
    return np.where(np.take_along_axis(keep, order, axis=1), chosen, -1).astype(np.int32)
