"""One round trip from pieces: runs of cities whose ends are joined by edges between cells.

Cells are searched in parallel, so their results may close into several round trips. Where two of
these come close, one edge of each is exchanged for two that join them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import no_type_check

import numpy as np
from numba import njit
from scipy.cluster.hierarchy import DisjointSet
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from diconet.core.compiled import KERNEL

_FEW = 8


@dataclass(frozen=True, eq=False)
class Runs:
    """Stretches of a tour within cells, each with `many` cities.

    `edges` are the numbers of the edges that leave the two ends; each number occurs twice in all.
    `ends` are the coordinates of the two ends, `length` the total length of the runs of each cell.
    """

    edges: np.ndarray
    ends: np.ndarray
    many: np.ndarray
    cells: np.ndarray
    length: float


@dataclass(frozen=True, eq=False)
class Places:
    """For each run, the tour position of its first city and its direction; the tour's length.

    `first` is the index of each cell's first run.
    """

    start: np.ndarray
    forward: np.ndarray
    first: dict[int, int]
    length: float

    def of_cell(self, cell: int, many: np.ndarray) -> np.ndarray:
        """The tour position of every city of a cell, in the order of its runs."""
        first = self.first.get(cell, 0)
        start, forward = (x[first : first + len(many)] for x in (self.start, self.forward))
        within = np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many)
        return np.repeat(start, many) + np.where(np.repeat(forward, many), within, -within)


def linked(runs: Runs) -> Places:
    """All runs on one round trip."""
    partner = _partners(runs.edges.reshape(-1))
    ends = runs.ends.reshape(-1, 2)
    trip = _trips(partner)
    near = _FEW
    while trip.max(initial=0) > 0:
        joined = _joined(partner, ends, trip[np.arange(len(partner)) // 2], near)
        near = _FEW if joined else 4 * near
        trip = _trips(partner)
    start, forward = _walk(partner, runs.many)
    length = runs.length + float(np.hypot(*(ends - ends[partner]).T).sum()) / 2
    cells, first = np.unique(runs.cells, return_index=True)
    where = dict(zip(cells.tolist(), first.tolist(), strict=True))
    return Places(start, forward, where, length)


def _partners(edges: np.ndarray) -> np.ndarray:
    """For every end of a run, the end on the other side of its edge."""
    order = np.argsort(edges, kind="stable")
    pairs = order.reshape(-1, 2)
    if (edges[pairs[:, 0]] != edges[pairs[:, 1]]).any():
        raise RuntimeError("an edge between cells lost one of its ends.")
    partner = np.empty(len(edges), dtype=np.int64)
    partner[pairs[:, 0]], partner[pairs[:, 1]] = pairs[:, 1], pairs[:, 0]
    return partner


def _joined(partner: np.ndarray, ends: np.ndarray, trip: np.ndarray, near: int) -> int:
    """Joins round trips by the cheapest exchanges of nearby edges; returns how many it joined."""
    a = np.flatnonzero(np.arange(len(partner)) < partner)
    b = partner[a]
    middle = (ends[a] + ends[b]) / 2
    near = min(near, len(a))
    others = np.asarray(cKDTree(middle).query(middle, k=near)[1]).reshape(len(a), near)
    one, slot = np.nonzero(trip[a][others] != trip[a][:, None])
    two = others[one, slot]

    def apart(u: np.ndarray, v: np.ndarray) -> np.ndarray:
        return np.hypot(*(ends[u] - ends[v]).T)

    now = apart(a[one], b[one]) + apart(a[two], b[two])
    straight = apart(a[one], a[two]) + apart(b[one], b[two]) - now
    crossed = apart(a[one], b[two]) + apart(b[one], a[two]) - now
    trips = DisjointSet(range(int(trip.max()) + 1))
    used = np.zeros(len(a), dtype=bool)
    count = 0
    for i in np.argsort(np.minimum(straight, crossed), kind="stable").tolist():
        p, q = int(one[i]), int(two[i])
        if used[p] or used[q] or not trips.merge(int(trip[a[p]]), int(trip[a[q]])):
            continue
        used[p], used[q], count = True, True, count + 1
        pairs = ((a[p], a[q]), (b[p], b[q])) if straight[i] <= crossed[i] else (
            (a[p], b[q]), (b[p], a[q])
        )  # fmt: skip
        for u, v in pairs:
            partner[u], partner[v] = v, u
    return count


def _trips(partner: np.ndarray) -> np.ndarray:
    """The round trip that each run is on."""
    ends = np.arange(len(partner))
    linked = coo_array((np.ones(len(ends)), (ends // 2, partner // 2)))
    return np.asarray(connected_components(linked, directed=False)[1])


@njit(**KERNEL)
@no_type_check
def _walk(partner, many):
    """Where each run begins on the one round trip, and whether it is traversed forward."""
    start = np.zeros(len(many), dtype=np.int64)
    forward = np.ones(len(many), dtype=np.bool_)
    end, at = 1, 0
    for _ in range(len(many)):
        run = end // 2
        forward[run] = end % 2 == 1
        start[run] = at if forward[run] else at + many[run] - 1
        at += many[run]
        end = partner[end] ^ 1
    return start, forward
