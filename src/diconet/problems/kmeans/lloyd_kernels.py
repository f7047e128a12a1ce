"""Lloyd's algorithm with bounds (Hamerly, 2010): most points need no distance in most rounds.

Points are taken in blocks of a fixed size, and what the blocks find is added up in their order, so
the answer is the same however many threads share the work.
"""

from __future__ import annotations

import typing

import numpy as np
from numba import njit

_FAR = np.float32(3e38)
_TINY = 1e-30


@njit(cache=True, fastmath=True)
@typing.no_type_check
def _two_nearest(x, i, centres, far, mine):
    """The nearest centre, its squared distance and that of the second; ties stay with `mine`."""
    d, k = centres.shape
    far[:] = 0
    for j in range(d):
        value = x[i, j]
        for c in range(k):
            gap = value - centres[j, c]
            far[c] += gap * gap
    least = _FAR
    for c in range(k):
        least = min(least, far[c])
    best = mine
    if mine < 0 or far[mine] > least:
        best = 0
        while far[best] > least:
            best += 1
    far[best] = _FAR
    second = _FAR
    for c in range(k):
        second = min(second, far[c])
    return best, least, second


@njit(cache=True, nogil=True)
@typing.no_type_check
def first_round(x, w, low, high, centres, labels, upper, lower, sums, mass):
    """Each point of a block to its nearest centre, with the distances to the two nearest."""
    far = np.empty(centres.shape[1], np.float32)
    for i in range(low, high):
        best, least, second = _two_nearest(x, i, centres, far, labels[i])
        labels[i] = best
        upper[i] = np.sqrt(least)
        lower[i] = np.sqrt(second)
        mass[best] += w[i]
        for j in range(x.shape[1]):
            sums[best, j] += w[i] * x[i, j]


@njit(cache=True, nogil=True)
@typing.no_type_check
def next_round(x, w, low, high, centres, moved, apart, labels, upper, lower, sums, mass):
    """The same once centres have moved: only points whose bounds allow a change are looked at.

    `moved` is how far each centre went, `apart` half the way from each to its nearest. `sums` and
    `mass` get what the block's changes add. How many points changed is the answer.
    """
    d, k = centres.shape
    most, second, which = 0.0, 0.0, -1
    for c in range(k):
        if moved[c] > most:
            most, second, which = moved[c], most, c
        elif moved[c] > second:
            second = moved[c]
    far = np.empty(k, np.float32)
    changed = 0
    for i in range(low, high):
        mine = labels[i]
        upper[i] += moved[mine]
        lower[i] -= second if mine == which else most
        bound = max(apart[mine], lower[i])
        if upper[i] <= bound:
            continue
        own = np.float32(0.0)
        for j in range(d):
            gap = x[i, j] - centres[j, mine]
            own += gap * gap
        upper[i] = np.sqrt(own)
        if upper[i] <= bound:
            continue
        best, least, runner_up = _two_nearest(x, i, centres, far, mine)
        upper[i] = np.sqrt(least)
        lower[i] = np.sqrt(runner_up)
        if best != mine:
            labels[i] = best
            changed += 1
            mass[mine] -= w[i]
            mass[best] += w[i]
            for j in range(d):
                sums[mine, j] -= w[i] * x[i, j]
                sums[best, j] += w[i] * x[i, j]
    return changed


@njit(cache=True, fastmath=True)
@typing.no_type_check
def half_apart(centres):
    """Half the distance from each centre to the nearest other one."""
    d, k = centres.shape
    half = np.empty(k)
    far = np.empty(k, np.float32)
    for a in range(k):
        far[:] = 0
        for j in range(d):
            value = centres[j, a]
            for c in range(k):
                gap = value - centres[j, c]
                far[c] += gap * gap
        far[a] = _FAR
        half[a] = 0.5 * np.sqrt(np.min(far))
    return half


@njit(cache=True)
@typing.no_type_check
def means_of(sums, mass, centres):
    """New centres in place (features by centres); how far each has moved."""
    d, k = centres.shape
    moved = np.zeros(k)
    for c in range(k):
        if mass[c] <= 0:
            continue
        for j in range(d):
            new = np.float32(sums[c, j] / mass[c])
            moved[c] += (new - centres[j, c]) ** 2
            centres[j, c] = new
        moved[c] = np.sqrt(moved[c])
    return moved
