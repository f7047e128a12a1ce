"""Tours crossed with one another: edges of one replaced by edges of another, a cycle at a time.

Replacing the edges along a cycle in which two tours differ leaves one tour or several; each of
these is joined to another where that costs least (edge assembly crossover; Nagata & Kobayashi,
2013). Among the shorter children of a pair of tours, the one that gains most for the variety it
costs replaces its parent. Where kicks only find what is near by, this combines what
several searches have found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, no_type_check

import numpy as np
from numba import njit

from diconet.problems.tsp.search.cycles import alternating, differences, segment_of, subtours
from diconet.problems.tsp.search.exchange import held, positions
from diconet.problems.tsp.search.local import draw
from diconet.problems.tsp.search.metric import distance
from diconet.problems.tsp.search.variety import count, frequencies, loss

_CHILDREN = 30  # per pair of tours
_SINGLE = 15  # of these, made from a single cycle
_ENOUGH = 0.5  # chance that no further cycle is added to a block
_TRIES = 20  # to find another cycle near by
_WIDE = 10  # near neighbours tried to join two tours
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


@njit(cache=True, nogil=True)
@no_type_check
def _shuffled(many, state):
    """Numbers in random order."""
    order = np.arange(many)
    for i in range(many - 1, 0, -1):
        j = int(draw(state) * (i + 1))
        order[i], order[j] = order[j], order[i]
    return order


@njit(cache=True, nogil=True)
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
        if i + 1 < len(order):
            j = order[i + 1]
            total += _cross(
                xy, code, near, many, order[i], many.tours[j], many.places[j], many.links[j], room,
                tiny, greedy,
            )  # fmt: skip
        else:
            total += _cross(
                xy, code, near, many, order[i], other, other_pos, many.links[last], room, tiny,
                greedy,
            )  # fmt: skip
    return total


@njit(cache=True, nogil=True)
@no_type_check
def _count(many, room):
    """Counts the edges that were replaced.

    An edge may be added and removed again; only in this order it is counted rightly.
    """
    count(many.seen, many.times, room.into, room.used[0], 1)
    count(many.seen, many.times, room.out, room.used[0], -1)


@njit(cache=True, nogil=True)
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
    _own(room, cut)
    best, kept, own, won = 0.0, 0, 0, 0.0
    begin = int(draw(state) * cut)
    for child in range(_CHILDREN):
        single = child < min(cut, _SINGLE)
        if not single and cut < 3:
            break
        cycle = (begin + child) % cut if single else int(draw(state) * cut)
        length = _block(near, room, cycle, single, state)
        gain, changes = _child(xy, code, near, tour, pos, link, room, length, tiny)
        if gain <= tiny:
            continue
        cost = loss(many.seen, many.times, many.surprise, room.removed[0], room.added[0], changes)
        worth = gain if greedy else gain / max(cost, _LEAST)
        if worth > best:
            best, kept, own, won = worth, changes, length // 2, gain
            room.removed[1, :changes] = room.removed[0, :changes]
            room.added[1, :changes] = room.added[0, :changes]
    for place in range(room.bounds[cut]):
        room.owner[room.cycles[place]] = -1
    if kept > 0:
        _replace(room.adjacent, room.removed[1], room.added[1], 0, own)
        for k in range(own, kept, 2):
            _replace(room.adjacent, room.removed[1], room.added[1], k, k + 2)
        for k in range(kept):
            at = room.used[0] + k
            for end in range(2):
                room.out[at, end] = room.removed[1, k, end]
                room.into[at, end] = room.added[1, k, end]
        room.used[0] += kept
        _walk(room.adjacent, tour, pos)
    return won


@njit(cache=True, nogil=True)
@no_type_check
def _own(room, cut):
    """Marks each city of a cycle by its number; if it is on two, by the later one."""
    for j in range(cut):
        for place in range(room.bounds[j], room.bounds[j + 1]):
            room.owner[room.cycles[place]] = j


@njit(cache=True, nogil=True)
@no_type_check
def _block(near, room, cycle, single, state):
    """Copies a cycle into `block`, with some cycles near it unless `single`; returns the length.

    `onward[i]` is the place in `block` that the edge added behind the i-th removed one leads to.
    """
    taken, block = room.taken, room.block
    taken[0] = cycle
    many, length = 1, 0
    while True:
        start, low = length, room.bounds[taken[many - 1]]
        length += room.bounds[taken[many - 1] + 1] - low
        for place in range(start, length):
            block[place] = room.cycles[low + place - start]
        for i in range(start // 2, length // 2):
            room.onward[i] = 2 * i + 2
        room.onward[length // 2 - 1] = start
        if single or (many > 1 and draw(state) < _ENOUGH):
            return length
        found = False
        for _ in range(_TRIES):
            city = near[block[int(draw(state) * length)], int(draw(state) * near.shape[1])]
            if city < 0 or room.owner[city] < 0:
                continue
            found = True
            for j in range(many):
                found = found and taken[j] != room.owner[city]
            if found:
                taken[many] = room.owner[city]
                many += 1
                break
        if not found:
            return length


@njit(cache=True, nogil=True)
@no_type_check
def _child(xy, code, near, tour, pos, link, room, length, tiny):
    """What replacing the edges along a block gains, and how many edges are replaced in all.

    `removed` and `added` receive them; the tour stays as it is. The child is given up when it turns
    out not to be shorter.
    """
    cycle, adjacent, removed, added = (
        room.block[:length],
        room.adjacent,
        room.removed[0],
        room.added[0],
    )
    k = length // 2
    gain = 0.0
    for i in range(k):
        a, b = cycle[2 * i], cycle[2 * i + 1]
        c = cycle[room.onward[i]]
        gain += distance(xy, code, a, b) - distance(xy, code, b, c)
        removed[i, 0], removed[i, 1], added[i, 0], added[i, 1] = a, b, b, c
    if gain <= tiny:
        return gain, k
    parts = subtours(pos, cycle, room.onward, room.keys, room.nodes, room.label, room.sizes)
    if parts == 1:
        return gain, k
    _replace(adjacent, removed, added, 0, k)
    changes = k
    while parts > 1 and gain > tiny:
        won = _join(xy, code, near, tour, pos, link, room, k, parts, changes)
        gain += won
        if won > -np.inf:
            changes += 2
            parts -= 1
    for low in range(changes - 2, k - 1, -2):
        _replace(adjacent, added, removed, low, low + 2)
    _replace(adjacent, added, removed, 0, k)
    return gain, changes


@njit(cache=True, nogil=True)
@no_type_check
def _join(xy, code, near, tour, pos, link, room, k, parts, changes):
    """Joins the smallest subtour to another at two edges; returns the gain, -inf if it cannot.

    The two edges of each kind are written behind the first `changes`.
    """
    adjacent, keys, label, sizes = room.adjacent, room.keys, room.label, room.sizes
    removed, added = room.removed[0], room.added[0]
    small = 0
    for part in range(1, parts):
        if sizes[part] < sizes[small]:
            small = part
    best, other = -np.inf, -1
    for j in range(k):
        if label[j] != small:
            continue
        low = keys[j - 1] + 1 if j > 0 else keys[k - 1] + 1 - len(tour)
        for p in range(low, keys[j] + 1):
            a = tour[p]  # below 0 from the end
            for c in near[a, :_WIDE]:
                if c < 0:
                    break
                part = label[segment_of(keys, k, pos[c])]
                if part == small:
                    continue
                new = distance(xy, code, a, c)
                for b in adjacent[a]:
                    if held(link, a, b):
                        continue
                    base = distance(xy, code, a, b) - new
                    for d in adjacent[c]:
                        if held(link, c, d):
                            continue
                        won = base + distance(xy, code, c, d) - distance(xy, code, b, d)
                        if won > best:
                            best, other = won, part
                            removed[changes, 0], removed[changes, 1] = a, b
                            removed[changes + 1, 0], removed[changes + 1, 1] = c, d
                            added[changes, 0], added[changes, 1] = a, c
                            added[changes + 1, 0], added[changes + 1, 1] = b, d
    if other < 0:
        return best
    _replace(adjacent, removed, added, changes, changes + 2)
    sizes[other] += sizes[small]
    sizes[small] = sizes[parts - 1]
    for j in range(k):  # the last label takes the place of the one that is gone
        if label[j] == small:
            label[j] = other
        if label[j] == parts - 1:
            label[j] = small
    return best


@njit(cache=True, nogil=True)
@no_type_check
def _replace(adjacent, removed, added, low, high):
    """Replaces some edges among the neighbours of cities."""
    for i in range(low, high):
        for a, b in ((removed[i, 0], removed[i, 1]), (removed[i, 1], removed[i, 0])):
            adjacent[a, 0 if adjacent[a, 0] == b else 1] = -1
    for i in range(low, high):
        for a, b in ((added[i, 0], added[i, 1]), (added[i, 1], added[i, 0])):
            adjacent[a, 0 if adjacent[a, 0] < 0 else 1] = b


@njit(cache=True, nogil=True)
@no_type_check
def _walk(adjacent, tour, pos):
    """Rewrites a tour in the order in which its cities are adjacent."""
    previous, here = -1, tour[0]
    for place in range(len(tour)):
        tour[place] = here
        pos[here] = place
        onward = adjacent[here, 0] if adjacent[here, 0] != previous else adjacent[here, 1]
        previous, here = here, onward
