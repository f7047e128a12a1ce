"""Lin-Kernighan chains of exchanges, and kicks: small random changes that are kept if they help.

A kick touches a short stretch of the tour, and what follows is undone move by move if it did not
pay, so a kick costs the same on ten cities or on a hundred thousand (Johnson & McGeoch, 1997).
"""

from __future__ import annotations

import time
from typing import no_type_check

import numpy as np
from numba import njit

from diconet.tours.metric import Metric, distance, tour_length
from diconet.tours.moves import (
    after,
    before,
    best_insertion,
    exchange,
    insert,
    positions,
    reverse,
    span,
)

_DEPTH = 8
_BREADTH = 5
_LOG = 100_000
_STRETCH = 50
_LONGEST = 25_000  # shorter limits cost more in length than they save in time
_BATCH = 20_000


def lin_kernighan(
    metric: Metric,
    near: np.ndarray,
    tour: np.ndarray,
    *,
    kicks: int = 0,
    seconds: float | None = None,
    seed: int = 0,
) -> np.ndarray:
    """The tour made shorter by chains of exchanges, then by kicks, within `seconds` if given."""
    tour = np.array(tour, dtype=np.int32)
    if len(tour) < 5:
        return tour
    start = time.monotonic()
    args = (metric.x, metric.y, metric.code, metric.mate, near, tour)
    pos = positions(tour)
    log = np.empty((_LOG, 2), dtype=np.int32)
    _descend(*args, pos, log)
    rng = np.random.default_rng(seed)
    done = 0
    while done < kicks and len(tour) >= 8:
        if seconds is not None and time.monotonic() - start > seconds:
            break
        batch = min(_BATCH, kicks - done)
        _kick(*args, pos, log, batch, rng)
        done += batch
    return tour


@njit(cache=True)
@no_type_check
def _descend(x, y, code, mate, near, tour, pos, log):
    """Chains from every city, again where something changed, until none helps."""
    n = len(tour)
    tiny = 1e-11 * abs(tour_length(x, y, code, mate, tour)) + 1e-300
    queue = tour.copy()
    waiting = np.ones(n, dtype=np.bool_)
    head, held = 0, n
    ends = np.empty(4 * _DEPTH + 16, dtype=np.int32)
    while held > 0:
        city = queue[head]
        head = (head + 1) % n
        held -= 1
        waiting[city] = False
        gain, _, many = _chain(x, y, code, mate, near, tour, pos, city, tiny, n, log, 0, ends)
        while gain > 0:
            for k in range(many):
                if not waiting[ends[k]]:
                    waiting[ends[k]] = True
                    queue[(head + held) % n] = ends[k]
                    held += 1
            gain, _, many = _chain(x, y, code, mate, near, tour, pos, city, tiny, n, log, 0, ends)


