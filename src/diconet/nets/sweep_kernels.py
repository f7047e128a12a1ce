"""The loops of the sweep split: orders, costs and features of every candidate cut."""

from __future__ import annotations

import typing

import numpy as np
from numba import njit

from diconet.nets.sweep_directions import (
    AXES,
    DIRECTIONS,
    SMOOTH,
    centred,
    normal,
    principal_axes,
    smoothed,
    spread_directions,
)

CUT_FEATURES = 24
"""Numbers that describe one candidate cut."""

SPANS = 0  # four columns: log of the projected span around the cut, in windows of 1, 3, 8, n / 4k
FLATNESS = 4  # log of the deviation along the direction, relative to the local distance
OFF_CENTRE = 5  # 0 in the middle, 1 at the ends
SAVED = 6  # the share of the cost that the cut takes off
UNEVEN_COST, UNEVEN_SPREAD = 7, 8  # how the two sides differ, in all and per item
LEAVES, TWO_LEAVES, THREE_LEAVES = 9, 10, 11  # log2 of the budget over 4, and whether it is small
PHASE = 12  # cosine that is 1 where clusters of equal size end
OFF_CENTRE_LEAVES = 13  # off the centre, in leaves
IS_SMOOTH = 14  # whether the direction is one of the smoothed
ITEMS_PER_LEAF = 15
VARIANCE = 16  # the direction's share of the variance
SPAN_OF_WIDEST = 17  # log of the widest window's span over the widest of its direction
REGRET = 18  # four columns: see REGRETS
SAVED_OF_BEST, BEST = 22, 23  # the saving over the best one's, and log of the least cost

REGRETS = slice(REGRET, REGRET + 4)
"""Those of them that say by how much (log) a cut costs more than the best of its set."""

_TINY = 1e-12


@typing.no_type_check
def sweep_sets(points, offsets, budgets, max_positions):
    """Features, number per set, position, direction, two costs and orders of all candidates."""
    positions = np.maximum(np.minimum(np.diff(offsets) - 1, max_positions), 0)
    counts = positions * DIRECTIONS
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    total = int(starts[-1])
    features = np.zeros((total, CUT_FEATURES), np.float32)
    position = np.zeros(total, np.int64)
    direction = np.zeros(total, np.int64)
    cost = np.zeros((total, 2), np.float32)
    order = np.zeros((len(points), DIRECTIONS), np.int64)
    points = np.ascontiguousarray(points, dtype=np.float32)
    budgets = budgets.astype(np.float64)
    _sweep_all(
        points, offsets, budgets, starts, positions, features, position, direction, cost, order
    )
    return features, counts, position, direction, cost, order


@njit(cache=True)
@typing.no_type_check
def _sweep_all(
    points, offsets, budgets, starts, positions, features, position, direction, cost, order
):
    """Directions 0 .. 9 sweep smoothed points; then come axes, their refinements, and a last one.

    A direction is refined by turning it to the line between the means of the two sides of its
    cheapest cut, twice; the last one refines the cheapest of the smoothed.
    """
    for node in range(len(offsets) - 1):
        low, high = offsets[node], offsets[node + 1]
        n, d = high - low, points.shape[1]
        if n < 2:
            continue
        x = centred(points[low:high])
        smooth, local = smoothed(x)
        ways = np.zeros((DIRECTIONS, d), np.float32)
        spread_directions(smooth, ways)
        principal_axes(x, ways)
        total = 0.0
        for i in range(n):
            for j in range(d):
                total += x[i, j] * x[i, j]
        left = np.empty((DIRECTIONS, n), np.float64)
        right = np.empty((DIRECTIONS, n), np.float64)
        keys = np.empty((DIRECTIONS, n), np.float32)
        ranks = np.empty((DIRECTIONS, n), np.int64)
        cheapest = np.zeros(DIRECTIONS, np.int64)
        best = 0
        for m in range(DIRECTIONS):
            values = smooth if m < SMOOTH else x
            if m >= SMOOTH + AXES:
                source = best if m == DIRECTIONS - 1 else m - AXES
                normal(x, ranks[source], cheapest[source], ways[m])
                _along(x, x, ways[m], keys[m], ranks[m], left[m], right[m])
                normal(x, ranks[m], _cheapest(left[m], right[m]), ways[m])
            _along(values, x, ways[m], keys[m], ranks[m], left[m], right[m])
            cheapest[m] = _cheapest(left[m], right[m])
            if m < SMOOTH:
                here = left[m, cheapest[m]] + right[m, cheapest[m]]
                if here < left[best, cheapest[best]] + right[best, cheapest[best]]:
                    best = m
        order[low:high] = ranks.T
        rows = slice(starts[node], starts[node + 1])
        _describe(
            keys, left, right, total, local, budgets[node], positions[node],
            features[rows], position[rows], direction[rows], cost[rows],
        )  # fmt: skip


