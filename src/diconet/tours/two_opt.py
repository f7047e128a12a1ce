"""2-opt and Or-opt with neighbour lists: cities whose surroundings changed are looked at again."""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from numba import njit

from diconet.tours.metric import Metric, distance, tour_length
from diconet.tours.moves import after, before, best_insertion, exchange, insert, positions


def two_opt(metric: Metric, near: np.ndarray, tour: np.ndarray) -> np.ndarray:
    """The tour made shorter until no 2-opt or Or-opt move among near cities shortens it."""
    tour = np.array(tour, dtype=np.int32)
    if len(tour) > 3:
        two_opt_in_place(metric.x, metric.y, metric.code, metric.mate, near, tour)
    return tour


@njit(cache=True)
@no_type_check
def two_opt_in_place(x, y, code, mate, near, tour):
    """The search itself, on the tour it is given."""
    n = len(tour)
    pos = positions(tour)
    tiny = 1e-11 * abs(tour_length(x, y, code, mate, tour)) + 1e-300
    queue = tour.copy()
    waiting = np.ones(n, dtype=np.bool_)
    log = np.empty((4, 2), dtype=np.int32)
    head, held = 0, n
    while held > 0:
        city = queue[head]
        head = (head + 1) % n
        held -= 1
        waiting[city] = False
        touched = _improve(x, y, code, mate, near, tour, pos, city, tiny, log)
        while touched[0] >= 0:
            for each in touched:
                if each >= 0 and not waiting[each]:
                    waiting[each] = True
                    queue[(head + held) % n] = each
                    held += 1
            touched = _improve(x, y, code, mate, near, tour, pos, city, tiny, log)


@njit(cache=True)
@no_type_check
def _improve(x, y, code, mate, near, tour, pos, city, tiny, log):
    """Makes one move at a city; gives the cities it touched, or -1 if there was none."""
    best = tiny
    move = (-1, -1, -1)
    for direction in range(2):
        beside = before(tour, pos, city) if direction else after(tour, pos, city)
        step = distance(x, y, code, mate, city, beside)
        for slot in range(near.shape[1]):
            goal = near[city, slot]
            saved = step - distance(x, y, code, mate, city, goal)
            if saved <= tiny:
                break
            other = before(tour, pos, goal) if direction else after(tour, pos, goal)
            gain = (
                saved
                + distance(x, y, code, mate, goal, other)
                - distance(x, y, code, mate, beside, other)
            )
            if gain > best and goal != beside:
                best = gain
                move = (beside, goal, other)
    gain, found = best_insertion(x, y, code, mate, near, tour, pos, city, best, len(tour))
    if gain > best:
        first, last, left, right, goal, other = found
        insert(tour, pos, first, last, left, right, goal, other, log, 0)
        return first, last, left, right, goal, other
    if move[0] >= 0:
        exchange(tour, pos, city, move[0], move[1], move[2])
        return city, move[0], move[1], move[2], -1, -1
    return -1, -1, -1, -1, -1, -1