@njit(cache=True)
@no_type_check
def _kick(x, y, code, mate, near, tour, pos, log, kicks, rng):
    """Swaps two neighbouring short stretches, repairs, and undoes it all unless that helped."""
    n = len(tour)
    tiny = 1e-11 * abs(tour_length(x, y, code, mate, tour)) + 1e-300
    waiting = np.zeros(n, dtype=np.bool_)
    queue = np.empty(4096, dtype=np.int32)
    ends = np.empty(4 * _DEPTH + 16, dtype=np.int32)
    stretch = max(1, min(_STRETCH, (n - 2) // 3))
    longest = _LONGEST
    for _ in range(kicks):
        start = int(rng.random() * n)
        middle = start + 1 + int(rng.random() * stretch)
        stop = middle + 1 + int(rng.random() * stretch)
        cuts = (_loose(mate, tour, start), _loose(mate, tour, middle), _loose(mate, tour, stop))
        if cuts[1] <= cuts[0] or cuts[2] <= cuts[1] or cuts[2] - cuts[0] > n - 2:
            continue
        a, b = tour[cuts[0] % n], tour[(cuts[0] + 1) % n]
        c, d = tour[cuts[1] % n], tour[(cuts[1] + 1) % n]
        e, f = tour[cuts[2] % n], tour[(cuts[2] + 1) % n]
        gain = (
            distance(x, y, code, mate, a, b)
            + distance(x, y, code, mate, c, d)
            + distance(x, y, code, mate, e, f)
            - distance(x, y, code, mate, a, d)
            - distance(x, y, code, mate, e, b)
            - distance(x, y, code, mate, c, f)
        )
        # Stretches A B become B A: turn A B around as one, then each of them.
        turn = cuts[0] + cuts[2] - cuts[1]
        used = 0
        for start, stop in ((cuts[0] + 1, cuts[2]), (cuts[0] + 1, turn), (turn + 1, cuts[2])):
            log[used, 0], log[used, 1] = start % n, stop % n
            reverse(tour, pos, start % n, stop % n)
            used += 1
        held = 0
        for city in (a, b, c, d, e, f):
            if not waiting[city]:
                waiting[city] = True
                queue[held] = city
                held += 1
        while held > 0:
            held -= 1
            city = queue[held]
            waiting[city] = False
            if used + 64 > len(log):
                continue
            won, used, many = _chain(
                x, y, code, mate, near, tour, pos, city, tiny, longest, log, used, ends
            )
            if won > 0:
                gain += won
                for k in range(many):
                    if not waiting[ends[k]] and held < len(queue):
                        waiting[ends[k]] = True
                        queue[held] = ends[k]
                        held += 1
        if gain < 0:
            for k in range(used - 1, -1, -1):
                reverse(tour, pos, log[k, 0], log[k, 1])


@njit(cache=True)
@no_type_check
def _loose(mate, tour, place):
    """This place, or the next if the edge behind it holds a fragment together."""
    n = len(tour)
    if len(mate) and mate[tour[place % n]] == tour[(place + 1) % n]:
        return place + 1
    return place


@njit(cache=True)
@no_type_check
def _chain(x, y, code, mate, near, tour, pos, city, tiny, longest, log, used, ends):
    """The best chain of exchanges that starts at a city, or else the best insertion of it.

    Gives what it gained (0 if nothing), the entries of the log in use, and how many `ends` moved.
    """
    for direction in range(2):
        beside = before(tour, pos, city) if direction else after(tour, pos, city)
        step = distance(x, y, code, mate, city, beside)
        for choice in range(min(_BREADTH, near.shape[1])):
            if step - distance(x, y, code, mate, beside, near[beside, choice]) <= tiny:
                break
            gain, used, many = _follow(
                x,
                y,
                code,
                mate,
                near,
                tour,
                pos,
                city,
                beside,
                choice,
                tiny,
                longest,
                log,
                used,
                ends,
            )
            if gain > tiny:
                return gain, used, many
    gain, found = best_insertion(x, y, code, mate, near, tour, pos, city, tiny, longest)
    if gain > tiny:
        first, last, left, right, goal, other = found
        used = insert(tour, pos, first, last, left, right, goal, other, log, used)
        ends[0], ends[1], ends[2], ends[3], ends[4], ends[5] = found
        return gain, used, 6
    return 0.0, used, 0


@njit(cache=True)
@no_type_check
def _follow(x, y, code, mate, near, tour, pos, home, last, choice, tiny, longest, log, used, ends):
    """One chain: its first goal is given, each further one is the most promising.

    The tour is closed by last-home at every step; the chain is cut back to where that was best.
    """
    n = len(tour)
    begin = used
    closed, best = 0.0, tiny
    best_used, best_many, many = used, 0, 0
    ends[many] = home
    ends[many + 1] = last
    many += 2
    for depth in range(_DEPTH):
        forward = after(tour, pos, home) == last
        open_gain = closed + distance(x, y, code, mate, home, last)
        promise = -1e300
        goal = -1
        for slot in range(near.shape[1]):
            if depth == 0 and slot != choice:
                continue
            city = near[last, slot]
            left = open_gain - distance(x, y, code, mate, last, city)
            if left <= tiny:
                break
            other = before(tour, pos, city) if forward else after(tour, pos, city)
            if city in (home, last) or other == last:
                continue
            start, stop = (last, other) if forward else (home, city)
            if span(n, pos[start], pos[stop]) > longest:
                continue
            worth = left + distance(x, y, code, mate, other, city)
            if worth > promise:
                promise, goal, next_last = worth, city, other
        if goal < 0:
            break
        log[used, 0], log[used, 1] = exchange(tour, pos, home, last, next_last, goal)
        used += 1
        closed = promise - distance(x, y, code, mate, next_last, home)
        ends[many] = goal
        ends[many + 1] = next_last
        many += 2
        last = next_last
        if closed > best:
            best, best_used, best_many = closed, used, many
    while used > best_used:
        used -= 1
        reverse(tour, pos, log[used, 0], log[used, 1])
    if best_used == begin:
        return 0.0, begin, 0
    return best, used, best_many
