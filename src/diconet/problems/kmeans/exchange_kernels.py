"""The loops of the exchange merge, one node at a time.

A node's clusters are `labels` of its points `x` with weights `w`, kept as the `order` of the points
by cluster and the `start` of each; `sums` and `mass` are what the points of each add up to. A
cluster's region is itself and the clusters `near` it. What an exchange changes is looked at in the
two regions it touches, so a look costs no more in a large node than in a small one.
"""

from __future__ import annotations

import typing

import numpy as np
from numba import njit

FEATURES = 10
"""Numbers that describe a cluster to what chooses exchanges: see `describe`."""

GAIN, LOSS = 0, 1
"""What chooses corrects both what cutting a cluster gains and what giving it up loses."""

NEAR = 8
"""Clusters near a cluster that are in its region."""

_ROUNDS = 3
_POWER_STEPS = 4
_TINY = 1e-30
_FAR = np.float32(3e38)
_OUT_OF_REACH = 1e18


@njit(cache=True, fastmath=True)
@typing.no_type_check
def nearest_of(x, rows, count, centres, out):
    """For each of some points, the nearest of a few centres (features by centres), in `out`.

    A point stays where it is unless another is nearer; whether one has moved is the answer.
    """
    d, r = centres.shape
    far = np.empty(r, np.float32)
    moved = False
    for p in range(count):
        i = rows[p]
        far[:] = 0
        for j in range(d):
            value = x[i, j]
            for c in range(r):
                gap = value - centres[j, c]
                far[c] += gap * gap
        best = out[p]
        least = far[best] if best >= 0 else _FAR
        for c in range(r):
            if far[c] < least:
                least = far[c]
                best = c
        if best != out[p]:
            moved = True
            out[p] = best
    return moved


@njit(cache=True)
@typing.no_type_check
def sort_by_cluster(labels, order, start):
    """The points by cluster, in their order within it."""
    start[:] = 0
    for i in range(len(labels)):
        start[labels[i] + 1] += 1
    for c in range(len(start) - 1):
        start[c + 1] += start[c]
    place = start[:-1].copy()
    for i in range(len(labels)):
        order[place[labels[i]]] = i
        place[labels[i]] += 1


@njit(cache=True)
@typing.no_type_check
def add_up(x, w, labels, sums, mass):
    """What the points of each cluster add up to."""
    sums[:] = 0
    mass[:] = 0
    for i in range(len(labels)):
        c = labels[i]
        mass[c] += w[i]
        for j in range(x.shape[1]):
            sums[c, j] += w[i] * x[i, j]


@njit(cache=True)
@typing.no_type_check
def _explained(sums, mass):
    """What one cluster takes off the points' sum of squares."""
    total = 0.0
    for j in range(len(sums)):
        total += sums[j] * sums[j]
    return total / max(mass, _TINY)


@njit(cache=True, fastmath=True)
@typing.no_type_check
def find_near(sums, mass, near, gap):
    """The nearest clusters of each by their means, nearest first, and the squared distances."""
    k, d = sums.shape
    mean = np.empty((k, d), np.float32)
    for c in range(k):
        for j in range(d):
            mean[c, j] = sums[c, j] / max(mass[c], _TINY)
    m = near.shape[1]
    far = np.empty(k, np.float32)
    by_feature = np.ascontiguousarray(mean.T)
    for a in range(k):
        far[:] = 0
        for j in range(d):
            value = mean[a, j]
            for c in range(k):
                away = value - by_feature[j, c]
                far[c] += away * away
        far[a] = _FAR
        for q in range(m):
            near[a, q] = -1
            gap[a, q] = _FAR
        for c in range(k):
            if far[c] < gap[a, m - 1]:
                q = m - 1
                while q > 0 and gap[a, q - 1] > far[c]:
                    gap[a, q] = gap[a, q - 1]
                    near[a, q] = near[a, q - 1]
                    q -= 1
                gap[a, q] = far[c]
                near[a, q] = c


@njit(cache=True)
@typing.no_type_check
def settle(x, w, labels, near, order, start, sums, mass, rounds):
    """Rounds in which each point moves to the nearest mean of its cluster's region.

    A cluster keeps its last point.
    """
    k, d = sums.shape
    m = near.shape[1]
    target = np.empty(len(labels), np.int64)
    for _ in range(rounds):
        moved = False
        for c in range(k):
            low, high = start[c], start[c + 1]
            if high == low:
                continue
            centres = np.empty((d, m + 1), x.dtype)
            ids = np.empty(m + 1, np.int64)
            ids[0] = c
            ids[1:] = near[c]
            for q in range(m + 1):
                for j in range(d):
                    centres[j, q] = sums[ids[q], j] / max(mass[ids[q]], _TINY)
            out = np.zeros(high - low, np.int64)
            nearest_of(x, order[low:high], high - low, centres, out)
            for p in range(high - low):
                target[order[low + p]] = ids[out[p]]
        left = start[1:] - start[:-1]
        for i in range(len(labels)):
            old, new = labels[i], target[i]
            if old != new and left[old] > 1:
                moved = True
                left[old] -= 1
                left[new] += 1
                _move(x, w, i, old, new, sums, mass)
                labels[i] = new
        if not moved:
            return
        sort_by_cluster(labels, order, start)


