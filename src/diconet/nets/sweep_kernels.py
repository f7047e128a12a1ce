"""Compiled sweeps of a set along a direction: the items in order, and the cost of each cut."""

from __future__ import annotations

import typing

import numpy as np
from numba import njit

from diconet.core.compiled import INNER, KERNEL

AXES = 3
DIRECTIONS = 2 * AXES
"""Directions of a sweep: the principal axes of a set, and each turned to its cheapest cut."""

LEFT, RIGHT, TOTAL, DEVIATION, WIDEST, SPANS = 0, 1, 2, 3, 4, 5
"""Columns of the measures of a cut; SPANS is the first of as many as there are windows."""

WINDOWS = 4
MEASURES = SPANS + WINDOWS

_POWER_STEPS = 4
_TINY = 1e-30


def room_for(most: int, features: int) -> tuple[np.ndarray, ...]:
    """Work arrays for a set of at most `most` items; passed in, the loops compile faster."""
    single = np.empty((most, features), np.float32), np.empty(most, np.float32)
    double = np.empty((most + 1, 2)), np.empty((2, features))
    axes, places = np.empty((AXES, features), np.float32), np.empty((2, most), np.int64)
    return *single, axes, *double, places


@njit(**KERNEL)
@typing.no_type_check
def sweep_sets(points, offsets, budgets, starts, positions, measures, position, orders, room):
    """Measures and positions of every candidate cut, direction by direction, and their orders.

    `room` holds the work arrays of `room_for`.
    """
    d = points.shape[1]
    whole, key, axes, cost, lines, places = room
    order, spare = places[0], places[1]
    for s in range(len(offsets) - 1):
        low, n, count = offsets[s], offsets[s + 1] - offsets[s], positions[s]
        if n < 2:
            continue
        y = whole[:n]
        for j in range(d):
            mean = 0.0
            for p in range(n):
                mean += points[low + p, j]
            for p in range(n):
                y[p, j] = points[low + p, j] - mean / n
        for a in range(AXES):
            _leading_axis(y, axes, a, lines[0])
        for m in range(DIRECTIONS):
            # every second direction is the previous one, turned to its best cut
            total = _sweep(y, axes[m // 2], key, order, spare, cost, lines)
            first = starts[s] + m * count
            last = first + count
            at, seen = position[first:last], measures[first:last]
            _measure(key, order, cost, n, total, budgets[s], at, seen)
            for p in range(n):
                orders[low + p, m] = order[p]


@njit(**INNER, fastmath=True)
@typing.no_type_check
def _leading_axis(y, axes, a, new):
    """The a-th principal axis, by power iteration from the coordinate with most remaining variance.

    If there are no more axes, a diagonal of the existing ones.
    """
    n, d = y.shape
    way = axes[a]
    best, at = -1.0, 0
    for j in range(d):
        spread, free = 0.0, 1.0
        for p in range(n):
            spread += y[p, j] * y[p, j]
        for b in range(a):
            free -= axes[b, j] * axes[b, j]
        if spread * free > best:
            best, at = spread * free, j
    for j in range(d):
        way[j] = j == at
        if a >= d:
            way[j] = (axes[0, j] + axes[(a - d + 1) % d, j]) / np.sqrt(2.0)
    for _ in range(_POWER_STEPS if a < d else 0):
        for j in range(d):
            new[j] = 0.0
        for p in range(n):
            key = np.float32(0.0)
            for j in range(d):
                key += y[p, j] * way[j]
            for j in range(d):
                new[j] += key * y[p, j]
        for b in range(a):
            along = 0.0
            for j in range(d):
                along += new[j] * axes[b, j]
            for j in range(d):
                new[j] -= along * axes[b, j]
        size = 0.0
        for j in range(d):
            size += new[j] * new[j]
        if size < _TINY:
            break
        for j in range(d):
            way[j] = new[j] / np.sqrt(size)


@njit(**INNER, fastmath=True)
@typing.no_type_check
def _sweep(y, way, key, order, spare, cost, lines):
    """Sorts centred points along a direction; computes the costs of both sides of each cut.

    `way` is then turned to the line between the means of the two sides of the cheapest cut. Returns
    the cost without a cut.
    """
    n, d = y.shape
    total = 0.0
    for p in range(n):
        at = np.float32(0.0)
        for j in range(d):
            at += y[p, j] * way[j]
            total += y[p, j] * y[p, j]
        key[p] = at
        order[p] = p
    width = 1
    while width < n:  # merge neighbouring runs: NumPy's sort takes three seconds to compile
        for low in range(0, n, 2 * width):
            i, j = low, min(low + width, n)
            middle, high = j, min(low + 2 * width, n)
            for p in range(low, high):
                if j >= high or (i < middle and key[order[i]] <= key[order[j]]):
                    spare[p] = order[i]
                    i += 1
                else:
                    spare[p] = order[j]
                    j += 1
        for p in range(n):
            order[p] = spare[p]
        width *= 2
    run, line = lines[0], lines[1]
    for j in range(d):
        run[j] = line[j] = 0.0
    squares, most, length = 0.0, -1.0, 0.0
    for r in range(n - 1):
        size = 0.0
        for j in range(d):
            value = y[order[r], j]
            squares += value * value
            run[j] += value
            size += run[j] * run[j]
        cost[r + 1, 0] = max(squares - size / (r + 1), 0.0)
        cost[r + 1, 1] = max(total - squares - size / (n - r - 1), 0.0)
        saved = size / (r + 1) + size / (n - r - 1)
        if saved > most:
            most, length = saved, size
            for j in range(d):
                line[j] = run[j]
    for j in range(d):
        way[j] = -line[j] / np.sqrt(length) if length > _TINY else way[j]
    return total


@njit(**INNER)
@typing.no_type_check
def _measure(key, order, cost, n, total, budget, position, measures):
    """The positions of the candidates along one direction, and their measures.

    Each is at the widest gap within its stretch of the order. The measures are both costs, the
    deviation along the direction, the spans of some windows around the cut, and the widest last
    one.
    """
    mean, spread, widest, count = 0.0, 0.0, np.float32(0.0), len(position)
    for p in range(n):
        mean += key[p] / n
    for p in range(n):
        spread += (key[p] - mean) ** 2 / n
    windows = (1, 3, 8, max(1, int(n / (4 * budget) + 0.5)))
    for r in range(count):
        c, gap = 0, np.float32(-1.0)
        for p in range(1 + r * (n - 1) // count, 1 + (r + 1) * (n - 1) // count):
            here = key[order[p]] - key[order[p - 1]]
            if here > gap:
                c, gap = p, here
        position[r] = c
        measures[r, LEFT], measures[r, RIGHT] = cost[c, 0], cost[c, 1]
        measures[r, TOTAL], measures[r, DEVIATION] = total, np.sqrt(spread)
        for v in range(WINDOWS):
            low, high = max(c - windows[v], 0), min(c + windows[v] - 1, n - 1)
            measures[r, SPANS + v] = key[order[high]] - key[order[low]]
        widest = max(widest, measures[r, SPANS + WINDOWS - 1])
    for r in range(count):
        measures[r, WIDEST] = widest
