"""Tours of any number of cities: cells of the plane are leaves, then the seams are repaired.

Cuts of a sample divide the plane, by the split that has learned to keep clusters whole, since few
edges of a short tour lead from one cluster to the next. One Dask shuffle brings each cell together,
and `diconet.tsp` finds a round trip in each. The places where these can be opened near the edge of
their cells go up the tree; one task joins them. A second division, rotated against the first, then
brings the seams inside cells, where the search repairs them while the rest of the tour stays fixed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
from dask.delayed import Delayed, delayed
from scipy.spatial import cKDTree

from diconet.core.model import DiCoNet
from diconet.problems.inputs import check_amount, check_seed
from diconet.problems.kmeans.problem import PROBLEM as CLUSTERS
from diconet.problems.networks import as_network
from diconet.problems.solution import Solution
from diconet.problems.tsp.search.metric import Metric
from diconet.problems.tsp.search.near_lists import candidate_lists
from diconet.problems.tsp.search.parts import search_part
from diconet.problems.tsp.solve import tsp as tsp_in_memory
from diconet.scale.chunks import Chunks
from diconet.scale.division import Division, MedianSplit, Sample, shuffled
from diconet.scale.links import Places, Runs, linked
from diconet.scale.work import (
    by_block,
    computed,
    gathered,
    in_order,
    kept,
    leaves,
    merged,
    reduced,
)

CELL = 32_768
"""Maximum number of cities per cell, as estimated from the sample."""

_SAMPLE, _PER_CELL = 2**20, 1_000  # maximum sample size for cuts: in all, per cell
_OPEN = 32  # edges near each side of a cell where its round trip can be opened
_KICKS, _SEAM_KICKS = 1.0, 10.0  # per city
_ANGLE = math.pi / 5
_NEAR = 7
_STRIP = 4  # cities within this many neighbours of a seam are searched again
_PART, _FEWEST = 3_000, 8  # cities searched at once, and the fewest worth searching
_WALK = 20
_MARGIN = 1e-12


@dataclass(frozen=True, eq=False, repr=False)
class LargeTour(Solution):
    """A round trip through `size` cities that starts at city 0; `value` is its length.

    `tour` holds the cities in visiting order, as a Dask array.
    """

    size: int
    tour: da.Array
    cells: int

    def quality(self) -> str:
        """The number of cities and cells."""
        return f"{self.size} cities in {self.cells} cells"

    def record(self) -> dict[str, Any]:
        """Cities, length and cells, without the tour itself."""
        return {"cities": self.size, "value": self.value, "cells": self.cells}

    def rows(self) -> Iterator[Sequence[Any]]:
        """The cities in order, one piece at a time."""
        yield ("city",)
        for _, cities in by_block(self.tour):
            yield from ((city,) for city in cities.tolist())


def tsp(
    cities: Any,
    *,
    kicks: float = _KICKS,
    model: str | Path | DiCoNet | None = None,
    seed: int | None = None,
    cell: int = CELL,
    columns: Sequence[str] | None = None,
) -> LargeTour:
    """A short round trip through a Dask array or dataframe, or files that match a pattern.

    `kicks` is the search effort in cells, per city, and `cell` the maximum number of cities in one.
    `columns` selects the coordinates, by name or number from 1, if they are not x and y.
    The same chunks and seed give the same tour, on any number of workers.
    """
    check_amount(kicks, "kicks")
    seed = check_seed(seed)
    chunks = Chunks.of(cities, "cities", ("x", "y"), columns)
    share = max(64, _SAMPLE // max(1, len(chunks)))
    census: _Census = reduced(_census, gathered, chunks, "cities", share)
    size = int(census.sizes.sum())
    if size == 0:
        raise ValueError("cities must hold at least 1 row; got none.")
    sample = census.sample.evened(_PER_CELL * -(-size // cell))
    most = cell * len(sample) / size
    splits = as_network(CLUSTERS, None).split, MedianSplit(_ANGLE)
    divisions = [Division.by_size(split, sample, most) for split in splits]
    frames = leaves(_frame, chunks, "cells", divisions[0], np.cumsum(census.sizes) - census.sizes)
    cells = [
        delayed(_toured, nout=2, pure=False)(part, number, kicks, model, seed)
        for number, part in enumerate(shuffled(frames, len(divisions[0]), _COLUMNS))
    ]
    if len(cells) > 1:
        frames, _ = _placed(cells, divisions[1])
        cells = [
            delayed(_repaired, nout=2, pure=False)(part, number, size, seed or 0)
            for number, part in enumerate(shuffled(frames, len(divisions[1]), _PLACED))
        ]
    step = -(-size // len(cells))
    frames, places = _placed(cells, step)
    pieces = shuffled(frames, -(-size // step), _PLACED)
    *ordered, length = kept([*map(delayed(_ids, pure=False), pieces), places.length])
    sizes = [min(step, size - start) for start in range(0, size, step)]
    tour = in_order(ordered, sizes, np.int64)
    tour = da.roll(tour, -int(computed((tour == 0).argmax())))
    return LargeTour(computed(length), (), size, tour, len(divisions[0]), model=model)


@dataclass(frozen=True, eq=False)
class _Census:
    """Sizes of leaves, and a sample of their cities."""

    sizes: np.ndarray
    sample: Sample


def _census(rows: np.ndarray, number: int, share: int) -> _Census:
    if rows.shape[1] != 2:
        raise ValueError(f"cities must have 2 columns; got {rows.shape[1]}.")
    return _Census(np.array([len(rows)]), Sample.of(rows, share, [number]))


_COLUMNS = {"id": np.int64, "x": np.float64, "y": np.float64, "cell": np.int64}
_PLACED = _COLUMNS | {"place": np.int64, "old": np.int64}


def _frame(rows: np.ndarray, number: int, division: Division, offsets: np.ndarray) -> pd.DataFrame:
    index = offsets[number] + np.arange(len(rows))
    return pd.DataFrame(
        {"id": index, "x": rows[:, 0], "y": rows[:, 1], "cell": division.cells(rows)}
    )


def _toured(
    part: pd.DataFrame, number: int, kicks: float, model: Any, seed: int | None
) -> tuple[pd.DataFrame, Runs]:
    """A cell's cities in the order of a round trip, cut into runs near the edge of the cell."""
    part = part.sort_values("id", kind="stable").reset_index(drop=True)
    xy = part[["x", "y"]].to_numpy()
    if len(part) == 0:
        return _with_runs(part, number, [], np.empty((0, 2), np.int64))
    order = tsp_in_memory(xy, kicks=kicks, model=model, seed=seed).tour
    ends = xy[order]
    middle = (ends + np.roll(ends, -1, axis=0)) / 2
    sides = np.concatenate([middle, -middle], axis=1)
    cuts = np.unique(np.argsort(sides, axis=0, kind="stable")[:_OPEN])
    order = np.roll(order, -int(cuts[0]) - 1)
    many = np.diff(np.append(cuts, cuts[0] + len(order)))
    edge = (number << 32) + np.arange(len(cuts))
    edges = np.column_stack([edge, np.roll(edge, -1)])
    stops = np.cumsum(many)
    runs = [order[stop - size : stop] for stop, size in zip(stops, many, strict=True)]
    return _with_runs(part, number, runs, edges)


