"""Local search on one tour: exchanges until none helps, then kicks that exchanges repair.

A kick picks four edges near each other on the map and swaps the outer two of the three stretches
between them (a double bridge, which no chain of exchanges gives). The edges come from a random walk
among near cities (Applegate, Cook & Rohe, 2003) that starts where the tour and the lists disagree.
The result is undone unless it paid, or cost little while the search is warm (Martin, Otto &
Felten, 1992).
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from numba import njit

from diconet.problems.tsp.search.exchange import (
    beside,
    held,
    improve,
    keep,
    measured,
    new_room,
    positions,
    put,
    rewrite,
    take_back,
)
from diconet.problems.tsp.search.metric import distance

_TRIES = 20  # cities drawn for a kick until one is in doubt
_WINDOWS = 400  # exchanges that one kick may lead to
_MOVED = 50_000  # cities that an exchange may move
# Near neighbours tried per edge in a descent. The first edge tries its whole list, since an edge
# across the map can often be replaced only by way of a far neighbour.
_DEEP = np.array([99, 5, 3, 2, 1])
_QUICK = np.array([5, 2, 1, 1, 1])  # the same for repairing a kick


@njit(cache=True, nogil=True)
@no_type_check
def search(xy, code, near, link, tour, core, descend, kicks, walk, tiny, seed, warm, cool):
    """Shortens a tour in place and returns by how much; edges in `link` are fixed.

    Kicks start at cities of `core`. With `descend`, exchanges come first, which is needed unless
    the tour has already been through that. What a kick may cost decreases from `warm` to `cool`, in
    units of the edges it removes; unless both are 0, the final tour may be longer, and the gain
    negative.
    """
    n = len(tour)
    if n < 5:
        return 0.0
    far = measured(xy, code, near)
    pos = positions(tour)
    spare = np.empty(n, dtype=np.int32)
    windows = np.empty((_WINDOWS, 2), dtype=np.int32)
    waiting = np.zeros(n, dtype=np.bool_)
    queue = np.empty(n, dtype=np.int32)
    t, gains, room = new_room()
    total = 0.0
    if descend:
        total += _descend(
            code, near, far, link, tour, pos, tiny, _DEEP, t, gains, room, spare,
            windows, waiting, queue,
        )  # fmt: skip
    kept = tour.copy()
    state = np.array([seed], dtype=np.uint64)
    for number in range(kicks if len(core) > 0 else 0):
        heat = warm + (cool - warm) * number / kicks
        total += _kick(
            code, near, far, link, tour, pos, tiny, _QUICK, t, gains, room, spare, kept,
            windows, waiting, queue, core, walk, state, heat,
        )  # fmt: skip
    return total


@njit(cache=True, nogil=True)
@no_type_check
def _descend(
    code, near, far, link, tour, pos, tiny, breadth, t, gains, room, spare, windows,
    waiting, queue,
):  # fmt: skip
    """Makes exchanges from every city, again where something changed, until none helps."""
    n = len(tour)
    total = 0.0
    head, count = 0, n
    for i in range(n):
        queue[i] = tour[i]
        waiting[i] = True
    while count > 0:
        city = queue[head]
        head = head + 1 if head + 1 < n else 0
        count -= 1
        waiting[city] = False
        won, k = improve(code, near, far, link, tour, pos, city, tiny, breadth, t, gains, room)
        if k == 0:
            continue
        if rewrite(tour, pos, k, room, spare, windows, np.int64(0), _MOVED) == 0:
            continue  # too far apart on a long tour
        total += won
        for i in range(2 * k):
            if not waiting[t[i]]:
                waiting[t[i]] = True
                at = head + count
                queue[at if at < n else at - n] = t[i]
                count += 1
    return total


@njit(cache=True, nogil=True)
@no_type_check
def _kick(
    code, near, far, link, tour, pos, tiny, breadth, t, gains, room, spare, kept, windows,
    waiting, queue, core, walk, state, heat,
):  # fmt: skip
    """Makes one kick and repairs it; returns the gain, 0 if it was undone."""
    n = len(tour)
    p, q, r, s = _places(near, tour, pos, core, walk, state)
    if p == q or q == r or r == s or s - p > _MOVED:
        return 0.0
    for here in (p, q, r, s):
        if held(link, tour[here % n], tour[(here + 1) % n]):
            return 0.0
    gain = 0.0
    count = 0
    for here in (p, q, r, s):
        a, b = tour[here % n], tour[(here + 1) % n]
        gain += distance(far, code, a, b)
        for city in (a, b):
            if not waiting[city]:
                waiting[city] = True
                queue[count] = city
                count += 1
    bar = heat * gain / 4 * np.log(1.0 - draw(state)) if heat > 0 else 0.0
    size = np.int64(0)  # a plain 0 has another type, and would be compiled separately
    for start, stop in ((r, s), (q, r), (p, q)):  # X Y Z becomes Z Y X
        for here in range(start + 1, stop + 1):
            spare[size] = tour[here if here < n else here - n]
            size += 1
    many = put(tour, pos, (p + 1) % n, size, spare, windows, np.int64(0))
    for here in (p, p + s - r, p + s - q, s):
        gain -= distance(far, code, tour[here % n], tour[(here + 1) % n])
    while count > 0:
        count -= 1
        city = queue[count]
        waiting[city] = False
        won, k = improve(code, near, far, link, tour, pos, city, tiny, breadth, t, gains, room)
        if k == 0:
            continue
        before = many
        many = rewrite(tour, pos, k, room, spare, windows, many, _MOVED)
        if many == before:  # no space left to undo it
            continue
        gain += won
        for i in range(2 * k):
            if not waiting[t[i]]:
                waiting[t[i]] = True
                queue[count] = t[i]
                count += 1
    if gain < bar:
        take_back(tour, pos, kept, windows, many)
        return 0.0
    keep(tour, kept, windows, many)
    return gain


@njit(cache=True, nogil=True)
@no_type_check
def _places(near, tour, pos, core, walk, state):
    """Four positions in order along the tour, of cities reached by a walk among near ones.

    What lies between the first and the last is rewritten, so the widest gap is left out.
    """
    n = len(tour)
    at = np.empty(4, dtype=np.int64)
    city = _doubtful(near, tour, pos, core, state)
    for k in range(4):
        at[k] = pos[city]
        for j in range(k, 0, -1):  # insertion: compiling a sort takes a second
            if at[j] < at[j - 1]:
                at[j], at[j - 1] = at[j - 1], at[j]
        for _ in range(1 + int(draw(state) * walk)):
            onward = near[city, int(draw(state) * near.shape[1])]
            if onward >= 0:
                city = onward
    first, widest = 0, at[0] + n - at[3]
    for k in range(1, 4):
        if at[k] - at[k - 1] > widest:
            first, widest = k, at[k] - at[k - 1]
    p = at[first]
    q = at[(first + 1) % 4]
    r = at[(first + 2) % 4]
    s = at[(first + 3) % 4]
    return p, q if q >= p else q + n, r if r >= p else r + n, s if s >= p else s + n


@njit(cache=True, nogil=True)
@no_type_check
def _doubtful(near, tour, pos, core, state):
    """A random city of the core, preferably one in doubt.

    That is one whose two likeliest neighbours, the first two of its list, are not both beside it on
    the tour; where both are, there is seldom much to gain.
    """
    for _ in range(_TRIES):
        city = core[int(draw(state) * len(core))]
        onward, back = beside(tour, pos, city)
        for k in range(2):
            if near[city, k] != onward and near[city, k] != back:
                return city
    return city


@njit(cache=True, nogil=True)
@no_type_check
def draw(state):
    """A number in [0, 1) (xorshift; Marsaglia, 2003)."""
    s = state[0]
    s ^= s << np.uint64(13)
    s ^= s >> np.uint64(7)
    s ^= s << np.uint64(17)
    state[0] = s
    return (s >> np.uint64(11)) * (1.0 / 9007199254740992.0)
