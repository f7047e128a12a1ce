"""The compiled loops of the exchange merge: points by cluster, and measures of each cluster.

For each point, `at` holds its cluster (`LABEL`) and its side of its cluster's best cut (`HALF`);
its row `ORDER` lists the points by cluster, those of cluster c from `start[c]` to `start[c + 1]`,
and the next two rows those of an exchange on trial, with their clusters. For each of k clusters,
`sums` holds the sum of its points and, last, their weight; `means` its mean, `near` the nearest
clusters and `gap` their distances; and `seen` its cost, the estimated gain of cutting it and the
estimated loss of removing it. Rows of `sums` and `means` from k on are for the clusters of a trial.

Few arguments, a flat call hierarchy and no arrays made inside keep the first call short: numba
compiles everything that a function calls along with it.
"""

from __future__ import annotations

import typing

import numpy as np
from numba import njit

from diconet.core.compiled import INNER
from diconet.problems.kmeans.distances import FAR, TINY, add, between, update_mean

LABEL, HALF, ORDER, TRIED, SLOT = range(5)
GAIN, LOSS, COST, SCORES = 0, 1, 2, 3

ROUNDING = 1e-5
"""A point moves only if that lowers its cost by more than this share."""

_POWER_STEPS, _HALVINGS = 3, 3


@njit(**INNER)
@typing.no_type_check
def sort_points(at, start):
    """Sorts the points by cluster, keeping their order within it."""
    n, k = at.shape[1], len(start) - 1
    for c in range(k + 1):
        start[c] = 0
    for i in range(n):
        start[at[LABEL, i]] += 1
    total = 0
    for c in range(k + 1):
        total += start[c]
        start[c] = total
    for p in range(n):
        i = n - 1 - p
        start[at[LABEL, i]] -= 1
        at[ORDER, start[at[LABEL, i]]] = i


@njit(**INNER)
@typing.no_type_check
def add_up(x, w, at, start, sums, means):
    """Computes the sums and mean of the points of each cluster."""
    k = len(start) - 1
    for c in range(k):
        for j in range(sums.shape[1]):
            sums[c, j] = 0.0
    for i in range(len(w)):
        add(x, i, w[i], sums, at[LABEL, i])
    for c in range(k):
        update_mean(sums, c, means)


@njit(**INNER)
@typing.no_type_check
def move(x, i, weight, sums, means, old, new):
    """Moves a point to another cluster (from none if `old` is -1) and updates the means."""
    if old >= 0:
        add(x, i, -weight, sums, old)
        update_mean(sums, old, means)
    add(x, i, weight, sums, new)
    update_mean(sums, new, means)


@njit(**INNER)
@typing.no_type_check
def explained(sums, c):
    """The part of its points' sum of squares that a cluster explains."""
    total, d = 0.0, sums.shape[1] - 1
    for j in range(d):
        total += sums[c, j] * sums[c, j]
    return total / (sums[c, d] + TINY)


@njit(**INNER)
@typing.no_type_check
def settle(x, w, at, start, sums, means, near):
    """Moves points, one after the other, to the cluster near theirs where they cost least.

    Means are updated at once, so no move raises the cost (Hartigan's rule). A cluster keeps its
    last point. Returns how many moved.
    """
    k, d, moved = len(start) - 1, means.shape[1], 0
    for c in range(k):
        left = start[c + 1] - start[c]
        for p in range(start[c], start[c + 1]):
            i = at[ORDER, p]
            rest = sums[c, d] - w[i]
            if left < 2 or rest <= ROUNDING * w[i]:
                continue  # alone, a point costs nothing
            best, least = c, np.inf
            for q in range(-1, near.shape[1]):
                b = c if q < 0 else near[c, q]
                after = (1 + ROUNDING) * rest if q < 0 else sums[b, d] + w[i] + TINY
                cost = between(x, i, means, b) * sums[b, d] / after
                if cost < least:
                    best, least = b, cost
            if best != c:
                at[LABEL, i] = best
                left -= 1
                moved += 1
                move(x, i, w[i], sums, means, c, best)
    if moved:
        sort_points(at, start)
    return moved


@njit(**INNER)
@typing.no_type_check
def look(x, w, at, start, means, near, seen, c):
    """Computes the cost of cluster c, and the loss of removing it.

    When it is removed, each of its points goes to the nearest cluster of its region.
    """
    cost, loss = 0.0, 0.0
    for p in range(start[c], start[c + 1]):
        i = at[ORDER, p]
        own, other = FAR, FAR
        for q in range(-1, near.shape[1]):
            far = between(x, i, means, c if q < 0 else near[c, q])
            if q < 0:
                own = far
            elif far < other:
                other = far
        cost += w[i] * (own if own < other else other)
        loss += w[i] * (other - own) if own < other else 0.0
    seen[COST, c], seen[LOSS, c] = cost, loss


@njit(**INNER, fastmath=True)
@typing.no_type_check
def cut_in_two(x, w, at, start, sums, seen, y, c):
    """Computes what cutting a cluster in two saves: along its leading axis, then between the means.

    The axis is found by power iteration, from the coordinate of most variance. `y` has room for the
    centred points and the axis.
    """
    d, low, high = x.shape[1], start[c], start[c + 1]
    way, line = y[high - low], sums[len(start) - 1]
    mass, widest = sums[c, d] + TINY, 0
    for j in range(d):
        way[j] = line[j] = 0.0
    for p in range(high - low):
        i = at[ORDER, low + p]
        for j in range(d):
            y[p, j] = x[i, j] - sums[c, j] / mass
            line[j] += w[i] * y[p, j] * y[p, j]
    for j in range(d):
        widest = j if line[j] > line[widest] else widest
    way[widest] = 1.0
    middle, weight, size = np.float32(0.0), 0.0, 0.0
    for step in range(_POWER_STEPS + _HALVINGS):
        power = step < _POWER_STEPS
        weight, size = 0.0, 0.0
        for j in range(d):
            line[j] = 0.0
        for p in range(high - low):
            i = at[ORDER, low + p]
            key = -middle
            for j in range(d):
                key += y[p, j] * way[j]
            at[HALF, i] = key > 0
            share = key if power else np.float32(key > 0)
            weight += w[i] * share
            for j in range(d):
                line[j] += w[i] * share * y[p, j]
        for j in range(d):
            size += line[j] * line[j]
        if size < TINY:
            break
        # halves have means line / weight and -line / rest: the midpoint, along the line
        rest = abs(mass - weight) + TINY
        if not power:
            middle = np.float32(0.5 * np.sqrt(size) * (1 / (abs(weight) + TINY) - 1 / rest))
        for j in range(d):
            way[j] = line[j] / np.sqrt(size)
    seen[GAIN, c] = 0.0
    if weight > 0 and mass - weight > 1e-9 * mass:
        seen[GAIN, c] = size / weight + size / (mass - weight)
