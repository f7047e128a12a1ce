"""Tours crossed with one another: edges of one replaced by edges of another, a cycle at a time.

Among the shorter children of a pair of tours, the one that gains most for the variety it costs
replaces its parent (edge assembly crossover; Nagata & Kobayashi, 2013). Where kicks only find what
is near by, this combines what several searches have found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, no_type_check

import numpy as np
from numba import njit

from diconet.core.compiled import INNER, KERNEL
from diconet.problems.tsp.search.children import (
    gather,
    make_child,
    mark,
    replace_edges,
    walk_along,
)
from diconet.problems.tsp.search.cycles import alternating, differences
from diconet.problems.tsp.search.exchange import positions
from diconet.problems.tsp.search.local import draw
from diconet.problems.tsp.search.variety import count, frequencies, loss

_CHILDREN = 30  # per pair of tours
_SINGLE = 15  # of these, made from a single cycle
_LEAST = 1e-9  # what a child that adds variety counts as losing


class Tours(NamedTuple):
    """Many tours of the same cities, the positions of cities, and how often edges occur.

    `links` are edges of each tour that stay: the paths outside, if these are cities of a part.
    """

    tours: np.ndarray
    places: np.ndarray
    links: np.ndarray
    seen: np.ndarray
    times: np.ndarray
    surprise: np.ndarray

    @classmethod
    def of(cls, tours: np.ndarray, links: np.ndarray) -> Tours:
        """The tours, which crossing will change in place."""
        many = len(tours)
        share = np.arange(1, many + 2) / many
        surprise = np.concatenate([[0.0], -share * np.log(share)])
        places = np.stack([positions(tour) for tour in tours])
        seen, times = frequencies(tours, links)
        return cls(tours, places, links, seen, times, surprise)


class Room(NamedTuple):
    """Work arrays for crossing two tours; see the functions that fill them."""

    adjacent: np.ndarray
    rest: np.ndarray
    degree: np.ndarray
    differing: np.ndarray
    at: np.ndarray
    path: np.ndarray
    cycles: np.ndarray
    bounds: np.ndarray
    owner: np.ndarray
    taken: np.ndarray
    block: np.ndarray
    onward: np.ndarray
    keys: np.ndarray
    nodes: np.ndarray
    label: np.ndarray
    sizes: np.ndarray
    removed: np.ndarray
    added: np.ndarray
    out: np.ndarray
    into: np.ndarray
    used: np.ndarray
    state: np.ndarray

    @classmethod
    def of(cls, n: int, seed: int) -> Room:
        """Space for n cities; removed and added edges for one child, and for the best one.

        `out` and `into` hold those of all tours that were replaced, as many as `used` says.
        """

        def empty(*shape: int) -> np.ndarray:
            return np.empty(shape, dtype=np.int32)

        return cls(
            adjacent=empty(n, 2),
            rest=empty(n, 4),
            degree=empty(n, 2),
            differing=empty(n),
            at=np.full((n, 2), -1, dtype=np.int32),
            path=empty(2 * n + 2),
            cycles=empty(2 * n + 2),
            bounds=empty(n + 2),
            owner=np.full(n, -1, dtype=np.int32),
            taken=empty(n + 2),
            block=empty(2 * n + 2),
            onward=empty(n + 2),
            keys=np.empty(n + 1, dtype=np.int64),
            nodes=empty(2, 2 * n + 2),
            label=empty(n + 1),
            sizes=empty(n + 1),
            removed=empty(2, 4 * n, 2),
            added=empty(2, 4 * n, 2),
            out=empty(8 * n, 2),
            into=empty(8 * n, 2),
            used=np.zeros(1, dtype=np.int64),
            state=np.array([seed], dtype=np.uint64),
        )


def cross_all(
    xy: np.ndarray,
    code: int,
    near: np.ndarray,
    many: Tours,
    rooms: Sequence[Room],
    tiny: float,
    greedy: bool,
    run: Callable[..., Iterable[float]] = map,
) -> float:
    """Crosses each of many tours with another, in place; returns by how much all got shorter.

    In random order, each is crossed with the next, the last with the first. If `greedy`, the
    shortest child replaces its parent, whatever variety that costs. Each room gets a share of the
    tours; `run` is `map`, or that of a pool of threads, with the same result.
    """
    order = _shuffled(len(many.tours), rooms[0].state)
    bounds = [len(order) * k // len(rooms) for k in range(len(rooms) + 1)]
    # The last of a share is crossed with the first of the next, as that was before.
    nexts = order[[bound % len(order) for bound in bounds[1:]]]
    tours, places = many.tours[nexts], many.places[nexts]

    def share(k: int) -> float:
        mine = order[bounds[k] : bounds[k + 1]]
        return float(
            _cross_some(
                xy, code, near, many, mine, nexts[k], tours[k], places[k], rooms[k], tiny, greedy
            )
        )

    gain = sum(run(share, range(len(rooms))))
    for room in rooms:
        _count(many, room)
    return gain


@njit(**KERNEL)
@no_type_check
def _shuffled(many, state):
    """Numbers in random order."""
    order = np.arange(many)
    for i in range(many - 1, 0, -1):
        j = int(draw(state) * (i + 1))
        order[i], order[j] = order[j], order[i]
    return order


@njit(**KERNEL)
@no_type_check
def _cross_some(xy, code, near, many, order, last, other, other_pos, room, tiny, greedy):
    """Crosses some tours, each with the next, the last one with a copy of tour `last`.

    Ends early if there is no more space to note which edges were replaced.
    """
    total = 0.0
    room.used[0] = 0
    for i in range(len(order)):
        if room.used[0] + len(room.removed[0]) > len(room.out):
            break
        beside, beside_pos, link = other, other_pos, many.links[last]
        if i + 1 < len(order):
            j = order[i + 1]
            beside, beside_pos, link = many.tours[j], many.places[j], many.links[j]
        total += _cross(
            xy, code, near, many, order[i], beside, beside_pos, link, room, tiny, greedy
        )
    return total


@njit(**KERNEL)
@no_type_check
def _count(many, room):
    """Counts the edges that were replaced.

    An edge may be added and removed again; only in this order it is counted rightly.
    """
    count(many.seen, many.times, room.into, room.used[0], 1)
    count(many.seen, many.times, room.out, room.used[0], -1)


@njit(**INNER)
@no_type_check
def _cross(xy, code, near, many, mine, other, other_pos, other_link, room, tiny, greedy):
    """Replaces a tour by its best child with another, if that is shorter; returns the gain."""
    tour, pos, link, state = many.tours[mine], many.places[mine], many.links[mine], room.state
    different = differences(
        tour, pos, link, other, other_pos, other_link, room.adjacent, room.rest, room.degree,
        room.differing,
    )  # fmt: skip
    cut = alternating(
        room.rest, room.degree, room.differing, different, room.at, room.path, room.cycles,
        room.bounds, state,
    )  # fmt: skip
    if cut == 0:
        return 0.0
    mark(room, cut)
    best, kept, own, won = 0.0, 0, 0, 0.0
    begin = int(draw(state) * cut)
    for child in range(_CHILDREN):
        single = child < min(cut, _SINGLE)
        if not single and cut < 3:
            break
        cycle = (begin + child) % cut if single else int(draw(state) * cut)
        length = gather(near, room, cycle, single, state)
        gain, changes = make_child(xy, code, near, tour, pos, link, room, length, tiny)
        if gain <= tiny:
            continue
        cost = loss(many.seen, many.times, many.surprise, room.removed[0], room.added[0], changes)
        worth = gain if greedy else gain / max(cost, _LEAST)
        if worth > best:
            best, kept, own, won = worth, changes, length // 2, gain
            for i in range(changes):  # slices would compile the text of an error, for seconds
                for end in range(2):
                    room.removed[1, i, end] = room.removed[0, i, end]
                    room.added[1, i, end] = room.added[0, i, end]
    for place in range(room.bounds[cut]):
        room.owner[room.cycles[place]] = -1
    if kept > 0:
        replace_edges(room.adjacent, room.removed[1], room.added[1], 0, own)
        for k in range(own, kept, 2):
            replace_edges(room.adjacent, room.removed[1], room.added[1], k, k + 2)
        for k in range(kept):
            at = room.used[0] + k
            for end in range(2):
                room.out[at, end] = room.removed[1, k, end]
                room.into[at, end] = room.added[1, k, end]
        room.used[0] += kept
        walk_along(room.adjacent, tour, pos)
    return won
