"""What local search is made of: a tour as an array, turning a stretch of it around, fixed edges."""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from numba import njit


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
def after(tour, pos, city):
    """The next city."""
    i = pos[city] + 1
    return tour[0] if i == len(tour) else tour[i]


@njit(cache=True, nogil=True)
@no_type_check
def before(tour, pos, city):
    """The city before."""
    i = pos[city]
    return tour[len(tour) - 1] if i == 0 else tour[i - 1]


@njit(cache=True, nogil=True)
@no_type_check
def beside(tour, pos, forward, city):
    """The next city, or the one before where the tour is read backward."""
    return after(tour, pos, city) if forward else before(tour, pos, city)


@njit(cache=True, nogil=True)
@no_type_check
def held(link, a, b):
    """Whether the edge between two neighbours on the tour must stay."""
    return link[a, 0] == b or link[a, 1] == b


@njit(cache=True, nogil=True)
@no_type_check
def reverse(tour, pos, start, stop):
    """Turns the stretch of positions start .. stop around, over the end of the array if need be.

    Doing it again undoes it.
    """
    n = len(tour)
    if start <= stop:
        while start < stop:
            a, b = tour[start], tour[stop]
            tour[start], tour[stop] = b, a
            pos[b], pos[a] = start, stop
            start += 1
            stop -= 1
        return
    for _ in range((stop - start + 1 + n) // 2):
        a, b = tour[start], tour[stop]
        tour[start], tour[stop] = b, a
        pos[b], pos[a] = start, stop
        start += 1
        if start == n:
            start = 0
        stop -= 1
        if stop < 0:
            stop = n - 1


@njit(cache=True, nogil=True)
@no_type_check
def exchange(tour, pos, a, b, c, d, log, used):
    """Replaces the edges a-b and c-d, both met in the same direction, by a-c and b-d.

    Turns the shorter of the two stretches around, notes it in `log`, and gives the entries in use.
    """
    n = len(tour)
    if after(tour, pos, a) == b:
        start, stop = pos[b], pos[c]
    else:
        start, stop = pos[c], pos[b]
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
    log[used, 0] = start
    log[used, 1] = stop
    return used + 1


@njit(cache=True, nogil=True)
@no_type_check
def undo(tour, pos, log, used, kept):
    """Takes back what the log holds beyond its first `kept` entries."""
    while used > kept:
        used -= 1
        reverse(tour, pos, log[used, 0], log[used, 1])
    return kept
