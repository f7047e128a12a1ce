"""Convex hulls of a user's points, with a certificate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack, overload

import numpy as np
import torch

from diconet.core.host import one_thread, to_host
from diconet.core.model import DiCoNet
from diconet.core.sets import SetBatch
from diconet.plot.stages import Stage
from diconet.problems.hull.certificate import exact_hull, is_hull, turns
from diconet.problems.hull.problem import PROBLEM
from diconet.problems.hull.sieve import may_be_corners
from diconet.problems.hull.triples import TripleMerge
from diconet.problems.inputs import (
    Asked,
    ManyPoints,
    Points,
    as_points,
    check_seed,
    is_many,
    tree_seeds,
)
from diconet.problems.networks import as_network
from diconet.problems.progress import tell
from diconet.problems.solution import Model, Partitions, Solution, handed_back, labels_of, numbered


@dataclass(frozen=True, eq=False, repr=False)
class Hull(Solution):
    """A convex hull: `indices` of its corners, counter-clockwise from the lowest.

    `exact` is true only if it was proven that every point lies inside and that the polygon turns
    left at every corner. `repaired` says that the network's own answer, `proposed`, was not proven,
    and that a classical algorithm in exact arithmetic answered instead. `value` is the area. Points
    on an edge, and all but the first of equal points, are not corners.
    """

    points: np.ndarray
    indices: np.ndarray
    exact: bool
    repaired: bool
    proposed: np.ndarray

    def quality(self) -> str:
        """The number of corners, and whether they are certainly right."""
        certainty = "certified exact" if self.exact else "not certified"
        certainty += " after repair" if self.repaired else ""
        return f"{len(self.indices)} corners, {certainty}"

    def record(self) -> dict[str, Any]:
        """Points, area, corners, and whether they were proven right."""
        return {
            "points": len(self.points),
            "value": self.value,
            "corners": len(self.indices),
            "exact": self.exact,
            "repaired": self.repaired,
            "indices": self.indices.tolist(),
        }

    def item_columns(self) -> dict[str, np.ndarray]:
        return {"x": self.points[:, 0], "y": self.points[:, 1]}

    def answer_columns(self) -> dict[str, Any]:
        """The index of each point along the hull, from 0; missing if it is not a corner."""
        return {"corner": numbered(self.indices, len(self.points))}

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
        hulls = convex_hull([self.points[rows] for rows in members], repair=False, model=self.model)
        assert isinstance(hulls, list)
        ways = zip(numbers, members, hulls, strict=True)
        return Stage(title, parts, [(n, rows[hull.indices]) for n, rows, hull in ways])


class _Options(Asked, total=False):
    repair: bool


@overload
def convex_hull(points: Points, **options: Unpack[_Options]) -> Hull: ...
@overload
def convex_hull(points: ManyPoints, **options: Unpack[_Options]) -> list[Hull]: ...
@one_thread()
def convex_hull(
    points: Any,
    *,
    repair: bool = True,
    model: str | Path | DiCoNet | None = None,
    seed: int | None = None,
    device: str | torch.device = "cpu",
) -> Hull | list[Hull]:
    """The convex hull of points in the plane.

    A network answers; `exact` says whether its answer was then proven right.

    Args:
        points: An (n, 2) array, list, tensor or DataFrame; or a list of these, solved as one batch.
        repair: Let a classical algorithm in exact arithmetic answer if the network's answer is
            not proven right; the solution is then marked `repaired`.
        model: The network: a shipped name, a weights file, a run folder or a `DiCoNet`; None for
            the default.
        seed: Draws the network's trees at random; None takes the likeliest.
        device: Where to run the network, such as "cuda".

    Returns:
        The hull, or a list of hulls for a list of point sets.

    >>> convex_hull([[0, 0], [4, 0], [1, 1], [0, 4]]).indices.tolist()
    [0, 1, 3]
    """
    many = is_many(points, dims=2)
    given = [as_points(array, "points", columns=2) for array in (points if many else [points])]
    network = as_network(PROBLEM, model, device)
    clouds = [_Cloud.of(array, network, device) for array in given]
    tell("dividing and merging")
    found = _solve(clouds, network, check_seed(seed), device)
    tell("proving")
    hulls = [
        _certified(cloud, *answer, repair, model)
        for cloud, answer in zip(clouds, found, strict=True)
    ]
    return handed_back(hulls, points, many)


@dataclass(frozen=True, eq=False)
class _Cloud:
    """Points, and those that the network sees: the first of equal ones.

    `kept` is a mask of the points that may be corners, `first` the rows of the distinct ones among
    them, and `stand_in` the index in `first` of each kept point.
    """

    points: np.ndarray
    kept: np.ndarray
    first: np.ndarray
    stand_in: np.ndarray

    @classmethod
    def of(cls, points: np.ndarray, network: DiCoNet, device: str | torch.device) -> _Cloud:
        boxed = torch.from_numpy(_boxed(points)).to(device)
        kept = may_be_corners(network, boxed)
        rows = np.flatnonzero(kept)
        some = points[rows]
        order = np.lexsort((some[:, 1], some[:, 0]))  # stable: equal points in order of index
        is_new = np.ones(len(rows), dtype=bool)
        is_new[1:] = (some[order[1:]] != some[order[:-1]]).any(1)
        group = np.maximum.accumulate(np.where(is_new, np.arange(len(rows)), 0))
        first_of = np.empty_like(order)
        first_of[order] = order[group]
        is_first = first_of == np.arange(len(rows))
        return cls(points, kept, rows[is_first], (np.cumsum(is_first) - 1)[first_of])


def _boxed(points: np.ndarray) -> np.ndarray:
    """Points shifted and scaled to the unit square, which does not change their hull."""
    half = points / 2  # so that even the widest range of doubles does not overflow
    low = half.min(0)
    span = half.max(0) - low
    return (half - low) / np.where(span > 0, span, 1)


def _solve(
    clouds: Sequence[_Cloud], network: DiCoNet, seed: int | None, device: str | torch.device
) -> list[tuple[np.ndarray, Partitions]]:
    """The network's answers: corners in order, and the partition of the points at every level."""
    # Only the triple merge reads points in double precision; the others are not made for it.
    precise = isinstance(network.merge, TripleMerge)
    dtype = torch.float64 if precise else torch.float32
    boxed = [torch.from_numpy(_boxed(cloud.points[cloud.first])) for cloud in clouds]
    sets = SetBatch.of([points.to(device, dtype) for points in boxed])
    seeds = tree_seeds(seed, len(sets), device)
    with torch.inference_mode():
        outcome = network(sets, seeds)
    found = []
    answers = zip(clouds, outcome.solution.unpack(), labels_of(outcome.tree), strict=True)
    for cloud, answer, labels in answers:
        tree = labels.of_items(cloud.stand_in)  # with discarded and duplicate points
        tree = tree if cloud.kept.all() else tree.among(cloud.kept)
        found.append((cloud.first[to_host(answer)], tree))
    return found


