"""Compiled merges that scan two halves and decide by learned forms, in one pass per level."""

from __future__ import annotations

import math
from typing import no_type_check

import numpy as np
from numba import njit

from diconet.core.compiled import INNER, KERNEL


@njit(**INNER, inline="always")
@no_type_check
def _of_pair(items, first, second, one, other):
    """One of (1, first item's features, second item's features), times another one."""
    width = items.shape[1]
    value = 1.0
    for place in (one, other):
        if place > width:
            value *= items[second, place - width - 1]
        elif place > 0:
            value *= items[first, place - 1]
    return value


@njit(**KERNEL)
@no_type_check
def form_of_pair(items, first, second, coefficients, pairs):
    """A form of two items, summed in the order of its terms; zero terms are skipped."""
    total = 0.0
    for term in range(len(coefficients)):
        if coefficients[term] != 0.0:
            one, other = pairs[term]
            total += coefficients[term] * _of_pair(items, first, second, one, other)
    return total


@njit(**KERNEL)
@no_type_check
def merge_ordered(items, offsets, middle, coefficients, pairs):
    """The rows of every node in order, and how many pairs were compared.

    A node's rows from its offset to its middle are in order, and so are those after it; if all rows
    lie before the middle, the node is a leaf, whose rows are inserted one by one.
    """
    order = np.empty(len(items), dtype=np.int64)
    compared = np.zeros(len(middle), dtype=np.int64)
    for node in range(len(middle)):
        start, half, stop = offsets[node], middle[node], offsets[node + 1]
        if half == stop:
            for row in range(start, stop):
                place = row
                while place > start:
                    compared[node] += 1
                    if form_of_pair(items, order[place - 1], row, coefficients, pairs) >= 0.0:
                        break
                    order[place] = order[place - 1]
                    place -= 1
                order[place] = row
            continue
        left, right = start, half
        for place in range(start, stop):
            takes_right = left == half
            if left < half and right < stop:
                compared[node] += 1
                takes_right = form_of_pair(items, left, right, coefficients, pairs) < 0.0
            if takes_right:
                order[place] = right
                right += 1
            else:
                order[place] = left
                left += 1
    return order, compared


@njit(**INNER)
@no_type_check
def _along(items, rows, middle, axes):
    """Merges two halves of rows into one order; returns the coordinate and the comparisons made.

    Each half is sorted along its own one of `axes` (-1 for any). If these differ, the coordinate in
    which the rows extend farther is used, and the other half is sorted along it.
    """
    axis, compared = max(axes[0], axes[1]), 0
    if axis == -1 or (axes[0] != axes[1] and min(axes[0], axes[1]) >= 0):
        x, y = items[rows, 0], items[rows, 1]
        axis = 0 if x.max() - x.min() > y.max() - y.min() else 1
    for half, own in ((rows[:middle], axes[0]), (rows[middle:], axes[1])):
        if own != axis and len(half) > 1:
            half[:] = half[np.argsort(items[half, axis], kind="mergesort")]
            compared += len(half) * math.ceil(math.log2(len(half)))
    merged = np.empty_like(rows)
    left, right = 0, middle
    for place in range(len(rows)):
        both = left < middle and right < len(rows)
        if right == len(rows) or (both and items[rows[left], axis] <= items[rows[right], axis]):
            merged[place] = rows[left]
            left += 1
        else:
            merged[place] = rows[right]
            right += 1
    rows[:] = merged
    return axis, compared


@njit(**INNER)
@no_type_check
def _dominated(items, row, other, coefficients, pairs):
    """Whether `other` dominates `row`: no form is negative, and at least one is positive."""
    some = False
    for form in range(len(coefficients)):
        value = form_of_pair(items, row, other, coefficients[form], pairs)
        if value < 0.0:
            return False
        some = some or value > 0.0
    return some


