"""2-opt and Or-opt with neighbour lists: cities whose surroundings changed are looked at again."""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from numba import njit

from diconet.tours.metric import Metric, distance, tour_length
from diconet.tours.moves import after, before, best_insertion, exchange, insert, positions, span


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
    ends = np.empty(6, dtype=np.int32)
    head, held = 0, n
    while held > 0:
        city = queue[head]
        head = (head + 1) % n
        held -= 1
        waiting[city] = False
        many = 6
        while many > 0:
            _, _, many = improve(x, y, code, mate, near, tour, pos, city, tiny, n, log, 0, ends)
            for k in range(many):
                if not waiting[ends[k]]:
                    waiting[ends[k]] = True
                    queue[(head + held) % n] = ends[k]
                    held += 1


@njit(cache=True)
@no_type_check
def improve(x, y, code, mate, near, tour, pos, city, tiny, longest, log, used, ends):
    """Makes the best move at a city, if one gains more than `tiny`.

    Gives what it gained (0 if nothing), the entries of the log in use, and how many `ends` moved.
    Moves that turn around more than `longest` cities are left out.
    """
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
            if gain <= best or goal == beside:
                continue
            start, stop = (goal, beside) if direction else (beside, goal)
            if span(len(tour), pos[start], pos[stop]) <= longest:
                best = gain
                move = (beside, goal, other)
    gain, found = best_insertion(x, y, code, mate, near, tour, pos, city, best, longest)
    if gain > best:
        first, last, left, right, goal, other = found
        used = insert(tour, pos, first, last, left, right, goal, other, log, used)
        ends[0], ends[1], ends[2], ends[3], ends[4], ends[5] = found
        return gain, used, 6
    if move[0] >= 0:
        beside, goal, other = move
        log[used, 0], log[used, 1] = exchange(tour, pos, city, beside, goal, other)
        ends[0], ends[1], ends[2], ends[3] = city, beside, goal, other
        return best, used + 1, 4
    return 0.0, used, 0
