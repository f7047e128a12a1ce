"""Convex hulls of a user's own points, with a certificate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from diconet.core.host import to_host
from diconet.core.model import DiCoNet
from diconet.core.sets import SetBatch
from diconet.plot.stages import Stage
from diconet.problems.hull.certificate import is_hull, turns
from diconet.problems.hull.problem import PROBLEM
from diconet.problems.hull.task import hull_of
from diconet.problems.hull.triples import TripleMerge
from diconet.problems.inputs import as_points, check_seed, is_many, tree_seeds
from diconet.problems.networks import as_network
from diconet.problems.solution import Model, Partitions, Solution, labels_of


@dataclass(frozen=True, eq=False, repr=False)
class Hull(Solution):
    """A convex hull: `indices` of its corners, counter-clockwise from the lowest.

    `exact` is true only if it was proved that every point lies inside and that the polygon turns
    left at every corner; `repaired` says that Qhull answered where the network did not get there.
    `value` is the area. Points that lie on an edge, and all but the first of equal points, are not
    corners.
    """

    points: np.ndarray
    indices: np.ndarray
    exact: bool
    repaired: bool = False

    def quality(self) -> str:
        """The number of corners, and whether they are certainly right."""
        certainty = "certified exact" if self.exact else "not certified"
        return f"{len(self.indices)} corners, {certainty}"

    def record(self) -> dict[str, Any]:
        """Points, area, corners, and whether they were proved right."""
        return {
            "points": len(self.points),
            "value": self.value,
            "corners": len(self.indices),
            "exact": self.exact,
            "repaired": self.repaired,
            "indices": self.indices.tolist(),
        }

    def rows(self) -> Iterator[Sequence[Any]]:
        """The corners in order, with their coordinates."""
        yield "index", "x", "y"
        for index in self.indices.tolist():
            yield index, *self.points[index].tolist()

    def title(self) -> str:
        return "convex hull"

    def plane(self) -> np.ndarray:
        return self.points

    def answer_stage(self) -> Stage:
        return Stage("", np.zeros(len(self.points), dtype=np.int64), [(0, self.indices)])

    def part_stage(self, title: str, parts: np.ndarray) -> Stage:
        """Each part with its own hull, as the same network finds it."""
        numbers = np.unique(parts).tolist()
        if len(numbers) == 1:
            return Stage(title, parts, [(0, self.indices)])
        members = [np.flatnonzero(parts == number) for number in numbers]
        hulls = convex_hull([self.points[rows] for rows in members], model=self.model)
        assert isinstance(hulls, list)
        ways = zip(numbers, members, hulls, strict=True)
        return Stage(title, parts, [(n, rows[hull.indices]) for n, rows, hull in ways])


def convex_hull(
    points: Any,
    *,
    repair: bool = False,
    model: str | Path | DiCoNet | None = None,
    seed: int | None = None,
    device: str | torch.device = "cpu",
) -> Hull | list[Hull]:
    """The convex hull of (n, 2) points, or of each of several such arrays (solved as one batch).

    A network answers; the answer's `exact` says whether it was then proved right. With `repair`,
    Qhull takes over where it was not, so that only rounding can be wrong. `seed` draws the
    network's trees at random instead of taking the likeliest.
    """
    many = is_many(points, dims=2)
    clouds = [
        _Cloud.of(as_points(array, "points", columns=2)) for array in (points if many else [points])
    ]
    network = as_network(PROBLEM, model, device)
    found = _solve(clouds, network, check_seed(seed), device)
    hulls = [
        _certified(cloud, *answer, repair, model)
        for cloud, answer in zip(clouds, found, strict=True)
    ]
    return hulls if many else hulls[0]


@dataclass(frozen=True, eq=False)
class _Cloud:
    """Points, the `first` of every group of equal ones, and which of those stands for each point.

    `ends` are the first and the last point by x, then y.
    """

    points: np.ndarray
    first: np.ndarray
    stand_in: np.ndarray
    ends: np.ndarray

    @classmethod
    def of(cls, points: np.ndarray) -> _Cloud:
        order = np.lexsort((points[:, 1], points[:, 0]))  # stable: equal points in order of index
        ranked = points[order]
        is_new = np.ones(len(points), dtype=bool)
        is_new[1:] = (ranked[1:] != ranked[:-1]).any(1)
        group = np.maximum.accumulate(np.where(is_new, np.arange(len(points)), 0))
        first_of = np.empty_like(order)
        first_of[order] = order[group]
        is_first = first_of == np.arange(len(points))
        stand_in = (np.cumsum(is_first) - 1)[first_of]
        return cls(points, np.flatnonzero(is_first), stand_in, first_of[order[[0, -1]]])

    def boxed(self) -> np.ndarray:
        """The distinct points in the unit square: moved and scaled, which hulls do not mind."""
        half = self.points[self.first] / 2  # so that the widest range of doubles does not overflow
        low = half.min(0)
        span = half.max(0) - low
        return (half - low) / np.where(span > 0, span, 1)

    @property
    def is_flat(self) -> bool:
        """Whether all points lie on one line (or are one)."""
        low, high = self.points[self.ends]

        def on_line(some: np.ndarray) -> bool:
            start, stop = np.broadcast_to(low, some.shape), np.broadcast_to(high, some.shape)
            return not turns(start, stop, some).any()

        return on_line(self.points[:64]) and on_line(self.points)


def _solve(
    clouds: Sequence[_Cloud], network: DiCoNet, seed: int | None, device: str | torch.device
) -> list[tuple[np.ndarray, Partitions]]:
    """What the network says: corners in order, and the partition of the points at every level."""
    # Only the triple merge looks at points in double precision; the others were not made for it.
    precise = isinstance(network.merge, TripleMerge)
    dtype = torch.float64 if precise else torch.float32
    sets = SetBatch.of([torch.from_numpy(cloud.boxed()).to(device, dtype) for cloud in clouds])
    seeds = tree_seeds(seed, len(sets), device)
    with torch.inference_mode():
        outcome = network(sets, seeds)
    return [
        (cloud.first[to_host(answer)], labels.of_items(cloud.stand_in))
        for cloud, answer, labels in zip(
            clouds, outcome.solution.unpack(), labels_of(outcome.tree), strict=True
        )
    ]


def _certified(
    cloud: _Cloud, corners: np.ndarray, tree: Partitions, repair: bool, model: Model
) -> Hull:
    points = cloud.points
    corners = np.unique(cloud.ends) if cloud.is_flat else _without_straight(points, corners)
    exact = is_hull(points, corners)
    repaired = repair and not exact
    if repaired:
        corners = cloud.first[hull_of(_below_one(points[cloud.first]))]
        corners = _without_straight(points, corners)
        exact = is_hull(points, corners)
    corners = np.roll(corners, -int(corners.argmin()))
    area = _area(points[corners])
    return Hull(area, tree, points, corners, exact, repaired, model=model)


def _below_one(points: np.ndarray) -> np.ndarray:
    """Points times a power of two, which changes no digit, so that Qhull does not overflow."""
    return np.ldexp(points, -int(np.frexp(np.abs(points).max())[1]))


def _without_straight(points: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """The corners less those on the line between their neighbours."""
    while len(corners) > 2:
        polygon = points[corners]
        straight = turns(np.roll(polygon, 1, 0), polygon, np.roll(polygon, -1, 0)) == 0
        if not straight.any() or straight.all():
            break
        corners = corners[~straight]
    return corners


def _area(polygon: np.ndarray) -> float:
    """The area by the shoelace formula, on numbers of about 1 so that none overflows on the way."""
    half = polygon / 2 - polygon[0] / 2
    size = float(np.abs(half).max())
    if size == 0:
        return 0.0
    x, y = (half / size).T
    return 2 * float(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1))) * size * size