def _certified(
    cloud: _Cloud, proposed: np.ndarray, tree: Partitions, repair: bool, model: Model
) -> Hull:
    points = cloud.points
    proposed = _without_straight(points, proposed)
    exact = is_hull(points, proposed)
    repaired = repair and not exact
    corners = exact_hull(points) if repaired else proposed
    corners = np.roll(corners, -int(corners.argmin()))
    exact = exact or (repaired and is_hull(points, corners))
    return Hull(
        area(points[corners]), tree, points, corners, exact, repaired, proposed, model=model
    )


def _without_straight(points: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """The corners without those on the line between their neighbours."""
    while len(corners) > 2:
        polygon = points[corners]
        straight = turns(np.roll(polygon, 1, 0), polygon, np.roll(polygon, -1, 0)) == 0
        if not straight.any() or straight.all():
            break
        corners = corners[~straight]
    return corners


def area(polygon: np.ndarray) -> float:
    """The area by the shoelace formula, on numbers of about 1 so that nothing overflows."""
    half = polygon / 2 - polygon[0] / 2
    size = float(np.abs(half).max())
    if size == 0:
        return 0.0
    x, y = (half / size).T
    twice = float(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1)))
    return 2 * max(twice, 0.0) * size * size  # rounding may make a sliver negative
