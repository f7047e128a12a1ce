"""Lin-Kernighan: chains of exchanges, each taken as far as it pays (Johnson & McGeoch, 1997)."""

from __future__ import annotations

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
)

_DEPTH = 8
_BREADTH = 5


def lin_kernighan(metric: Metric, near: np.ndarray, tour: np.ndarray) -> np.ndarray:
    """The tour made shorter until no chain of exchanges or Or-opt move shortens it."""
    tour = np.array(tour, dtype=np.int32)
    if len(tour) >= 5:
        _descend(metric.x, metric.y, metric.code, metric.mate, near, tour)
    return tour


@njit(cache=True)
@no_type_check
def _descend(x, y, code, mate, near, tour):
    """Chains from every city, again where something changed, until none helps."""
    n = len(tour)
    pos = positions(tour)
    log = np.empty((_DEPTH + 8, 2), dtype=np.int32)
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
        gain, many = _chain(x, y, code, mate, near, tour, pos, city, tiny, log, ends)
        while gain > 0:
            for k in range(many):
                if not waiting[ends[k]]:
                    waiting[ends[k]] = True
                    queue[(head + held) % n] = ends[k]
                    held += 1
            gain, many = _chain(x, y, code, mate, near, tour, pos, city, tiny, log, ends)


@njit(cache=True)
@no_type_check
def _chain(x, y, code, mate, near, tour, pos, city, tiny, log, ends):
    """The best chain of exchanges that starts at a city, or else the best insertion of it.

    Gives what it gained (0 if nothing) and how many `ends` moved.
    """
    for direction in range(2):
        beside = before(tour, pos, city) if direction else after(tour, pos, city)
        step = distance(x, y, code, mate, city, beside)
        for choice in range(min(_BREADTH, near.shape[1])):
            if step - distance(x, y, code, mate, beside, near[beside, choice]) <= tiny:
                break
            gain, many = _follow(
                x, y, code, mate, near, tour, pos, city, beside, choice, tiny, log, ends
            )
            if gain > tiny:
                return gain, many
    gain, found = best_insertion(x, y, code, mate, near, tour, pos, city, tiny, len(tour))
    if gain > tiny:
        first, last, left, right, goal, other = found
        insert(tour, pos, first, last, left, right, goal, other, log, 0)
        ends[0], ends[1], ends[2], ends[3], ends[4], ends[5] = found
        return gain, 6
    return 0.0, 0


@njit(cache=True)
@no_type_check
def _follow(x, y, code, mate, near, tour, pos, home, last, choice, tiny, log, ends):
    """One chain: its first goal is given, each further one is the most promising.

    The tour is closed by last-home at every step; the chain is cut back to where that was best.
    """
    closed, best = 0.0, tiny
    used, best_used, best_many, many = 0, 0, 0, 0
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
    return (best, best_many) if used else (0.0, 0)
