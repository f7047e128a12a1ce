"""Children of two tours: one with the other's edges along a cycle, or along several near by.

Replacing the edges along a cycle in which two tours differ leaves one tour or several; each of
these is joined to another where that costs least (Nagata & Kobayashi, 2013).
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from numba import njit

from diconet.core.compiled import INNER
from diconet.problems.tsp.search.cycles import segment_of, subtours
from diconet.problems.tsp.search.exchange import held
from diconet.problems.tsp.search.local import draw
from diconet.problems.tsp.search.metric import distance

_ENOUGH = 0.5  # chance that no further cycle is added to a block
_TRIES = 20  # to find another cycle near by
_WIDE = 10  # near neighbours tried to join two tours


@njit(**INNER)
@no_type_check
def mark(room, cut):
    """Marks each city of a cycle by its number; if it is on two, by the later one."""
    for j in range(cut):
        for place in range(room.bounds[j], room.bounds[j + 1]):
            room.owner[room.cycles[place]] = j


@njit(**INNER)
@no_type_check
def gather(near, room, cycle, single, state):
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


@njit(**INNER)
@no_type_check
def make_child(xy, code, near, tour, pos, link, room, length, tiny):
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
    replace_edges(adjacent, removed, added, 0, k)
    changes = k
    while parts > 1 and gain > tiny:
        won = _join(xy, code, near, tour, pos, link, room, k, parts, changes)
        gain += won
        if won > -np.inf:
            changes += 2
            parts -= 1
    for low in range(changes - 2, k - 1, -2):
        replace_edges(adjacent, added, removed, low, low + 2)
    replace_edges(adjacent, added, removed, 0, k)
    return gain, changes


@njit(**INNER)
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
    replace_edges(adjacent, removed, added, changes, changes + 2)
    sizes[other] += sizes[small]
    sizes[small] = sizes[parts - 1]
    for j in range(k):  # the last label takes the place of the one that is gone
        if label[j] == small:
            label[j] = other
        if label[j] == parts - 1:
            label[j] = small
    return best


@njit(**INNER)
@no_type_check
def replace_edges(adjacent, removed, added, low, high):
    """Replaces some edges among the neighbours of cities."""
    for i in range(low, high):
        for a, b in ((removed[i, 0], removed[i, 1]), (removed[i, 1], removed[i, 0])):
            adjacent[a, 0 if adjacent[a, 0] == b else 1] = -1
    for i in range(low, high):
        for a, b in ((added[i, 0], added[i, 1]), (added[i, 1], added[i, 0])):
            adjacent[a, 0 if adjacent[a, 0] < 0 else 1] = b


@njit(**INNER)
@no_type_check
def walk_along(adjacent, tour, pos):
    """Rewrites a tour in the order in which its cities are adjacent."""
    previous, here = -1, tour[0]
    for place in range(len(tour)):
        tour[place] = here
        pos[here] = place
        onward = adjacent[here, 0] if adjacent[here, 0] != previous else adjacent[here, 1]
        previous, here = here, onward