@njit(**KERNEL)
@no_type_check
def merge_fronts(items, offsets, middle, coefficients, pairs):
    """The rows of every node by their first feature, which of them stay, and how many were tested.

    Each half is sorted by the first feature. A row is compared with the rows of the other half
    just before and just after it in that order; at a leaf, with all others.
    """
    order = np.arange(len(items))
    stays = np.ones(len(items), dtype=np.bool_)
    tested = np.zeros(len(middle), dtype=np.int64)
    sorted_by, unsorted = np.array([0, 0]), np.array([-1, 0])
    for node in range(len(middle)):
        start, half, stop = offsets[node], middle[node], offsets[node + 1]
        _along(items, order[start:stop], half - start, sorted_by if half < stop else unsorted)
        if half == stop:
            for row in range(start, stop):
                for other in range(start, stop):
                    tested[node] += 1
                    if _dominated(items, row, other, coefficients, pairs):
                        stays[row] = False
                        break
            continue
        for low, high, begin, end in ((start, half, half, stop), (half, stop, start, half)):
            after = begin  # the first row of the other half that does not come before this row
            beyond = begin  # the first row that comes after it
            for row in range(low, high):
                while after < end and items[after, 0] < items[row, 0]:
                    after += 1
                while beyond < end and items[beyond, 0] <= items[row, 0]:
                    beyond += 1
                for other in (beyond - 1, after):
                    if begin <= other < end and stays[row]:
                        tested[node] += 1
                        if _dominated(items, row, other, coefficients, pairs):
                            stays[row] = False
    return order, stays, tested


@njit(**KERNEL)
@no_type_check
def form_of_step(items, row, x, y, coefficients, pairs):
    """A form of a point in the plane (inputs 1 and 2) and an offset from it (3 and 4)."""
    total = 0.0
    for term in range(len(coefficients)):
        if coefficients[term] != 0.0:
            value = coefficients[term]
            for place in pairs[term]:
                if place == 3:
                    value *= x
                elif place == 4:
                    value *= y
                elif place > 0:
                    value *= items[row, place - 1]
            total += value
    return total


@njit(**INNER)
@no_type_check
def _box(items, start, stop):
    """The minimum and maximum of each coordinate."""
    low, high = np.full(2, np.inf), np.full(2, -np.inf)
    for row in range(start, stop):
        for axis in range(2):
            low[axis] = min(low[axis], items[row, axis])
            high[axis] = max(high[axis], items[row, axis])
    return low, high


@njit(**INNER)
@no_type_check
def _gap(low, high, value):
    """How far a number lies outside an interval."""
    return max(low - value, value - high, 0.0)


@njit(**KERNEL)
@no_type_check
def merge_closest(items, offsets, middle, axes, best, ends, reach, coefficients, pairs):
    """The rows of every node sorted along one coordinate, and which; its closest pair; the work.

    `axes`, `best` and `ends` hold the coordinate along which every half is sorted, and its closest
    pair. Only rows within `reach` times the closer pair's distance of the other half's bounding box
    are candidates, and of these only pairs that close along the coordinate. All distances are given
    by the form.
    """
    order = np.arange(len(items))
    along = np.empty(len(middle), dtype=np.int64)
    compared = np.zeros(len(middle), dtype=np.int64)
    found = np.full(len(middle), np.inf)
    pair = np.full((len(middle), 2), -1, dtype=np.int64)
    strip = np.empty(len(items), dtype=np.int64)
    for node in range(len(middle)):
        start, half, stop = offsets[node], middle[node], offsets[node + 1]
        if start == stop:
            along[node] = -1
            continue
        own = axes[2 * node : 2 * node + 2]
        axis, compared[node] = _along(items, order[start:stop], half - start, own)
        along[node] = axis if stop - start > 1 else -1
        for side in range(2):
            if best[2 * node + side] < found[node]:
                found[node] = best[2 * node + side]
                pair[node] = ends[2 * node + side]
        low_0, high_0 = _box(items, start, half)
        low_1, high_1 = _box(items, half, stop)
        wide = reach * reach * found[node]
        count = 0
        for place in range(start, stop):
            row = order[place]
            low, high = (low_1, high_1) if row < half else (low_0, high_0)
            x, y = _gap(low[0], high[0], items[row, 0]), _gap(low[1], high[1], items[row, 1])
            near = half == stop or found[node] == np.inf
            if near or form_of_step(items, row, x, y, coefficients, pairs) < wide:
                strip[count] = row
                count += 1
        for here in range(count):
            row = strip[here]
            for there in range(here + 1, count):
                other = strip[there]
                x, y = items[other, 0] - items[row, 0], items[other, 1] - items[row, 1]
                wide = reach * reach * found[node]
                ahead = form_of_step(items, row, (1 - axis) * x, axis * y, coefficients, pairs)
                if half < stop and ahead > wide:
                    break
                compared[node] += 1
                value = form_of_step(items, row, x, y, coefficients, pairs)
                if value < found[node]:
                    found[node] = value
                    pair[node, 0], pair[node, 1] = row, other
    return order, along, found, pair, compared