@njit(cache=True)
@typing.no_type_check
def _move(x, w, i, old, new, sums, mass):
    mass[old] -= w[i]
    mass[new] += w[i]
    for j in range(x.shape[1]):
        sums[old, j] -= w[i] * x[i, j]
        sums[new, j] += w[i] * x[i, j]


@njit(cache=True, fastmath=True)
@typing.no_type_check
def cut_in_two(x, w, rows, half):
    """What cutting a cluster in two saves, cheapest along its leading axis; `half` says where to.

    Then once more along the line between the two means.
    """
    n, d = len(rows), x.shape[1]
    if n < 2:
        return 0.0
    mean = np.zeros(d)
    mass = 0.0
    for p in range(n):
        mass += w[rows[p]]
        for j in range(d):
            mean[j] += w[rows[p]] * x[rows[p], j]
    mean /= max(mass, _TINY)
    y = np.empty((n, d), np.float32)
    for p in range(n):
        for j in range(d):
            y[p, j] = x[rows[p], j] - mean[j]
    way = _leading_axis(y)
    key = np.empty(n, np.float32)
    saved, first = 0.0, 1
    order = np.empty(0, np.int64)
    for _ in range(2):
        for p in range(n):
            at = np.float32(0.0)
            for j in range(d):
                at += y[p, j] * way[j]
            key[p] = at
        order = np.argsort(key)
        run, line = np.zeros(d), np.zeros(d)
        weight, saved = 0.0, -1.0
        for r in range(n - 1):
            i = order[r]
            weight += w[rows[i]]
            size = 0.0
            for j in range(d):
                run[j] += w[rows[i]] * y[i, j]
                size += run[j] * run[j]
            here = size / max(weight, _TINY) + size / max(mass - weight, _TINY)
            if here > saved:
                saved, first = here, r + 1
                line[:] = run
        for j in range(d):
            way[j] = line[j]
    for r in range(n):
        half[rows[order[r]]] = r >= first
    return saved


@njit(cache=True, fastmath=True)
@typing.no_type_check
def _leading_axis(y):
    """The axis of most variance, by powers, from the coordinate that has most."""
    n, d = y.shape
    way = np.zeros(d, np.float32)
    best, at = -1.0, 0
    for j in range(d):
        spread = 0.0
        for p in range(n):
            spread += y[p, j] * y[p, j]
        if spread > best:
            best, at = spread, j
    way[at] = 1.0
    for _ in range(_POWER_STEPS):
        new = np.zeros(d)
        for p in range(n):
            key = np.float32(0.0)
            for j in range(d):
                key += y[p, j] * way[j]
            for j in range(d):
                new[j] += key * y[p, j]
        size = np.sqrt(np.sum(new * new))
        if size < 1e-30:
            return way
        for j in range(d):
            way[j] = new[j] / size
    return way


@njit(cache=True, fastmath=True)
@typing.no_type_check
def look_at(x, w, c, near, order, start, sums, mass, half, cost, gain, loss):
    """What cluster c costs, what cutting it would gain, and what giving it up would lose.

    Given up, each of its points goes to the nearest cluster of its region.
    """
    rows = order[start[c] : start[c + 1]]
    d, m = x.shape[1], near.shape[1]
    centres = np.empty((d, m + 1), x.dtype)
    for q in range(m + 1):
        other = c if q == 0 else near[c, q - 1]
        for j in range(d):
            centres[j, q] = sums[other, j] / max(mass[other], _TINY)
    cost[c] = 0.0
    loss[c] = 0.0
    far = np.empty(m + 1, np.float32)
    for p in range(len(rows)):
        i = rows[p]
        far[:] = 0
        for j in range(d):
            value = x[i, j]
            for q in range(m + 1):
                away = value - centres[j, q]
                far[q] += away * away
        second = _FAR
        for q in range(1, m + 1):
            second = min(second, far[q])
        cost[c] += w[i] * far[0]
        loss[c] += w[i] * max(second - far[0], np.float32(0.0))
    gain[c] = cut_in_two(x, w, rows, half)


