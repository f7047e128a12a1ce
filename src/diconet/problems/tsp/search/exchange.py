"""Exchanges of up to ten edges: found without changing the tour, made by rewriting one window.

An exchange removes the edges t0-t1, t2-t3, ... and adds t1-t2, t3-t4, ..., and last the edge
back to t0 (Lin & Kernighan, 1973). A depth-first search over near neighbours sums the gains of
edges; only if the sum is positive does it check whether one tour is left (Helsgaun, 2000). The
removed edges cut the tour into segments. All but the longest are rewritten, so the cities that
move are those of one window. Given a stored copy of the tour, windows can be undone.
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from numba import njit

from diconet.core.compiled import INNER, KERNEL
from diconet.problems.tsp.search.metric import distance

MOST = 10
"""The maximum number of edges in an exchange."""

_CUTS, _NODES, _ORDER, _MATES, _AT, _LEFT = (
    10,
    20,
    40,
    50,
    70,
    80,
)  # where in `room` each of its parts begins
_FIRST = 5  # neighbours whose distance is stored


@njit(**INNER)
@no_type_check
def new_room():
    """Work arrays for one exchange: its ends, its partial gains, and its segments in new order."""
    return np.empty(2 * MOST, dtype=np.int32), np.empty(MOST), np.empty(90, dtype=np.int32)


@njit(**KERNEL)
@no_type_check
def positions(tour):
    """The position of each city on the tour."""
    pos = np.empty(len(tour), dtype=np.int32)
    for i in range(len(tour)):
        pos[tour[i]] = i
    return pos


@njit(**INNER)
@no_type_check
def beside(tour, pos, city):
    """The next city on the tour, and the previous one."""
    here = pos[city]
    after = tour[here + 1] if here + 1 < len(tour) else tour[0]
    return after, tour[here - 1]  # -1 is the last position


@njit(**INNER)
@no_type_check
def held(link, a, b):
    """Whether the edge between two neighbours on the tour is fixed."""
    return link[a, 0] == b or link[a, 1] == b


@njit(**INNER)
@no_type_check
def measured(xy, code, near):
    """Each city's coordinates, and the distances of its nearest and of its first neighbours."""
    n, slots = near.shape
    far = np.empty((n, 8))
    for i in range(n):
        far[i, 0], far[i, 1], far[i, 2] = xy[i, 0], xy[i, 1], np.inf
        for k in range(min(slots, _FIRST)):
            there = near[i, k]  # two numbers of one type, as elsewhere: one function to compile
            far[i, 3 + k] = distance(xy, code, np.int32(i), there) if there >= 0 else np.inf
            far[i, 2] = min(far[i, 2], far[i, 3 + k])
    return far


@njit(**INNER)
@no_type_check
def improve(code, near, far, link, tour, pos, t0, tiny, breadth, t, gains, room):
    """The first exchange found that removes an edge of t0 and gains more than `tiny`.

    `breadth` is the number of near neighbours tried for each added edge, at most 5 except for the
    first. Returns the gain and the number of edges (0 if there is none); `t` holds the ends,
    `room` what `rewrite` needs.
    """
    slots, depth, nobody = near.shape[1], len(breadth), np.int32(-1)
    for first in range(2):
        t1 = beside(tour, pos, t0)[first]
        if held(link, t0, t1):
            continue
        t[0], t[1] = t0, t1
        level, last, base = np.int64(0), t1, distance(far, code, t0, t1)
        # both count each candidate twice, for its next city and for the previous one
        at, left = 0, 2 * breadth[0]
        while True:
            k = at >> 1
            c = near[last, k] if left > 0 and k < slots else nobody
            if c < 0:
                level -= 1
                if level < 0:
                    break
                last, base = t[2 * level + 1], gains[level]
                at, left = room[_AT + level], room[_LEFT + level]
                continue
            gain = base - (far[last, 3 + k] if k < _FIRST else distance(far, code, last, c))
            if gain <= tiny:  # another may be nearer: lists need not be sorted by length
                at += 2
                left -= 2
                continue
            onward, back = beside(tour, pos, c)
            if onward == last or back == last:
                at += 2
                continue
            side = at & 1
            d = back if side else onward
            at += 1
            left -= 1
            if held(link, c, d) or _taken_out(t, level, c, d):
                continue
            t[2 * level + 2], t[2 * level + 3] = c, d
            gain += distance(far, code, c, d)
            closed = gain - distance(far, code, d, t0)
            # two edges leave one tour if they are removed in opposite directions
            whole = closed > tiny and d != t0 and (level > 0 or side != first)
            if whole and _is_tour(pos, t, level + 2, room):
                return closed, level + 2
            if level + 1 < depth and gain - far[d, 2] > tiny:
                gains[level] = base
                room[_AT + level], room[_LEFT + level] = at, left
                level += 1
                last, base = d, gain
                at, left = 0, 2 * breadth[level]
    return 0.0, 0


