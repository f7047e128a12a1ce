"""The loops of the exchange merge: points that move one by one, clusters that are given up or cut.

One node at a time. `x` are its points less their mean, `labels` say which of its k clusters each is
in, `sums` and `count` what each cluster adds up to; labels, sums and counts change in place.
"""

from __future__ import annotations

import typing

import numpy as np
from numba import njit

from diconet.splits.sweep_directions import centred

_REFINEMENTS = 2
_POWER_STEPS = 4
_ENOUGH = 1e-6
"""The share of its cost that a node must save for an exchange to be kept."""


@njit(cache=True)
@typing.no_type_check
def exchange_nodes(points, offsets, counts, labels, passes, tries):
    """Repairs the labels of every node: see `ExchangeMerge`."""
    for node in range(len(offsets) - 1):
        low, high = offsets[node], offsets[node + 1]
        if high - low > 1 and counts[node] > 1:
            _repair(centred(points[low:high]), labels[low:high], counts[node], passes, tries)


@njit(cache=True)
@typing.no_type_check
def _repair(x, labels, k, passes, tries):
    """Settles the points, then exchanges clusters for as long as that pays."""
    n, d = x.shape
    sums = np.zeros((k, d))
    count = np.zeros(k, np.int64)
    for i in range(n):
        count[labels[i]] += 1
        for j in range(d):
            sums[labels[i], j] += x[i, j]
    squares = 0.0
    for i in range(n):
        for j in range(d):
            squares += x[i, j] * x[i, j]
    settle(x, labels, sums, count, passes)
    cost = squares - _explained(sums, count)
    loss, gain = np.empty(k), np.empty(k)
    elsewhere, half = np.empty(n, np.int64), np.zeros(n, np.bool_)
    failed = np.zeros((k, k), np.bool_)
    changed = np.ones(k, np.bool_)
    for _ in range(tries):
        if changed.any():
            losses(x, labels, sums, count, loss, elsewhere)
            gains(x, labels, changed, gain, half)
            failed[:] = False
            changed[:] = False
        given, cut = _best_pair(loss, gain, failed)
        if given < 0:
            return
        old_labels, old_sums, old_count = labels.copy(), sums.copy(), count.copy()
        _exchange(x, labels, sums, count, elsewhere, half, given, cut)
        settle(x, labels, sums, count, passes)
        new_cost = squares - _explained(sums, count)
        if new_cost < (1 - _ENOUGH) * cost:
            cost = new_cost
            for i in range(n):
                if labels[i] != old_labels[i]:
                    changed[labels[i]] = changed[old_labels[i]] = True
        else:
            labels[:], sums[:], count[:] = old_labels, old_sums, old_count
            failed[given, cut] = True


@njit(cache=True)
@typing.no_type_check
def _explained(sums, count):
    """What the clusters take off the points' sum of squares."""
    total = 0.0
    for c in range(len(count)):
        if count[c] > 0:
            for j in range(sums.shape[1]):
                total += sums[c, j] * sums[c, j] / count[c]
    return total


@njit(cache=True, fastmath=True)
@typing.no_type_check
def settle(x, labels, sums, count, passes):
    """Moves points one by one to where they cost least, so many times around."""
    n, d = x.shape
    k = len(count)
    mean = np.empty((k, d), np.float32)
    join = np.empty(k, np.float32)
    for c in range(k):
        _place(c, sums, count, mean, join)
    for _ in range(passes):
        moved = False
        for i in range(n):
            mine = labels[i]
            if count[mine] < 2:
                continue
            best, least = mine, np.float32(np.inf)
            for c in range(k):
                far = np.float32(0.0)
                for j in range(d):
                    far += (x[i, j] - mean[c, j]) ** 2
                if c == mine:
                    far *= np.float32(count[mine] / (count[mine] - 1.0))
                else:
                    far *= join[c]
                if far < least or (far == least and c == mine):
                    best, least = c, far
            if best != mine:
                moved = True
                labels[i] = best
                count[mine] -= 1
                count[best] += 1
                for j in range(d):
                    sums[mine, j] -= x[i, j]
                    sums[best, j] += x[i, j]
                _place(mine, sums, count, mean, join)
                _place(best, sums, count, mean, join)
        if not moved:
            return


@njit(cache=True)
@typing.no_type_check
def _place(c, sums, count, mean, join):
    """The mean of a cluster, and the factor on the squared distance of a point that joins it."""
    join[c] = count[c] / (count[c] + 1.0)
    for j in range(sums.shape[1]):
        mean[c, j] = sums[c, j] / max(count[c], 1)