@njit(cache=True, fastmath=True)
@typing.no_type_check
def _along(values, x, way, keys, ranks, left, right):
    """Sorts by the projection of `values`; left and right cost of cutting `x` after c items.

    `x` has mean zero, so the two sides' sums are opposite and one running sum serves both.
    """
    n, d = x.shape
    where = np.empty(n, np.float32)
    for i in range(n):
        key = np.float32(0.0)
        for j in range(d):
            key += values[i, j] * way[j]
        where[i] = key
    ranks[:] = np.argsort(where, kind="mergesort")
    for c in range(n):
        keys[c] = where[ranks[c]]
    sums = np.zeros(d, np.float64)
    squares = 0.0
    left[0] = 0.0
    for c in range(n):
        i = ranks[c]
        size = 0.0
        right[c] = squares
        for j in range(d):
            value = np.float64(x[i, j])
            squares += value * value
            sums[j] += value
            size += sums[j] * sums[j]
        if c + 1 < n:
            left[c + 1] = max(squares - size / (c + 1), 0.0)
            keep = size / (n - c - 1)
            right[c] = keep
    # right[c] holds what the means take off for a cut after c + 1 items; shift it into place
    seen = 0.0
    later = 0.0
    for c in range(n):
        i = ranks[c]
        kept = right[c]
        right[c] = max(squares - seen - later, 0.0) if c else squares
        later = kept
        for j in range(d):
            seen += np.float64(x[i, j]) ** 2


@njit(cache=True)
@typing.no_type_check
def _cheapest(left, right):
    best = 1
    for c in range(1, len(left)):
        if left[c] + right[c] < left[best] + right[best]:
            best = c
    return best


@njit(cache=True)
@typing.no_type_check
def _describe(keys, left, right, total, local, budget, count, features, position, direction, cost):
    """The features of every candidate of one set, unchanged by shift, scale and reflection."""
    n = keys.shape[1]
    inverse = 1 / max(total, 1e-30)
    after = np.zeros(4, np.float64)
    least = np.full(4, 1e300)
    widths = np.zeros(4, np.int64)
    widths[0], widths[1], widths[2] = 1, 3, 8
    widths[3] = max(1, int(n / (4 * budget) + 0.5))
    row = 0
    for m in range(keys.shape[0]):
        deviation = _deviation(keys[m])
        widest = _TINY
        first = row
        for place in range(count):
            c = _cut_at(keys[m], place, count)
            position[row] = c
            direction[row] = m
            cost[row, 0] = left[m, c]
            cost[row, 1] = right[m, c]
            f = features[row]
            for w in range(4):
                span = keys[m, min(c + widths[w] - 1, n - 1)] - keys[m, max(c - widths[w], 0)]
                f[SPANS + w] = np.log(span / (deviation + _TINY) + 1e-4)
                if w == 3:
                    widest = max(widest, span)
            f[FLATNESS] = np.log(deviation / (local + _TINY) + 1e-4)
            f[OFF_CENTRE] = abs(2 * c / n - 1)
            low, high = left[m, c] * inverse, right[m, c] * inverse
            _costs_after(low, high, after)
            for a in range(4):
                least[a] = min(least[a], after[a])
            f[SAVED] = 1 - after[0]
            f[UNEVEN_COST] = abs(low - high) / (low + high + _TINY)
            f[UNEVEN_SPREAD] = np.log((low * (n - c) + 1e-6) / (high * c + 1e-6))
            f[UNEVEN_SPREAD] = min(abs(f[UNEVEN_SPREAD]), 8.0) / 4
            f[LEAVES] = np.log2(budget) / 4
            f[TWO_LEAVES] = budget == 2
            f[THREE_LEAVES] = budget == 3
            f[PHASE] = np.cos(2 * np.pi * c * budget / n)
            f[OFF_CENTRE_LEAVES] = min(budget * abs(c / n - 0.5), 4.0)
            f[IS_SMOOTH] = m < SMOOTH
            f[ITEMS_PER_LEAF] = np.log(n / budget) / 4
            f[VARIANCE] = deviation * deviation * n * inverse
            row += 1
        for r in range(first, row):
            f = features[r]
            f[SPAN_OF_WIDEST] = f[SPANS + 3] - np.log(widest / (deviation + _TINY) + 1e-4)
    gain = max(1 - least[0], _TINY)
    for r in range(row):
        f = features[r]
        _costs_after(cost[r, 0] * inverse, cost[r, 1] * inverse, after)
        for a in range(4):
            f[REGRET + a] = min(np.log((after[a] + 1e-6) / (least[a] + 1e-6)), 5.0)
        f[SAVED_OF_BEST] = f[SAVED] / gain
        f[BEST] = np.log(least[0] + 1e-4)


@njit(cache=True)
@typing.no_type_check
def _costs_after(low, high, after):
    """The cost of the two sides as they are, and cut further as if of 1, 2 or 4 dimensions."""
    after[0] = low + high
    after[1] = (np.cbrt(low) + np.cbrt(high)) ** 3
    after[2] = (np.sqrt(low) + np.sqrt(high)) ** 2
    after[3] = (np.cbrt(low) ** 2 + np.cbrt(high) ** 2) ** 1.5


@njit(cache=True)
@typing.no_type_check
def _deviation(keys):
    mean = 0.0
    for key in keys:
        mean += key
    mean /= len(keys)
    total = 0.0
    for key in keys:
        total += (key - mean) ** 2
    return np.sqrt(total / len(keys))


@njit(cache=True)
@typing.no_type_check
def _cut_at(keys, place, count):
    """The position of candidate `place`: the widest gap within its stretch of the order."""
    n = len(keys)
    if count == n - 1:
        return place + 1
    low = 1 + place * (n - 1) // count
    high = 1 + (place + 1) * (n - 1) // count
    best = low
    for c in range(low, high):
        if keys[c] - keys[c - 1] > keys[best] - keys[best - 1]:
            best = c
    return best