def _with_runs(
    part: pd.DataFrame, number: int, runs: list[np.ndarray], edges: np.ndarray
) -> tuple[pd.DataFrame, Runs]:
    """The cell in the order of its runs, and the part of them that goes up the tree."""
    order = np.concatenate([np.empty(0, np.int64), *runs])
    part = part.iloc[order].assign(old=number)
    xy = part[["x", "y"]].to_numpy()
    many = np.array([len(run) for run in runs], dtype=np.int64)
    last = np.cumsum(many) - 1
    ends = np.stack([xy[last - many + 1], xy[last]], axis=1)
    steps = np.hypot(*np.diff(xy, axis=0).T)
    steps[last[:-1]] = 0.0
    cells = np.full(len(runs), number, dtype=np.int64)
    return part, Runs(edges, ends, many, cells, float(steps.sum()))


def _placed(cells: Sequence[Delayed], where: Division | int) -> tuple[list[Delayed], Delayed]:
    """The cities of all cells with their positions on one round trip, in other cells.

    These are those of a division, or stretches of so many cities of the trip.
    """
    places = delayed(linked, pure=False)(merged(gathered, [runs for _, runs in cells], "tour"))
    place = delayed(_place, pure=False)
    return [
        place(part, runs, number, places, where) for number, (part, runs) in enumerate(cells)
    ], places


