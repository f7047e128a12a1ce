"""Cycles of two tours: the edges in which they differ, divided into cycles that alternate.

Every city has as many edges that only one tour has as edges that only the other has. So they
divide into closed walks that take an edge of each tour by turns (Nagata & Kobayashi, 2013, call
them AB-cycles). Replacing one tour's edges by the other's along a cycle leaves each city two.
In a part of a map, where tours leave it and come back, edges may be left over.
"""

from __future__ import annotations

from typing import no_type_check

from numba import njit

from diconet.core.compiled import INNER
from diconet.problems.tsp.search.exchange import beside, held
from diconet.problems.tsp.search.local import draw


@njit(**INNER)
@no_type_check
def differences(
    tour, pos, link, other, other_pos, other_link, adjacent, rest, degree, differing
):  # fmt: skip
    """Finds the edges that only one of two tours has; returns how many cities have any.

    Links are paths outside, not edges: each tour has its own.

    `adjacent` receives each city's neighbours on the first tour. `rest` receives its neighbours by
    edges of the first tour only, then those of the other tour only, and `degree` their numbers;
    `differing` receives the cities.
    """
    count = 0
    for city in range(len(tour)):
        a, b = beside(tour, pos, city)
        c, d = beside(other, other_pos, city)
        adjacent[city, 0], adjacent[city, 1] = a, b
        many = 0
        for here in (a, b):
            if here != c and here != d and not held(link, city, here):
                rest[city, many] = here
                many += 1
        degree[city, 0] = many
        many = 0
        for here in (c, d):
            if here != a and here != b and not held(other_link, city, here):
                rest[city, 2 + many] = here
                many += 1
        degree[city, 1] = many
        if degree[city, 0] > 0:
            differing[count] = city
            count += 1
    return count


@njit(**INNER)
@no_type_check
def alternating(rest, degree, differing, count, at, path, cycles, bounds, state):
    """Divides the edges of `differences` at random into cycles; returns their number.

    Cycle j is `cycles[bounds[j] : bounds[j + 1]]`. Its edges are those between cities in a row,
    the first one an edge of the first tour, and last the edge back to its start. `at` must hold -1
    everywhere, and does so again in the end.
    """
    many, size = 0, 0
    bounds[0] = 0
    while count > 0:
        which = int(draw(state) * count)
        start = differing[which]
        if degree[start, 0] == 0:
            count -= 1
            differing[which] = differing[count]
            continue
        length, path[0], at[start, 0] = 0, start, 0
        while True:
            here, kind = path[length], length & 1
            if degree[here, kind] == 0:  # back at the start, or where a tour leaves the part
                at[here, kind] = -1
                length -= 1
                if length < 0:
                    break
                continue
            slot = 2 * kind + (int(draw(state) * 2) if degree[here, kind] == 2 else 0)
            there = rest[here, slot]
            _use(rest, degree, here, there, kind)
            _use(rest, degree, there, here, kind)
            length += 1
            path[length] = there
            begin = at[there, length & 1]
            if begin < 0:
                at[there, length & 1] = length
                continue
            for k in range(begin, length):
                cycles[size] = path[k + (begin & 1)]
                size += 1
                if k > begin:
                    at[path[k], k & 1] = -1
            many += 1
            bounds[many] = size
            length = begin
    return many


@njit(**INNER)
@no_type_check
def _use(rest, degree, here, there, kind):
    """Removes an edge from those that are left."""
    low = 2 * kind
    if rest[here, low] == there:
        rest[here, low] = rest[here, low + 1]
    degree[here, kind] -= 1


@njit(**INNER)
@no_type_check
def subtours(pos, cycle, onward, keys, nodes, label, sizes):
    """The number of closed tours that a tour falls into if the edges along a cycle are replaced.

    The edges removed, of which there are k, cut the tour into segments. `label[j]` is the subtour
    that segment j becomes part of, `sizes` the number of cities of each subtour. Segment j ends at
    position `keys[j]`; its first city is node 2 j, its last city node 2 j + 1. `onward[i]` is where
    in `cycle` the edge leads that is added behind the i-th removed one.
    """
    n, k = len(pos), len(cycle) // 2
    for i in range(k):
        a, b = pos[cycle[2 * i]], pos[cycle[2 * i + 1]]
        forward = b == a + 1 or (b == 0 and a == n - 1)
        keys[i] = ((a if forward else b) << 32) | (2 * i if forward else 2 * i + 1)
    _sort(keys, k)
    node, mate = nodes[0], nodes[1]
    for j in range(k):
        end = keys[j] & 0xFFFFFFFF
        keys[j] >>= 32
        node[end] = 2 * j + 1
        node[end ^ 1] = 2 * j + 2 if j + 1 < k else 0
        label[j] = -1
    for i in range(k):
        a, b = node[2 * i + 1], node[onward[i]]
        mate[a] = b
        mate[b] = a
    parts = 0
    for j in range(k):
        if label[j] >= 0:
            continue
        here, size = 2 * j, 0
        while label[here >> 1] < 0:
            segment = here >> 1
            label[segment] = parts
            size += keys[segment] - keys[segment - 1] if segment > 0 else keys[0] + n - keys[k - 1]
            here = mate[here ^ 1]
        sizes[parts] = size
        parts += 1
    return parts


@njit(**INNER)
@no_type_check
def segment_of(keys, k, place):
    """The segment of a position, given the k positions at which segments end."""
    low, high = 0, k
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] < place:
            low = middle + 1
        else:
            high = middle
    return low if low < k else 0


@njit(**INNER)
@no_type_check
def _sort(keys, k):
    """Sorts the first k numbers (Shell's method: compiling a library's takes a second)."""
    gap = 1
    while gap < k // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, k):
            key, j = keys[i], i
            while j >= gap and keys[j - gap] > key:
                keys[j] = keys[j - gap]
                j -= gap
            keys[j] = key
        gap //= 3