@njit(**INNER)
@no_type_check
def _taken_out(t, level, c, d):
    """Whether the exchange already removes the edge c-d."""
    for i in range(level + 1):
        a, b = t[2 * i], t[2 * i + 1]
        if (a == c and b == d) or (a == d and b == c):
            return True
    return False


@njit(**INNER)
@no_type_check
def _is_tour(pos, t, k, room):
    """Whether an exchange of k edges leaves one tour; `room` receives its segments in new order.

    Segment j ends where the j-th removed edge begins; its first city is node 2 j, its last city
    node 2 j + 1.
    """
    n = len(pos)
    for i in range(k):
        a, b = pos[t[2 * i]], pos[t[2 * i + 1]]
        forward = b == a + 1 or (b == 0 and a == n - 1)
        cut = a if forward else b
        j = i
        while j > 0 and room[_CUTS + j - 1] > cut:
            room[_CUTS + j] = room[_CUTS + j - 1]
            room[j] = room[j - 1]
            j -= 1
        room[_CUTS + j] = cut
        room[j] = 2 * i if forward else 2 * i + 1
    for j in range(k):
        end = room[j]
        room[_NODES + end] = 2 * j + 1
        room[_NODES + (end ^ 1)] = 2 * j + 2 if j + 1 < k else 0
    for i in range(k):
        a = room[_NODES + 2 * i + 1]
        b = room[_NODES + (2 * i + 2 if i + 1 < k else 0)]
        room[_MATES + a] = b
        room[_MATES + b] = a
    node, count = 0, 0
    while True:
        room[_ORDER + count] = node
        count += 1
        node = room[_MATES + (node ^ 1)]
        if node == 0 or count == k:
            return node == 0 and count == k


@njit(**INNER)
@no_type_check
def rewrite(tour, pos, k, room, spare, windows, many, most):
    """Makes the exchange that `room` describes, and records the window it changes.

    Returns the number of windows recorded, unchanged if there is no space left or more than `most`
    cities would move.
    """
    n = len(tour)
    longest, size = 0, n - room[_CUTS + k - 1] + room[_CUTS]
    for j in range(1, k):
        this = room[_CUTS + j] - room[_CUTS + j - 1]
        if this > size:
            longest, size = j, this
    if n - size > most or many == len(windows):
        return many
    at = 0
    while room[_ORDER + at] >> 1 != longest:
        at += 1
    turned = room[_ORDER + at] & 1
    w = 0
    for i in range(1, k):
        ahead = i if turned == 0 else k - i
        node = room[_ORDER + (at + ahead) % k] ^ turned
        j = node >> 1
        low = room[_CUTS + (j - 1 if j > 0 else k - 1)] + 1
        high = room[_CUTS + j]
        many_here = high - low + 1 if high >= low else high - low + 1 + n
        p, step = (low if low < n else 0, 1) if node & 1 == 0 else (high, -1)
        for _ in range(many_here):
            spare[w] = tour[p]
            w += 1
            p += step
            if p == n:
                p = 0
            elif p < 0:
                p = n - 1
    start = room[_CUTS + longest] + 1
    return put(tour, pos, start if start < n else 0, n - size, spare, windows, many)


@njit(**INNER)
@no_type_check
def put(tour, pos, start, total, cities, windows, many):
    """Writes cities into a window of the tour, and records it."""
    n = len(tour)
    windows[many, 0], windows[many, 1] = start, total
    for i in range(min(total, n - start)):
        tour[start + i] = cities[i]
        pos[cities[i]] = start + i
    for i in range(n - start, total):
        tour[start + i - n] = cities[i]
        pos[cities[i]] = start + i - n
    return many + 1


@njit(**INNER)
@no_type_check
def take_back(tour, pos, kept, windows, many):
    """Restores the tour from the copy `kept`, from which it differs within windows only."""
    n = len(tour)
    for which in range(many):
        p = windows[which, 0]
        for _ in range(windows[which, 1]):
            city = kept[p]
            if tour[p] != city:
                tour[p] = city
                pos[city] = p
            p += 1
            if p == n:
                p = 0


@njit(**INNER)
@no_type_check
def keep(tour, kept, windows, many):
    """Updates the copy `kept` within windows."""
    n = len(tour)
    for which in range(many):
        p = windows[which, 0]
        for _ in range(windows[which, 1]):
            kept[p] = tour[p]
            p += 1
            if p == n:
                p = 0