@njit(cache=True)
@typing.no_type_check
def describe(c, n, d, near, gap, mass, cost, gain, loss, mean_cost, mean_mass, out):
    """What is known of a cluster at little cost, unchanged by scale; see the names below."""
    k = len(mass)
    own = cost[c] + 1e-6 * mean_cost + _TINY
    around, m = 0.0, 0
    for q in range(near.shape[1]):
        if near[c, q] >= 0:
            around += cost[near[c, q]]
            m += 1
    around = around / max(m, 1) + _TINY
    spread = own / max(mass[c], _TINY)
    out[0] = np.log(gain[c] / own + 1e-4)  # how well it can be cut
    out[1] = np.log(own / (mean_cost + _TINY) + 1e-4)  # its share of the cost
    out[2] = np.log(mass[c] / mean_mass + 1e-4)  # its share of the points
    out[3] = np.log(gap[c, 0] / spread + 1e-4)  # how far the nearest is
    out[4] = np.log(gap[c, max(m - 1, 0)] / spread + 1e-4)  # how far the region reaches
    out[5] = np.log(loss[c] / own + 1e-4)  # how much it is needed
    out[6] = np.log(around / own + 1e-4)  # how its region compares
    out[7] = np.log(d + 0.0)
    out[8] = np.log(k + 0.0)
    out[9] = np.log(n / k)
    for f in range(FEATURES):
        out[f] = min(max(out[f], -8.0), 8.0) / 3


@njit(cache=True)
@typing.no_type_check
def corrections(features, w1, b1, w2, b2, out):
    """The small network: log of what an exchange realises over what is seen at little cost."""
    out[0] = b2[0]
    out[1] = b2[1]
    for h in range(len(b1)):
        value = b1[h]
        for f in range(FEATURES):
            value += w1[h, f] * features[f]
        value = np.tanh(value)
        out[0] += w2[0, h] * value
        out[1] += w2[1, h] * value
    for o in range(2):
        out[o] = min(max(out[o], -3.0), 3.0)


@njit(cache=True)
@typing.no_type_check
def _region(near, a, b, mark, stamp, ids):
    """The clusters that giving up `a` and cutting `b` touch (-1 for neither), those two first."""
    r = 0
    for c in (b, a):
        if c >= 0 and mark[c] != stamp:
            mark[c] = stamp
            ids[r] = c
            r += 1
    for c in (b, a):
        if c >= 0:
            for q in range(near.shape[1]):
                other = near[c, q]
                if other >= 0 and mark[other] != stamp:
                    mark[other] = stamp
                    ids[r] = other
                    r += 1
    return r


@njit(cache=True)
@typing.no_type_check
def try_exchange(x, w, labels, near, order, start, sums, mass, half, a, b, mark, stamp, least):
    """How much more clusters explain if `a` is given up and `b` cut (-1 for neither).

    Their regions' points move as Lloyd's would for a few rounds. Where that explains more than
    `least`, the exchange is made: cluster `a` is then one half of `b`. One that empties a cluster
    counts as none.
    """
    d = x.shape[1]
    ids = np.empty(2 * near.shape[1] + 4, np.int64)
    r = _region(near, a, b, mark, stamp, ids)
    slots = r
    new = -1
    if b >= 0:
        new = r if a < 0 else 1
        slots = r + 1 if a < 0 else r
    count = 0
    before = 0.0
    for q in range(r):
        count += start[ids[q] + 1] - start[ids[q]]
        before += _explained(sums[ids[q]], mass[ids[q]])
    rows = np.empty(count, np.int64)
    at = np.empty(count, np.int64)
    count = 0
    for q in range(r):
        c = ids[q]
        for p in range(start[c], start[c + 1]):
            i = order[p]
            rows[count] = i
            at[count] = q
            if c == a:
                at[count] = -1
            elif c == b and half[i]:
                at[count] = new
            count += 1
    dead = -1 if a < 0 or b >= 0 else 0
    local = np.empty((slots, d))
    weight = np.empty(slots)
    centres = np.empty((d, slots), x.dtype)
    for step in range(_ROUNDS + 1):
        local[:] = 0
        weight[:] = 0
        for p in range(count):
            if at[p] >= 0:
                i = rows[p]
                weight[at[p]] += w[i]
                for j in range(d):
                    local[at[p], j] += w[i] * x[i, j]
        for q in range(slots):
            for j in range(d):
                centres[j, q] = _OUT_OF_REACH if q == dead else local[q, j] / max(weight[q], _TINY)
        if step == _ROUNDS or not nearest_of(x, rows, count, centres, at):
            break
    after = 0.0
    for q in range(slots):
        if q != dead:
            was_empty = q < r and q != new and mass[ids[q]] <= 0
            if weight[q] <= 0 and not was_empty:
                return -np.inf
            after += _explained(local[q], weight[q])
    if after - before > least:
        for p in range(count):
            labels[rows[p]] = ids[at[p]]
        for q in range(r):
            mass[ids[q]] = weight[q]
            sums[ids[q]] = local[q]
    return after - before
