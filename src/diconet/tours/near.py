"""Each city's nearest others, which is all that local search looks at."""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree


def near_lists(cities: np.ndarray, slots: int) -> np.ndarray:
    """For each city, its `slots` nearest others, nearest first (fewer where there are fewer)."""
    num = len(cities)
    slots = min(slots, num - 1)
    if slots < 1:
        return np.zeros((num, 0), dtype=np.int32)
    found = np.asarray(cKDTree(cities).query(cities, k=slots + 1)[1])
    own = found == np.arange(num)[:, None]
    # Among copies of a city it may not find itself; then the farthest found is left out.
    drop = np.where(own.any(1), own.argmax(1), slots)
    keep = np.arange(slots + 1)[None] != drop[:, None]
    return found[keep].reshape(num, slots).astype(np.int32)
