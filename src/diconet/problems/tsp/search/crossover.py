"""Tours crossed with one another: edges of one replaced by edges of another, a cycle at a time.

The edges in which two tours differ form cycles that take an edge of each by turns (Nagata &
Kobayashi, 2013: edge assembly crossover). Replacing the edges of one cycle leaves a tour or
several; each of these is joined to its neighbours where that costs least. Of the children of a pair
the one survives that is shorter for the least loss of variety. Where kicks only find what is near
by, this combines what several searches have found.
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from numba import njit

from diconet.problems.tsp.search.exchange import beside, held, positions
from diconet.problems.tsp.search.local import draw
from diconet.problems.tsp.search.metric import distance

_SLOTS = 12  # neighbours of a city whose frequency among the tours is counted
_CHILDREN = 30  # per pair of tours
_SINGLE = 15  # of these, made from a single cycle
_ENOUGH = 0.5  # chance that no further cycle is added to a block
_TRIES = 20  # to find another cycle near by
_WIDE = 10  # near neighbours tried to join two tours


@njit(cache=True, nogil=True)
@no_type_check
def evolve(xy, code, near, link, tours, generations, idle, seed, tiny):
    """Crosses tours in place, each once per generation, with one that follows in random order.

    Returns for how many generations in a row no tour has become shorter, given that it was `idle`
    before. Edges in `link`, which all tours must have, are fixed.
    """
    many, n = tours.shape
    state = np.array([seed], dtype=np.uint64)
    places = np.empty((many, n), dtype=np.int32)
    for i in range(many):
        places[i] = positions(tours[i])
    seen, times = _frequencies(tours)
    surprise = np.zeros(many + 2)
    for i in range(1, many + 1):
        surprise[i] = -(i / many) * np.log(i / many)
    adjacent = np.empty((n, 2), dtype=np.int32)
    rest, degree = np.empty((n, 4), dtype=np.int32), np.empty((n, 2), dtype=np.int8)
    differing = np.empty(n, dtype=np.int32)
    at, path = np.full((n, 2), -1, dtype=np.int32), np.empty(2 * n + 2, dtype=np.int32)
    cycles, bounds = np.empty(2 * n + 2, dtype=np.int32), np.empty(n + 2, dtype=np.int64)
    owner, which = np.full(n, -1, dtype=np.int32), np.arange(n + 2)
    taken, block = np.empty(n + 2, dtype=np.int32), np.empty(2 * n + 2, dtype=np.int32)
    onward = np.empty(n + 2, dtype=np.int32)
    keys = np.empty(n + 1, dtype=np.int64)
    nodes = np.empty((2, 2 * n + 2), dtype=np.int32)
    label, sizes = np.empty(n + 1, dtype=np.int32), np.empty(n + 1, dtype=np.int32)
    out, put = np.empty((4 * n, 2), dtype=np.int32), np.empty((4 * n, 2), dtype=np.int32)
    kept_out, kept_put = np.empty_like(out), np.empty_like(put)
    order = np.arange(many)
    first, first_place = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)
    for _ in range(generations):
        for i in range(many - 1, 0, -1):
            j = int(draw(state) * (i + 1))
            order[i], order[j] = order[j], order[i]
        first[:], first_place[:] = tours[order[0]], places[order[0]]
        changed = 0
        for i in range(many):
            tour, pos = tours[order[i]], places[order[i]]
            if i + 1 < many:
                other, other_pos = tours[order[i + 1]], places[order[i + 1]]
            else:
                other, other_pos = first, first_place
            count = _differences(tour, pos, other, other_pos, adjacent, rest, degree, differing)
            if count == 0:
                continue
            which[:] = np.arange(n + 2)
            cut = _cycles(rest, degree, differing, count, at, path, cycles, bounds, state)
            best, kept, own = 0.0, 0, 0
            for j in range(cut):
                for place in range(bounds[2 * j], bounds[2 * j + 1]):
                    owner[cycles[place]] = j
            for k in range(_CHILDREN):
                single = k < min(cut, _SINGLE)
                if single:
                    j = k + int(draw(state) * (cut - k))
                    which[k], which[j] = which[j], which[k]
                elif cut < 3:
                    break
                length = _block(
                    near, cycles, bounds, owner, which[k] if single else int(draw(state) * cut), single, taken, block, onward, state
                )
                gain, changes = _child(
                    xy, code, near, link, tour, pos, adjacent, block[:length], onward, keys, nodes,
                    label, sizes, out, put, tiny,
                )  # fmt: skip
                if gain <= tiny:
                    continue
                loss = _loss(seen, times, surprise, out, put, changes)
                worth = gain / loss if loss > 1e-9 else gain / 1e-9
                if worth > best:
                    best, kept, own = worth, changes, length // 2
                    kept_out[:changes], kept_put[:changes] = out[:changes], put[:changes]
            for j in range(cut):
                for place in range(bounds[2 * j], bounds[2 * j + 1]):
                    owner[cycles[place]] = -1
            if kept > 0:
                _replace(adjacent, kept_out, kept_put, 0, own)
                for k in range(own, kept, 2):
                    _replace(adjacent, kept_out, kept_put, k, k + 2)
                _count(seen, times, kept_out, kept, -1)
                _count(seen, times, kept_put, kept, 1)
                _walk(adjacent, tour, pos)
                changed += 1
        idle = 0 if changed > 0 else idle + 1
    return idle


@njit(cache=True, nogil=True)
@no_type_check
def _differences(tour, pos, other, other_pos, adjacent, rest, degree, differing):
    """Fills the neighbours on a tour and the edges it does not share; returns how many cities differ.

    `rest` has the edges of the tour that the other lacks, then those of the other; `degree` counts
    both.
    """
    count = 0
    for city in range(len(tour)):
        a, b = beside(tour, pos, city)
        c, d = beside(other, other_pos, city)
        adjacent[city, 0], adjacent[city, 1] = a, b
        many = 0
        for here in (a, b):
            if here != c and here != d:
                rest[city, many] = here
                many += 1
        degree[city, 0] = degree[city, 1] = many
        if many == 0:
            continue
        differing[count] = city
        count += 1
        many = 2
        for here in (c, d):
            if here != a and here != b:
                rest[city, many] = here
                many += 1
    return count


@njit(cache=True, nogil=True)
@no_type_check
def _cycles(rest, degree, differing, count, at, path, cycles, bounds, state):
    """Divides the differing edges into cycles that alternate; returns their number.

    Cycle j is `cycles[bounds[2 j] : bounds[2 j + 1]]`; its first edge is one of the tour's own.
    """
    many, size = 0, 0
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
            if degree[here, kind] == 0:  # only at the start: elsewhere a way in has a way out
                at[here, 0] = -1
                break
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
            bounds[2 * many] = size
            for k in range(begin, length):
                cycles[size] = path[k + (begin & 1)]
                size += 1
                if k > begin:
                    at[path[k], k & 1] = -1
            bounds[2 * many + 1] = size
            many += 1
            length = begin
    return many


@njit(cache=True, nogil=True)
@no_type_check
def _use(rest, degree, here, there, kind):
    """Takes an edge out of those that are left."""
    low = 2 * kind
    if rest[here, low] == there:
        rest[here, low] = rest[here, low + 1]
    degree[here, kind] -= 1


@njit(cache=True, nogil=True)
@no_type_check
def _block(near, cycles, bounds, owner, centre, single, taken, block, onward, state):
    """Copies a cycle, unless `single` with some of those near it; returns the number of its ends.

    `onward[i]` is the end that the edge put in after the i-th edge taken out leads to.
    """
    many, length = 1, 0
    taken[0] = centre
    done = 0
    while True:
        while done < many:
            low, high = bounds[2 * taken[done]], bounds[2 * taken[done] + 1]
            start = length
            for place in range(low, high):
                block[length] = cycles[place]
                length += 1
            for i in range(start // 2, length // 2):
                onward[i] = 2 * i + 2
            onward[length // 2 - 1] = start
            done += 1
        if single or (many > 1 and draw(state) < _ENOUGH):
            return length
        found = False
        for _ in range(_TRIES):
            city = block[int(draw(state) * length)]
            other = near[city, int(draw(state) * near.shape[1])]
            if other < 0 or owner[other] < 0:
                continue
            found = True
            for j in range(many):
                found = found and taken[j] != owner[other]
            if found:
                taken[many] = owner[other]
                many += 1
                break
        if not found:
            return length


@njit(cache=True, nogil=True)
@no_type_check
def _child(
    xy, code, near, link, tour, pos, adjacent, cycle, onward, keys, nodes, label, sizes, out, put, tiny
):  # fmt: skip
    """What replacing the edges of a cycle gains, and the number of edges that are replaced.

    `out` and `put` receive the edges; the tour stays as it is.
    """
    k = len(cycle) // 2
    gain = 0.0
    for i in range(k):
        a, b = cycle[2 * i], cycle[2 * i + 1]
        c = cycle[onward[i]]
        gain += distance(xy, code, a, b) - distance(xy, code, b, c)
        out[i, 0], out[i, 1], put[i, 0], put[i, 1] = a, b, b, c
    if gain <= tiny:
        return gain, k
    parts = _subtours(pos, cycle, onward, k, keys, nodes, label, sizes)
    if parts == 1:
        return gain, k
    _replace(adjacent, out, put, 0, k)
    changes = k
    while parts > 1:
        won = _join(
            xy, code, near, link, tour, pos, adjacent, k, parts, keys, label, sizes, out, put, changes
        )  # fmt: skip
        gain += won
        if won == -np.inf:
            break
        changes += 2
        parts -= 1
        if gain <= tiny:
            break
    for low in range(changes - 2, k - 1, -2):
        _replace(adjacent, put, out, low, low + 2)
    _replace(adjacent, put, out, 0, k)
    return gain, changes


@njit(cache=True, nogil=True)
@no_type_check
def _subtours(pos, cycle, onward, k, keys, nodes, label, sizes):
    """Labels the segments left by removing a cycle's edges by the subtour they end up in.

    Segment j ends at position `keys[j]`. Its first city is node 2 j, its last city node 2 j + 1.
    """
    n = len(pos)
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
            seg = here >> 1
            label[seg] = parts
            size += keys[seg] - keys[seg - 1] if seg > 0 else keys[0] + n - keys[k - 1]
            here = mate[here ^ 1]
        sizes[parts] = size
        parts += 1
    return parts


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
@no_type_check
def _join(
    xy, code, near, link, tour, pos, adjacent, k, parts, keys, label, sizes, out, put, changes
):  # fmt: skip
    """Joins the smallest subtour to another at two edges; returns the gain, -inf if it cannot be."""
    n = len(tour)
    small = 0
    for part in range(1, parts):
        if sizes[part] < sizes[small]:
            small = part
    best, other = -np.inf, -1
    for j in range(k):
        if label[j] != small:
            continue
        low = keys[j - 1] + 1 if j > 0 else keys[k - 1] + 1 - n
        for p in range(low, keys[j] + 1):
            a = tour[p]  # below 0 from the end
            for b in adjacent[a]:
                if held(link, a, b):
                    continue
                base = distance(xy, code, a, b)
                for c in near[a, :_WIDE]:
                    if c < 0:
                        break
                    part = label[_segment(keys, k, pos[c])]
                    if part == small:
                        continue
                    gain = base - distance(xy, code, a, c)
                    for d in adjacent[c]:
                        won = gain + distance(xy, code, c, d) - distance(xy, code, b, d)
                        if won > best and not held(link, c, d):
                            best, other = won, part
                            out[changes, 0], out[changes, 1] = a, b
                            out[changes + 1, 0], out[changes + 1, 1] = c, d
                            put[changes, 0], put[changes, 1] = a, c
                            put[changes + 1, 0], put[changes + 1, 1] = b, d
    if other < 0:
        return best
    _replace(adjacent, out, put, changes, changes + 2)
    for j in range(k):
        if label[j] == small:
            label[j] = other
    sizes[other] += sizes[small]
    # the last label takes the place of the one that is gone
    sizes[small] = sizes[parts - 1]
    for j in range(k):
        if label[j] == parts - 1:
            label[j] = small
    return best


@njit(cache=True, nogil=True)
@no_type_check
def _segment(keys, k, place):
    """The segment of a position."""
    low, high = 0, k
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] < place:
            low = middle + 1
        else:
            high = middle
    return low if low < k else 0


@njit(cache=True, nogil=True)
@no_type_check
def _replace(adjacent, out, put, low, high):
    """Replaces some edges among the neighbours of cities."""
    for i in range(low, high):
        for a, b in ((out[i, 0], out[i, 1]), (out[i, 1], out[i, 0])):
            adjacent[a, 0 if adjacent[a, 0] == b else 1] = -1
    for i in range(low, high):
        for a, b in ((put[i, 0], put[i, 1]), (put[i, 1], put[i, 0])):
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


@njit(cache=True, nogil=True)
@no_type_check
def _frequencies(tours):
    """Each city's neighbours on all tours, and how many tours have each of them beside it."""
    n = tours.shape[1]
    seen = np.full((n, _SLOTS), -1, dtype=np.int32)
    times = np.zeros((n, _SLOTS), dtype=np.int32)
    edges = np.empty((n, 2), dtype=np.int32)
    for tour in tours:
        for place in range(n):
            edges[place, 0], edges[place, 1] = tour[place - 1], tour[place]
        _count(seen, times, edges, n, 1)
    return seen, times


