"""The plane in cells of about as many points each: cuts found on a sample, used on all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Division:
    """Cuts at `places` along x or y of the plane turned by `angle`, in the order of a heap.

    Level j has 2**j nodes; after the last level every node is a cell.
    """

    angle: float
    along_y: np.ndarray
    places: np.ndarray

    @classmethod
    def of(
        cls, sample: np.ndarray, weights: np.ndarray, levels: int, angle: float = 0.0
    ) -> Division:
        """Medians of a weighted sample, each across the longer side of its node."""
        turned = _turned(sample, angle)
        along_y = np.zeros(2**levels - 1, dtype=bool)
        places = np.zeros(2**levels - 1)
        node = np.zeros(len(sample), dtype=np.int64)
        for number in range(len(places)):
            here = np.flatnonzero(node == number)
            if len(here) == 0:
                continue
            mine = turned[here]
            along_y[number] = np.ptp(mine[:, 1]) > np.ptp(mine[:, 0])
            along = mine[:, int(along_y[number])]
            order = np.argsort(along, kind="stable")
            reach = np.cumsum(weights[here][order])
            middle = min(int(np.searchsorted(reach, reach[-1] / 2)), len(here) - 1)
            places[number] = along[order[middle]]
            node[here] = 2 * number + 1 + (along > places[number])
        return cls(angle, along_y, places)

    def __len__(self) -> int:
        return len(self.places) + 1

    def cells(self, points: np.ndarray) -> np.ndarray:
        """The number of each point's cell."""
        turned = _turned(points, self.angle)
        node = np.zeros(len(points), dtype=np.int64)
        while len(points) and node[0] < len(self.places):
            along = np.where(self.along_y[node], turned[:, 1], turned[:, 0])
            node = 2 * node + 1 + (along > self.places[node])
        return node - len(self.places)


def _turned(points: np.ndarray, angle: float) -> np.ndarray:
    if angle == 0:
        return points
    x, y = points.T
    c, s = np.cos(angle), np.sin(angle)
    return np.column_stack([c * x + s * y, c * y - s * x])
