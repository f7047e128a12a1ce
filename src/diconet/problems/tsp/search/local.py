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

from diconet.core.compiled import INNER, KERNEL
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


@njit(**KERNEL)
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
    at = np.empty(4, dtype=np.int32)
    total = 0.0
    if descend:
        for i in range(n):
            queue[i] = tour[i]
            waiting[i] = True
        total, _ = _repair(
            code, near, far, link, tour, pos, tiny, _DEEP, t, gains, room, spare, windows,
            waiting, queue, n, total, np.int64(0), False,
        )  # fmt: skip
    kept = tour.copy()
    state = np.array([seed], dtype=np.uint64)
    for number in range(kicks if len(core) > 0 else 0):
        heat = warm + (cool - warm) * number / kicks
        total += _kick(
            code, near, far, link, tour, pos, tiny, _QUICK, t, gains, room, spare, kept,
            windows, waiting, queue, core, walk, state, heat, at,
        )  # fmt: skip
    return total


@njit(**INNER)
@no_type_check
def _repair(
    code, near, far, link, tour, pos, tiny, breadth, t, gains, room, spare, windows,
    waiting, queue, count, gain, many, undo,
):  # fmt: skip
    """Makes exchanges from the first cities of the queue, and where one changed something.

    To be able to `undo` them, it records their windows after the first `many`, and makes no more
    than it can record; it then takes the last city of the queue first. Returns the `gain` so far
    with what exchanges added to it, and how many windows are recorded.
    """
    n, head = len(tour), 0
    while count > 0:
        count -= 1
        city = queue[count if undo else head]
        if not undo:
            head = head + 1 if head + 1 < n else 0
        waiting[city] = False
        won, k = improve(code, near, far, link, tour, pos, city, tiny, breadth, t, gains, room)
        if k == 0:
            continue
        recorded = rewrite(tour, pos, k, room, spare, windows, many, _MOVED)
        if recorded == many:
            continue  # too far apart on a long tour, or no space left
        if undo:
            many = recorded
        gain += won
        for i in range(2 * k):
            if not waiting[t[i]]:
                waiting[t[i]] = True
                last = head + count
                queue[last if last < n else last - n] = t[i]
                count += 1
    return gain, many


@njit(**INNER)
@no_type_check
def _kick(
    code, near, far, link, tour, pos, tiny, breadth, t, gains, room, spare, kept, windows,
    waiting, queue, core, walk, state, heat, at,
):  # fmt: skip
    """Makes one kick and repairs it; returns the gain, 0 if it was undone."""
    n = len(tour)
    _places(near, tour, pos, core, walk, state, at)
    p, q, r, s = at[0], at[1], at[2], at[3]
    if p == q or q == r or r == s or s - p > _MOVED:
        return 0.0
    for i in range(len(at)):
        if held(link, tour[at[i] % n], tour[(at[i] + 1) % n]):
            return 0.0
    gain, count = 0.0, 0
    for i in range(len(at)):
        a, b = tour[at[i] % n], tour[(at[i] + 1) % n]
        gain += distance(far, code, a, b)
        for city in (a, b):
            if not waiting[city]:
                waiting[city] = True
                queue[count] = city
                count += 1
    bar = heat * gain / 4 * np.log(1.0 - draw(state)) if heat > 0 else 0.0
    size = np.int64(0)  # a plain 0 has another type, and would be compiled separately
    for i in range(len(at) - 1, 0, -1):  # X Y Z becomes Z Y X
        for here in range(at[i - 1] + 1, at[i] + 1):
            spare[size] = tour[here if here < n else here - n]
            size += 1
    many = put(tour, pos, (p + 1) % n, size, spare, windows, np.int64(0))
    at[1], at[2] = p + s - r, p + s - q
    for i in range(len(at)):
        gain -= distance(far, code, tour[at[i] % n], tour[(at[i] + 1) % n])
    gain, many = _repair(
        code, near, far, link, tour, pos, tiny, breadth, t, gains, room, spare, windows,
        waiting, queue, count, gain, many, True,
    )  # fmt: skip
    if gain < bar:
        take_back(tour, pos, kept, windows, many)
        return 0.0
    keep(tour, kept, windows, many)
    return gain


@njit(**INNER)
@no_type_check
def _places(near, tour, pos, core, walk, state, at):
    """Sets `at` to positions in order along the tour, of cities reached by a walk among near ones.

    What lies between the first and the last is rewritten, so the widest gap is left out; from there
    on, positions count on beyond the end of the tour.
    """
    n, last = len(tour), len(at) - 1
    city = _doubtful(near, tour, pos, core, state)
    for k in range(len(at)):
        here, j = pos[city], k
        while j > 0 and at[j - 1] > here:  # insertion: compiling a sort takes a second
            at[j] = at[j - 1]
            j -= 1
        at[j] = here
        for _ in range(1 + int(draw(state) * walk)):
            onward = near[city, int(draw(state) * near.shape[1])]
            if onward >= 0:
                city = onward
    first, widest = 0, at[0] + n - at[last]
    for k in range(1, len(at)):
        if at[k] - at[k - 1] > widest:
            first, widest = k, at[k] - at[k - 1]
    for _ in range(first):
        here = at[0] + n
        for k in range(last):
            at[k] = at[k + 1]
        at[last] = here


@njit(**INNER)
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


@njit(**INNER)
@no_type_check
def draw(state):
    """A number in [0, 1) (xorshift; Marsaglia, 2003)."""
    s = state[0]
    s ^= s << np.uint64(13)
    s ^= s >> np.uint64(7)
    s ^= s << np.uint64(17)
    state[0] = s
    return (s >> np.uint64(11)) * (1.0 / 9007199254740992.0)