def _place(
    part: pd.DataFrame, runs: Runs, number: int, places: Places, where: Division | int
) -> pd.DataFrame:
    place = places.of_cell(number, runs.many)
    xy = part[["x", "y"]].to_numpy()
    cell = place // where if isinstance(where, int) else where.cells(xy)
    return part.assign(cell=cell, place=place)[list(_PLACED)]


def _repaired(part: pd.DataFrame, number: int, size: int, seed: int) -> tuple[pd.DataFrame, Runs]:
    """A cell's runs after a search along the seams within it; paths outside it stay."""
    if len(part) == 0:
        return _with_runs(part.reset_index(drop=True), number, [], np.empty((0, 2), np.int64))
    part = part.sort_values("place", kind="stable").reset_index(drop=True)
    place = part["place"].to_numpy()
    gap = np.flatnonzero(np.roll(place, -1) != (place + 1) % size)
    gap = gap if len(gap) else np.array([len(place) - 1])  # the cell holds the whole tour
    shift = int(gap[0]) + 1
    part = part.iloc[np.roll(np.arange(len(part)), -shift)].reset_index(drop=True)
    place = np.roll(place, -shift)
    last = np.append(gap[1:], gap[0] + len(place)) - shift
    # Each path outside the cell is represented between runs by one number beyond the cities, which
    # the search moves as a unit. At the end, the two cities beside it are still those it connects.
    path = np.insert(np.arange(len(place)), last + 1, len(place) + np.arange(len(last)))
    path = _searched(part, path.astype(np.int32), seed + number).astype(np.int64)
    way = path >= len(place)
    path = np.roll(path, -int(np.flatnonzero(way)[0]) - 1)
    at = np.flatnonzero(path >= len(place))
    runs = [run[run < len(place)] for run in np.split(path, at)[: len(at)]]
    after = path[at] - len(place)
    before, first, final = np.roll(after, 1), [run[0] for run in runs], [run[-1] for run in runs]
    edges = np.column_stack(
        [
            np.where(first == last[before], place[first], (place[first] - 1) % size),
            np.where(final == last[after], place[final], (place[final] - 1) % size),
        ]
    )
    if len(place) == 1:
        edges[0, 0] = (place[0] - 1) % size
    return _with_runs(part, number, runs, edges)


def _searched(part: pd.DataFrame, path: np.ndarray, seed: int) -> np.ndarray:
    """The path after a search of the cities near old seams, in parts; other numbers stay."""
    xy = part[["x", "y"]].to_numpy()
    members = _strip(xy, part["old"].to_numpy())
    if len(members) < _FEWEST:
        return path
    lists = candidate_lists(xy[members])
    near = np.full((len(xy), lists.shape[1]), -1, dtype=np.int32)
    near[members] = np.where(lists >= 0, members[lists], -1)
    parts = Division.by_size(MedianSplit(), xy[members], _PART)
    group = parts.cells(xy[members])
    pos = np.empty(len(path), dtype=np.int32)
    pos[path] = np.arange(len(path))
    strand, local = np.zeros(len(path), np.int32), np.full(len(path), -1, np.int32)
    metric, tiny = Metric.of(xy), _MARGIN * float(np.ptp(xy, axis=0).max())
    for number in range(len(parts)):
        mine = members[group == number]
        lucky = np.uint64((seed * 1009 + number) | 1)
        search_part(
            metric.xy, metric.code, near, path, pos, strand, local, mine, True, True, _SEAM_KICKS,
            _WALK, tiny, lucky, 0.0, 0.0,
        )  # fmt: skip
    return path


def _strip(xy: np.ndarray, old: np.ndarray) -> np.ndarray:
    """The cities near seams, whose neighbours were in different cells before."""
    there = np.asarray(cKDTree(xy).query(xy, k=min(_NEAR + 1, len(xy)))[1]).reshape(len(xy), -1)
    strip = (old[there] != old[:, None]).any(1)
    for _ in range(_STRIP):
        strip = strip | strip[there].any(1)
    return np.flatnonzero(strip).astype(np.int32)


def _ids(part: pd.DataFrame) -> np.ndarray:
    return part.sort_values("place", kind="stable")["id"].to_numpy()