@njit(cache=True, nogil=True)
@no_type_check
def _slot(seen, times, a, b):
    """Where an edge is counted; if it is not, a free place, or -1."""
    free = -1
    for k in range(_SLOTS):
        if seen[a, k] == b:
            return k
        if times[a, k] == 0:
            free = k
    return free


@njit(cache=True, nogil=True)
@no_type_check
def _count(seen, times, edges, many, change):
    """Counts edges in or out; the rare ones for which there is no place do not count."""
    for i in range(many):
        for a, b in ((edges[i, 0], edges[i, 1]), (edges[i, 1], edges[i, 0])):
            k = _slot(seen, times, a, b)
            if k >= 0 and (change > 0 or seen[a, k] == b):
                seen[a, k] = b
                times[a, k] = max(times[a, k] + change, 0)


@njit(cache=True, nogil=True)
@no_type_check
def _loss(seen, times, surprise, out, put, changes):
    """By how much replacing edges lowers the entropy of the edges of all tours."""
    total = 0.0
    for i in range(changes):
        a, b = out[i, 0], out[i, 1]
        k = _slot(seen, times, a, b)
        many = times[a, k] if k >= 0 and seen[a, k] == b else 1
        total += surprise[many] - surprise[max(many - 1, 0)]
        a, b = put[i, 0], put[i, 1]
        k = _slot(seen, times, a, b)
        many = times[a, k] if k >= 0 and seen[a, k] == b else 0
        total += surprise[many] - surprise[many + 1]
    return total
