"""Exchanges of up to ten edges: found without touching the tour, made by rewriting one window.

An exchange takes out the edges t0-t1, t2-t3, ... and puts in t1-t2, t3-t4, ..., and last the way
home to t0 (Lin & Kernighan, 1973). A depth-first search over near neighbours adds up what edges
gain; only where the sum is positive does it ask whether one tour is left (Helsgaun, 2000). The
edges taken out cut the tour into segments. All but the longest are written anew, so the cities that
move are those of one window, whose old content a log keeps for taking it back.
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from numba import njit

from diconet.problems.tsp.search.metric import distance

MOST = 10
"""Edges of an exchange, at most."""

_CUTS, _NODES, _ORDER, _MATES, _AT, _TRIED = (
    10,
    20,
    40,
    50,
    70,
    80,
)  # where in `room` each of its parts begins


@njit(cache=True, nogil=True)
@no_type_check
def new_room():
    """Room for one exchange: its ends, its gains on the way, and how its segments are joined."""
    return np.empty(2 * MOST, dtype=np.int32), np.empty(MOST), np.empty(90, dtype=np.int32)


@njit(cache=True, nogil=True)
@no_type_check
def positions(tour):
    """Where on the tour each city is."""
    pos = np.empty(len(tour), dtype=np.int32)
    for i in range(len(tour)):
        pos[tour[i]] = i
    return pos


@njit(cache=True, nogil=True)
@no_type_check
def held(link, a, b):
    """Whether the edge between two neighbours on the tour must stay."""
    return link[a, 0] == b or link[a, 1] == b


@njit(cache=True, nogil=True)
@no_type_check
def improve(xy, code, near, reach, link, tour, pos, t0, tiny, breadth, t, gains, room):
    """The first exchange found that takes out an edge of t0 and gains more than `tiny`.

    `breadth` says how many near neighbours are tried for each edge put in. Gives the gain and
    the number of edges (0 where there is none); `t` holds the ends, `room` what `rewrite` needs.
    """
    n = len(tour)
    depth = len(breadth)
    at, tried = room[_AT:], room[_TRIED:]
    slots = near.shape[1]
    for first in range(2):
        p = pos[t0]
        if first == 0:
            t1 = tour[p + 1] if p + 1 < n else tour[0]
        else:
            t1 = tour[p - 1] if p > 0 else tour[n - 1]
        if held(link, t0, t1):
            continue
        t[0], t[1] = t0, t1
        gains[0] = distance(xy, code, t0, t1)
        # both count each candidate twice, for its next city and for the one before
        at[0] = tried[0] = 0
        level = 0
        while level >= 0:
            last = t[2 * level + 1]
            k = at[level] >> 1
            c = near[last, k] if k < slots and tried[level] < 2 * breadth[level] else -1
            if c < 0:
                level -= 1
                continue
            gain = gains[level] - reach[last, k]
            if gain <= tiny:  # another may be nearer: lists need not be by length
                at[level] = 2 * k + 2
                tried[level] += 2
                continue
            here = pos[c]
            onward = tour[here + 1] if here + 1 < n else tour[0]
            back = tour[here - 1] if here > 0 else tour[n - 1]
            if onward == last or back == last:
                at[level] += 2
                continue
            d = onward if at[level] & 1 == 0 else back
            at[level] += 1
            tried[level] += 1
            if held(link, c, d) or _taken_out(t, level, c, d):
                continue
            t[2 * level + 2], t[2 * level + 3] = c, d
            gain += distance(xy, code, c, d)
            closed = gain - distance(xy, code, d, t0)
            if closed > tiny and d != t0 and _is_tour(pos, t, level + 2, room):
                return closed, level + 2
            if level + 1 < depth:
                level += 1
                gains[level] = gain
                at[level] = tried[level] = 0
    return 0.0, 0


@njit(cache=True, nogil=True)
@no_type_check
def _taken_out(t, level, c, d):
    """Whether the exchange takes out the edge c-d already."""
    for i in range(level + 1):
        a, b = t[2 * i], t[2 * i + 1]
        if (a == c and b == d) or (a == d and b == c):
            return True
    return False


@njit(cache=True, nogil=True)
@no_type_check
def _is_tour(pos, t, k, room):
    """Whether an exchange of k edges leaves one tour; `room` gets its segments in their new order.

    Segment j ends where the j-th edge taken out begins; its first city is node 2 j, its last city
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


@njit(cache=True, nogil=True)
@no_type_check
def rewrite(tour, pos, k, room, spare, log, windows, used, many):
    """Makes the exchange that `room` describes, and notes the window it changes.

    Gives the entries of `log` and of `windows` in use; those of before if there is no room left.
    """
    n = len(tour)
    longest, size = 0, n - room[_CUTS + k - 1] + room[_CUTS]
    for j in range(1, k):
        this = room[_CUTS + j] - room[_CUTS + j - 1]
        if this > size:
            longest, size = j, this
    total = n - size
    if used + total > len(log) or many == len(windows):
        return used, many
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
    return put(tour, pos, start if start < n else 0, total, spare, log, windows, used, many)


@njit(cache=True, nogil=True)
@no_type_check
def put(tour, pos, start, total, cities, log, windows, used, many):
    """Writes cities into a window of the tour, whose old content goes to the log."""
    n = len(tour)
    windows[many, 0], windows[many, 1] = start, total
    p = start
    for i in range(total):
        log[used + i] = tour[p]
        tour[p] = cities[i]
        pos[cities[i]] = p
        p += 1
        if p == n:
            p = 0
    return used + total, many + 1


@njit(cache=True, nogil=True)
@no_type_check
def take_back(tour, pos, log, windows, used, many):
    """Undoes all that the log holds, last window first."""
    n = len(tour)
    while many > 0:
        many -= 1
        p, total = windows[many, 0], windows[many, 1]
        used -= total
        for i in range(total):
            city = log[used + i]
            tour[p] = city
            pos[city] = p
            p += 1
            if p == n:
                p = 0
