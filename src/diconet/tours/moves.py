"""What local search is made of: a tour as an array, and turning a stretch of it around."""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from numba import njit

from diconet.tours.metric import distance


@njit(cache=True)
@no_type_check
def positions(tour):
    """Where on the tour each city is."""
    pos = np.empty(len(tour), dtype=np.int32)
    for i in range(len(tour)):
        pos[tour[i]] = i
    return pos


@njit(cache=True)
@no_type_check
def after(tour, pos, city):
    """The next city."""
    i = pos[city] + 1
    return tour[0] if i == len(tour) else tour[i]


@njit(cache=True)
@no_type_check
def before(tour, pos, city):
    """The city before; an array's index -1 is its last."""
    return tour[pos[city] - 1]


@njit(cache=True)
@no_type_check
def reverse(tour, pos, start, stop):
    """Turns the stretch of positions start .. stop around, over the end of the array if need be.

    Doing it again undoes it.
    """
    n = len(tour)
    size = stop - start + 1
    if size <= 0:
        size += n
    for _ in range(size // 2):
        a, b = tour[start], tour[stop]
        tour[start], tour[stop] = b, a
        pos[b], pos[a] = start, stop
        start += 1
        if start == n:
            start = 0
        stop -= 1
        if stop < 0:
            stop = n - 1


@njit(cache=True)
@no_type_check
def span(n, start, stop):
    """How many cities have to move to turn start .. stop around, or else all the others."""
    size = stop - start + 1
    if size <= 0:
        size += n
    return min(size, n - size)


@njit(cache=True)
@no_type_check
def exchange(tour, pos, a, b, c, d):
    """Replaces the edges a-b and c-d, both met in the same direction, by a-c and b-d.

    Turns the shorter of the two stretches around and gives its positions.
    """
    n = len(tour)
    if after(tour, pos, a) == b:
        start, stop = pos[b], pos[c]
    else:
        start, stop = pos[a], pos[d]
    size = stop - start + 1
    if size <= 0:
        size += n
    if 2 * size > n:
        start, stop = stop + 1, start - 1
        if start == n:
            start = 0
        if stop < 0:
            stop = n - 1
    reverse(tour, pos, start, stop)
    return start, stop


@njit(cache=True)
@no_type_check
def best_insertion(x, y, code, mate, near, tour, pos, city, tiny, longest):
    """A better place for up to three cities in a row that begin at `city` (Or-opt).

    Places further away along the tour than `longest` are not tried. Gives (gain, first and last
    of the stretch, the cities around it, the two it goes between); its first comes next to the
    first of those two.
    """
    best = tiny
    found = (city, city, city, city, city, city)
    for direction in range(2):
        last = city
        for size in range(3):
            if size > 0:
                last = before(tour, pos, last) if direction else after(tour, pos, last)
            if direction:
                left, right = after(tour, pos, city), before(tour, pos, last)
            else:
                left, right = before(tour, pos, city), after(tour, pos, last)
            if left in (last, right) or right == city:
                break
            freed = (
                distance(x, y, code, mate, left, city)
                + distance(x, y, code, mate, last, right)
                - distance(x, y, code, mate, left, right)
            )
            if freed <= best:
                continue
            for slot in range(near.shape[1]):
                goal = near[city, slot]
                to_goal = distance(x, y, code, mate, city, goal)
                if freed - to_goal <= best:
                    break
                offset = (pos[goal] - pos[city]) if not direction else (pos[city] - pos[goal])
                if offset < 0:
                    offset += len(tour)
                if offset <= size:  # the goal is part of the stretch
                    continue
                if min(offset, len(tour) - offset) > longest:
                    continue
                for side in range(2):
                    other = after(tour, pos, goal) if side else before(tour, pos, goal)
                    if other in (city, last):
                        continue
                    gain = (
                        freed
                        - to_goal
                        - distance(x, y, code, mate, last, other)
                        + distance(x, y, code, mate, goal, other)
                    )
                    if gain > best:
                        best = gain
                        found = (city, last, left, right, goal, other)
    return best, found


@njit(cache=True)
@no_type_check
def insert(tour, pos, first, last, left, right, goal, other, log, used):
    """Moves the stretch first .. last from between left and right to between goal and other.

    Made of at most three exchanges, which are noted in `log`.
    """
    # In the direction left, first .. last, right, the edge goal-other is met as (u, v).
    forward = after(tour, pos, left) == first
    if (after(tour, pos, goal) == other) == forward:
        u, v = goal, other
    else:
        u, v = other, goal
    # left [first .. last] right .. u v  ->  left u .. right last .. first v
    log[used, 0], log[used, 1] = exchange(tour, pos, left, first, u, v)
    used += 1
    # left u .. right last  ->  left right .. u last
    if u != right:
        log[used, 0], log[used, 1] = exchange(tour, pos, left, u, right, last)
        used += 1
    if goal == u and first != last:  # now u last .. first v; wanted: u first .. last v
        log[used, 0], log[used, 1] = exchange(tour, pos, u, last, first, v)
        used += 1
    return used
