"""Local search on one tour: chains until none helps, then kicks that chains repair.

A kick takes four edges near each other on the map and swaps the outer two of the three stretches
between them (a double bridge, which no chain undoes at once). Which edges, a random walk among near
cities says (Applegate, Cook & Rohe, 2003). What follows is taken back unless it paid.
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from numba import njit

from diconet.problems.tsp.search.chains import ENDS, improve
from diconet.problems.tsp.search.metric import distance
from diconet.problems.tsp.search.moves import held, positions, reverse, undo

_LOG = 2_000
_CHAIN = 16  # entries of the log that one chain may need


@njit(cache=True, nogil=True)
@no_type_check
def search(xy, code, near, link, tour, kicks, walk, longest, tiny, seed):
    """Shortens a tour in place and gives by how much; edges in `link` stay."""
    n = len(tour)
    if n < 5:
        return 0.0
    reach = np.empty(near.shape)
    for i in range(n):
        for k in range(near.shape[1]):
            reach[i, k] = distance(xy, code, i, near[i, k]) if near[i, k] >= 0 else np.inf
    pos = positions(tour)
    log = np.empty((_LOG, 2), dtype=np.int32)
    ends = np.empty(ENDS, dtype=np.int32)
    waiting = np.zeros(n, dtype=np.bool_)
    queue = np.empty(n, dtype=np.int32)
    total = _descend(
        xy, code, near, reach, link, tour, pos, tiny, longest, log, ends, waiting, queue
    )
    state = np.array([seed], dtype=np.uint64)
    for _ in range(kicks):
        total += _kick(
            xy, code, near, reach, link, tour, pos, tiny, longest, log, ends, waiting, queue,
            walk, state,
        )  # fmt: skip
    return total


@njit(cache=True, nogil=True)
@no_type_check
def _descend(xy, code, near, reach, link, tour, pos, tiny, longest, log, ends, waiting, queue):
    """Chains from every city, again where something changed, until none helps."""
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
        many = 1
        while many > 0:
            won, _, many = improve(
                xy, code, near, reach, link, tour, pos, city, tiny, longest, log, 0, ends
            )
            total += won
            for k in range(many):
                if not waiting[ends[k]]:
                    waiting[ends[k]] = True
                    at = head + count
                    queue[at if at < n else at - n] = ends[k]
                    count += 1
    return total


@njit(cache=True, nogil=True)
@no_type_check
def _kick(
    xy, code, near, reach, link, tour, pos, tiny, longest, log, ends, waiting, queue, walk, state
):
    """One kick and its repair; gives what was gained, 0 where all was taken back."""
    n = len(tour)
    p, q, r, s = _places(near, tour, pos, walk, state)
    if p == q or q == r or r == s:
        return 0.0
    gain = 0.0
    count = 0
    for here in (p, q, r, s):
        a, b = tour[here % n], tour[(here + 1) % n]
        if held(link, a, b):
            while count > 0:
                count -= 1
                waiting[queue[count]] = False
            return 0.0
        gain += distance(xy, code, a, b)
        for city in (a, b):
            if not waiting[city]:
                waiting[city] = True
                queue[count] = city
                count += 1
    # X Y Z becomes Z Y X: turn all around as one, then each of them.
    x, y = p + (s - r), p + (s - q)
    used = 0
    for start, stop in ((p + 1, s), (p + 1, x), (x + 1, y), (y + 1, s)):
        log[used, 0], log[used, 1] = start % n, stop % n
        reverse(tour, pos, start % n, stop % n)
        used += 1
    for here in (p, x, y, s):
        gain -= distance(xy, code, tour[here % n], tour[(here + 1) % n])
    while count > 0:
        count -= 1
        city = queue[count]
        waiting[city] = False
        if used + _CHAIN > len(log):
            continue
        won, used, many = improve(
            xy, code, near, reach, link, tour, pos, city, tiny, longest, log, used, ends
        )
        gain += won
        for k in range(many):
            if not waiting[ends[k]]:
                waiting[ends[k]] = True
                queue[count] = ends[k]
                count += 1
    if gain < 0:
        undo(tour, pos, log, used, 0)
        return 0.0
    return gain


@njit(cache=True, nogil=True)
@no_type_check
def _places(near, tour, pos, walk, state):
    """Four places in order along the tour, of cities that a walk among near ones leads to.

    What lies between the first and the last is turned around, so the widest gap is left out.
    """
    n = len(tour)
    at = np.empty(4, dtype=np.int64)
    city = int(_random(state) * n)
    for k in range(4):
        at[k] = pos[city]
        for _ in range(1 + int(_random(state) * walk)):
            onward = near[city, int(_random(state) * near.shape[1])]
            if onward >= 0:
                city = onward
    at.sort()
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
def _random(state):
    """A number in [0, 1) (xorshift; Marsaglia, 2003)."""
    s = state[0]
    s ^= s << np.uint64(13)
    s ^= s >> np.uint64(7)
    s ^= s << np.uint64(17)
    state[0] = s
    return (s >> np.uint64(11)) * (1.0 / 9007199254740992.0)
