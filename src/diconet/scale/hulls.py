"""Hulls of any number of points: corners of each leaf, merged up a tree, proven at every node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from diconet.core.model import DiCoNet
from diconet.problems.hull.certificate import exact_hull
from diconet.problems.hull.solve import area
from diconet.problems.hull.solve import convex_hull as hull_in_memory
from diconet.problems.solution import Solution
from diconet.scale.chunks import ROW_BITS, Chunks
from diconet.scale.work import gathered, reduced

_ROUNDING = 1e-14
"""Above the largest rounding error of a point's side of an edge, relative to the squared extent."""


@dataclass(frozen=True, eq=False, repr=False)
class LargeHull(Solution):
    """The hull of `size` points: `indices` of its `corners`, counter-clockwise from the lowest.

    It is exact, whatever the chunks, their order and the number of workers: of equal points the
    first stands for all, and points on an edge are not corners. `value` is the area.
    """

    size: int
    indices: np.ndarray
    corners: np.ndarray
    exact: bool = True

    def quality(self) -> str:
        """The number of corners, which are certainly right."""
        return f"{len(self.indices)} corners of {self.size} points, exact"

    def record(self) -> dict[str, Any]:
        """Points, area and corners."""
        return {
            "points": self.size,
            "value": self.value,
            "corners": len(self.indices),
            "exact": self.exact,
            "indices": self.indices.tolist(),
        }

    def rows(self) -> Iterator[Sequence[Any]]:
        """The corners in order, with their coordinates."""
        yield "index", "x", "y"
        for index, corner in zip(self.indices.tolist(), self.corners.tolist(), strict=True):
            yield index, *corner


@dataclass(frozen=True, eq=False)
class _Corners:
    """Corners of some leaves, counter-clockwise, with their addresses, and the leaves' sizes."""

    points: np.ndarray
    address: np.ndarray
    sizes: np.ndarray


def convex_hull(
    points: Any,
    *,
    model: str | Path | DiCoNet | None = None,
    seed: int | None = None,
    columns: Sequence[str] | None = None,
) -> LargeHull:
    """The hull of a Dask array or dataframe, or of files that match a pattern.

    `columns` selects the coordinates, by name or number from 1, if they are not x and y. The
    network merges at inner nodes; wrong answers are repaired in exact arithmetic, so that every
    node has its true hull.
    """
    chunks = Chunks.of(points, "points", ("x", "y"), columns)
    found: _Corners = reduced(_leaf, partial(_merge, model=model, seed=seed), chunks, "hull")
    if len(found.points) == 0:
        raise ValueError("points must hold at least 1 row; got none.")
    row = found.address & ((1 << ROW_BITS) - 1)
    index = (np.cumsum(found.sizes) - found.sizes)[found.address >> ROW_BITS] + row
    first = int(index.argmin())
    index, corners = np.roll(index, -first), np.roll(found.points, -first, axis=0)
    return LargeHull(area(found.points), (), int(found.sizes.sum()), index, corners, model=model)


def _leaf(rows: np.ndarray, number: int) -> _Corners:
    if rows.shape[1] != 2:
        raise ValueError(f"points must have 2 columns; got {rows.shape[1]}.")
    kept = np.flatnonzero(~_deep_inside(rows))
    corners = kept[exact_hull(rows[kept])]
    return _Corners(rows[corners], (number << ROW_BITS) + corners, np.array([len(rows)]))


def _merge(parts: list[_Corners], model: Any, seed: int | None) -> _Corners:
    found = gathered(parts)
    points = found.points
    if len(parts) == 1 or len(points) == 0:
        return found
    corners = hull_in_memory(points, repair=True, model=model, seed=seed).indices
    # Start at the leftmost corner, so that the area is the same to the last bit.
    start = np.lexsort((points[corners, 1], points[corners, 0]))[0]
    corners = np.roll(corners, -int(start))
    return replace(found, points=points[corners], address=found.address[corners])


def _deep_inside(points: np.ndarray) -> np.ndarray:
    """Which points are certainly inside the polygon of the extreme points in eight directions."""
    if len(points) < 9:
        return np.zeros(len(points), dtype=bool)
    with np.errstate(over="ignore", invalid="ignore"):
        x, y = points[:, 0], points[:, 1]
        ways = (x, x + y, y, y - x)
        ends = [int(way.argmax()) for way in ways] + [int(way.argmin()) for way in ways]
        x, y = x - points[ends[0], 0], y - points[ends[0], 1]
        inside = np.ones(len(points), dtype=bool)
        extent = max(float(np.ptp(x)), float(np.ptp(y)))
        for a, b in zip(ends, [*ends[1:], ends[0]], strict=True):
            if (points[a] != points[b]).any():
                along = (x[b] - x[a]) * (y - y[a])
                along -= (y[b] - y[a]) * (x - x[a])
                inside &= along > _ROUNDING * extent * extent
    return inside
