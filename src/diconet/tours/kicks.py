"""Kicks: small random changes to a tour, repaired by 2-opt and Or-opt, and kept if they help.

A kick touches a short stretch of the tour, and what follows is undone move by move if it did not
pay, so a kick costs the same on ten cities or on a hundred thousand (Johnson & McGeoch, 1997).
Repair by single moves takes a third of the time that Lin-Kernighan chains take, and is as good.
"""

from __future__ import annotations

import time
from typing import no_type_check

import numpy as np
from numba import njit

from diconet.tours.metric import Metric, distance, tour_length
from diconet.tours.moves import positions, reverse
from diconet.tours.two_opt import improve

_STRETCH = 50
_LONGEST = 25_000  # shorter limits cost more in length than they save in time
_BATCH = 20_000


def kicked(
    metric: Metric,
    near: np.ndarray,
    tour: np.ndarray,
    *,
    kicks: int,
    seconds: float | None = None,
    seed: int = 0,
) -> np.ndarray:
    """The tour after so many kicks, or as many as fit into `seconds` if given."""
    tour = np.array(tour, dtype=np.int32)
    if len(tour) < 8:
        return tour
    start = time.monotonic()
    args = (metric.x, metric.y, metric.code, metric.mate, near, tour, positions(tour))
    rng = np.random.default_rng(seed)
    done = 0
    while done < kicks and (seconds is None or time.monotonic() - start <= seconds):
        batch = min(_BATCH, kicks - done)
        _kick(*args, batch, rng)
        done += batch
    return tour


@njit(cache=True)
@no_type_check
def _kick(x, y, code, mate, near, tour, pos, kicks, rng):
    """Swaps two neighbouring short stretches, repairs, and undoes it all unless that helped."""
    n = len(tour)
    tiny = 1e-11 * abs(tour_length(x, y, code, mate, tour)) + 1e-300
    waiting = np.zeros(n, dtype=np.bool_)
    queue = np.empty(4096, dtype=np.int32)
    log = np.empty((10_000, 2), dtype=np.int32)
    ends = np.empty(6, dtype=np.int32)
    stretch = max(1, min(_STRETCH, (n - 2) // 3))
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
            if used + 4 > len(log):
                continue
            won, used, many = improve(
                x, y, code, mate, near, tour, pos, city, tiny, _LONGEST, log, used, ends
            )
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
