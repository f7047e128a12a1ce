"""Searches a part of a tour while the rest stays fixed.

The cities of a part, in tour order, form a small tour of their own, in which each path through
other cities is one fixed edge. It is searched in arrays that fit the processor's cache, and the
stretches to reverse are short however long the whole tour is: this is the benefit of dividing.
The result is written back with the outside paths in between, reversed where needed.
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from numba import njit

from diconet.core.compiled import INNER, KERNEL
from diconet.problems.tsp.search.exchange import beside, held
from diconet.problems.tsp.search.local import search

_FEWEST = 8
_MARGIN = 2  # edges between the core of a part and its border
_CLOSE = 5  # a city is at a border if one of this many near neighbours is missing


@njit(**KERNEL)
@no_type_check
def search_part(
    xy, code, near, path, pos, strand, local, members, closed, descend, kicks, walk, tiny, seed,
    warm, cool,
):  # fmt: skip
    """Searches among `members` of a path (a round trip if `closed`), and returns the gain.

    There are `kicks` per city of the part's core: kicks that start at the border can seldom be
    repaired there. What a kick may cost decreases from `warm` to `cool`, as in `search`.

    `path` holds cities in order and `pos` their positions; both are changed. `strand` is the path
    of each city, `local` a work array with one number per city; entries of cities on other paths
    are not touched, so that paths can be searched in parallel.
    """
    m = len(members)
    if m < _FEWEST:
        return 0.0
    where = _sorted(pos, members, len(path))
    mine = strand[members[0]]
    own_xy = np.empty((m, 2))
    for i in range(m):
        city = path[where[i]]
        local[city] = i
        own_xy[i, 0] = xy[city, 0]
        own_xy[i, 1] = xy[city, 1]
    own_near = np.full((m, near.shape[1]), -1, dtype=np.int32)
    missing = np.zeros(m, dtype=np.bool_)
    for i in range(m):
        city = path[where[i]]
        many = 0
        for k in range(near.shape[1]):
            other = near[city, k]
            if other >= 0 and strand[other] == mine and local[other] >= 0:
                own_near[i, many] = local[other]
                many += 1
            elif other >= 0 and k < _CLOSE:
                missing[i] = True
    for i in range(m):
        local[path[where[i]]] = -1
    link = _links(where, len(path), closed)
    tour = np.arange(m).astype(np.int32)
    core = core_of(own_near, missing)
    gain = search(
        own_xy, code, own_near, link, tour, core, descend, int(kicks * len(core)), walk, tiny, seed,
        warm, cool,
    )  # fmt: skip
    if gain != 0:
        _write_back(path, pos, where, tour, link)
    return gain


@njit(**INNER)
@no_type_check
def core_of(near, missing):
    """The cities of a part that lie some edges away from those with a missing neighbour."""
    m = len(missing)
    outer = missing.copy()
    for _ in range(min(_MARGIN, int(np.sqrt(m) / 10))):
        inner = outer.copy()
        for i in range(m):
            for k in range(min(near.shape[1], _CLOSE)):
                if near[i, k] >= 0 and inner[near[i, k]]:
                    outer[i] = True
    return np.flatnonzero(~outer).astype(np.int32)


@njit(**INNER)
@no_type_check
def _links(where, size, closed):
    """Which neighbours in the part are joined by a path outside it; at most two per city."""
    m = len(where)
    link = np.full((m, 2), -1, dtype=np.int32)
    for i in range(m):
        j = i + 1 if i + 1 < m else 0
        if j > 0:
            apart = where[j] != where[i] + 1
        else:  # the ends of an open path stay fixed
            apart = not closed or where[0] != 0 or where[m - 1] != size - 1
        if apart:
            link[i, 1] = j
            link[j, 0] = i
    return link


@njit(**INNER)
@no_type_check
def _write_back(path, pos, where, tour, link):
    """Writes the part back to the path in its new order."""
    m = len(tour)
    size = len(path)
    # Start after the link from the part's last city to its first, in the direction away from it.
    first = 0
    for i in range(m):
        if tour[i] == 0:
            first = i
    wrapped = link[0, 0] == m - 1
    step = 1
    if wrapped and tour[first - 1] != m - 1:
        step = -1
    new = np.empty(size, dtype=np.int32)
    at = 0
    if wrapped:
        for place in range(where[0]):
            new[at] = path[place]
            at += 1
    for count in range(m):
        here = tour[(first + step * count) % m]
        new[at] = path[where[here]]
        at += 1
        there = tour[(first + step * (count + 1)) % m]
        if link[here, 1] == there and there == here + 1:
            for place in range(where[here] + 1, where[there]):
                new[at] = path[place]
                at += 1
        elif link[here, 0] == there and there == here - 1:
            for place in range(where[here] - 1, where[there], -1):
                new[at] = path[place]
                at += 1
    if wrapped:
        for place in range(where[m - 1] + 1, size):
            new[at] = path[place]
            at += 1
    for place in range(size):
        path[place] = new[place]
        pos[new[place]] = place


@njit(**KERNEL)
@no_type_check
def all_positions(tours):
    """The position of each city on each of many tours."""
    places = np.empty_like(tours)
    for which in range(len(tours)):
        for i in range(tours.shape[1]):
            places[which, tours[which, i]] = i
    return places


@njit(**KERNEL)
@no_type_check
def restricted(tours, places, links, members):
    """Many tours as they pass through `members` only, and each one's links: its ways outside.

    In what is returned, cities have the numbers of their places in `members`. Links remain links.
    """
    m, n = len(members), tours.shape[1]
    local = np.full(n, -1, dtype=np.int32)
    for i in range(m):
        local[members[i]] = i
    orders = np.empty((len(tours), m), dtype=np.int32)
    fixed = np.full((len(tours), m, 2), -1, dtype=np.int32)
    for which in range(len(tours)):
        tour, link, order = tours[which], links[which], orders[which]
        where = _sorted(places[which], members, n)
        for i in range(m):
            order[i] = local[tour[where[i]]]
        for i in range(m):
            j = i + 1 if i + 1 < m else 0
            near_by = where[j] == where[i] + 1 or (j == 0 and where[j] + n == where[i] + 1)
            if not near_by or held(link, tour[where[i]], tour[where[j]]):
                fixed[which, order[i], 1] = order[j]
                fixed[which, order[j], 0] = order[i]
    return orders, fixed


@njit(**KERNEL)
@no_type_check
def put_back(tours, places, members, orders):
    """Writes tours through `members`, whose links are as they were, back to the whole ones."""
    m, n = len(members), tours.shape[1]
    rank = np.empty(m, dtype=np.int32)
    ranks = np.empty(m, dtype=np.int32)
    back = np.empty(n, dtype=np.int32)
    for i in range(m):
        back[members[i]] = i
    for which in range(len(tours)):
        tour, pos = tours[which], places[which]
        where = _sorted(pos, members, n)
        for i in range(m):
            rank[back[tour[where[i]]]] = i
        for i in range(m):
            ranks[i] = rank[orders[which, i]]
        _write_back(tour, pos, where, ranks, _links(where, n, True))


@njit(**INNER)
@no_type_check
def _sorted(pos, members, size):
    """The positions of some cities, in order: marked, since compiling a sort takes long."""
    here = np.zeros(size, dtype=np.bool_)
    for i in range(len(members)):
        here[pos[members[i]]] = True
    where = np.empty(len(members), dtype=np.int32)
    count = 0
    for place in range(size):
        if here[place]:
            where[count] = place
            count += 1
    return where


@njit(**KERNEL)
@no_type_check
def lists_within(near, members):
    """The candidate lists of `members` without other cities."""
    local = np.full(len(near), -1, dtype=np.int32)
    for i in range(len(members)):
        local[members[i]] = i
    own = np.full((len(members), near.shape[1]), -1, dtype=np.int32)
    for i in range(len(members)):
        many = 0
        for other in near[members[i]]:
            if other >= 0 and local[other] >= 0:
                own[i, many] = local[other]
                many += 1
    return own


@njit(**KERNEL)
@no_type_check
def disputed(tours, places):
    """The cities whose neighbours are not the same on all tours."""
    n = tours.shape[1]
    found = np.zeros(n, dtype=np.bool_)
    for which in range(1, len(tours)):
        for city in range(n):
            if not found[city]:
                a, b = beside(tours[0], places[0], city)
                c, d = beside(tours[which], places[which], city)
                found[city] = not ((a == c and b == d) or (a == d and b == c))
    return np.flatnonzero(found).astype(np.int32)