@njit(cache=True, fastmath=True)
@typing.no_type_check
def losses(x, labels, sums, count, loss, elsewhere):
    """What giving up each cluster would cost, its points going where they fit next best.

    Either each on its own, or all together (Ward's formula): whichever is less. An empty cluster
    is given up for nothing.
    """
    n, d = x.shape
    k = len(count)
    mean = np.empty((k, d), np.float32)
    join = np.empty(k, np.float32)
    loss[:] = 0.0
    for c in range(k):
        _place(c, sums, count, mean, join)
    for i in range(n):
        mine = labels[i]
        own = np.float32(0.0)
        least = np.float32(np.inf)
        elsewhere[i] = mine
        for c in range(k):
            far = np.float32(0.0)
            for j in range(d):
                far += (x[i, j] - mean[c, j]) ** 2
            if c == mine:
                own = far
            elif count[c] > 0 and far * join[c] < least:
                least = far * join[c]
                elsewhere[i] = c
        loss[mine] += least - own
    for a in range(k):
        for c in range(k):
            if a == c or count[a] == 0 or count[c] == 0:
                continue
            far = 0.0
            for j in range(d):
                far += (mean[a, j] - mean[c, j]) ** 2
            loss[a] = min(loss[a], far * count[a] * count[c] / (count[a] + count[c]))


@njit(cache=True)
@typing.no_type_check
def gains(x, labels, changed, gain, half):
    """What cutting each changed cluster in two would save, and on which half its points are."""
    n = len(labels)
    order = np.argsort(labels, kind="mergesort")
    low = 0
    for c in range(len(gain)):
        high = low
        while high < n and labels[order[high]] == c:
            high += 1
        if changed[c]:
            gain[c] = _cut_in_two(x, order[low:high], half)
        low = high


@njit(cache=True)
@typing.no_type_check
def _cut_in_two(x, rows, half):
    """The cheapest cut along the leading axis, then along the line between the two means."""
    n = len(rows)
    if n < 2:
        return 0.0
    y = centred(x[rows])
    way = _leading_axis(y)
    for _ in range(_REFINEMENTS + 1):
        order = np.argsort(y @ way, kind="mergesort")
        saved, first, way = _cheapest_cut(y, order)
    for r in range(n):
        half[rows[order[r]]] = r >= first
    return saved


@njit(cache=True, fastmath=True)
@typing.no_type_check
def _cheapest_cut(y, order):
    """What the best cut in this order saves, after how many points, and the line it is across.

    The mean of all is zero, so the two sides' sums are opposite, and either is such a line.
    """
    n, d = y.shape
    run = np.zeros(d)
    line = np.zeros(d, np.float32)
    saved, first = -1.0, 1
    for r in range(n - 1):
        size = 0.0
        for j in range(d):
            run[j] += y[order[r], j]
            size += run[j] * run[j]
        here = size / (r + 1) + size / (n - r - 1)
        if here > saved:
            saved, first = here, r + 1
            for j in range(d):
                line[j] = run[j]
    return saved, first, line


@njit(cache=True, fastmath=True)
@typing.no_type_check
def _leading_axis(y):
    """The axis of most variance, by powers, from the coordinate that has most."""
    n, d = y.shape
    way = np.zeros(d, np.float32)
    best = -1.0
    for j in range(d):
        spread = 0.0
        for r in range(n):
            spread += y[r, j] * y[r, j]
        if spread > best:
            best = spread
            way[:] = 0.0
            way[j] = 1.0
    for _ in range(_POWER_STEPS):
        new = np.zeros(d)
        for r in range(n):
            key = 0.0
            for j in range(d):
                key += y[r, j] * way[j]
            for j in range(d):
                new[j] += key * y[r, j]
        size = np.sqrt(np.sum(new * new))
        if size < 1e-30:
            return way
        for j in range(d):
            way[j] = new[j] / size
    return way


@njit(cache=True)
@typing.no_type_check
def _best_pair(loss, gain, failed):
    """The cluster to give up and the one to cut, of pairs that have not failed; -1 if none is left.

    What a pair saves is a low guess, as all points may move afterwards: so the best is tried even
    if it seems not to pay.
    """
    best, given, cut = -np.inf, -1, -1
    for a in range(len(loss)):
        for b in range(len(loss)):
            # a cluster that gains nothing may be one point, which has no halves
            if a != b and gain[b] > 0 and not failed[a, b] and gain[b] - loss[a] > best:
                best, given, cut = gain[b] - loss[a], a, b
    return given, cut


@njit(cache=True)
@typing.no_type_check
def _exchange(x, labels, sums, count, elsewhere, half, given, cut):
    """Gives the points of one cluster to others, and its label to half of another's."""
    for i in range(len(labels)):
        old = labels[i]
        new = old
        if old == given:
            new = elsewhere[i]
        elif old == cut and half[i]:
            new = given
        if new != old:
            labels[i] = new
            count[old] -= 1
            count[new] += 1
            for j in range(x.shape[1]):
                sums[old, j] -= x[i, j]
                sums[new, j] += x[i, j]
