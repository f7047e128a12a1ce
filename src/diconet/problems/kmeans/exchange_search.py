"""The search for exchanges in a node: which clusters to remove, which to cut, when to stop."""

from __future__ import annotations

import typing

import numpy as np
from numba import njit

from diconet.core.compiled import INNER, KERNEL
from diconet.problems.kmeans.distances import TINY, add, between, find_near, update_mean
from diconet.problems.kmeans.exchange_kernels import (
    COST,
    GAIN,
    HALF,
    LABEL,
    LOSS,
    ORDER,
    ROUNDING,
    SCORES,
    SLOT,
    TRIED,
    add_up,
    cut_in_two,
    explained,
    look,
    move,
    settle,
    sort_points,
)

_ROUNDS = 3
_REGION = 8
"""The number of near clusters in a cluster's region, which trying an exchange may change."""

_FEW = 1e-3
"""Rounds end when at most this share of the points move."""

_CUT, _GIVEN_UP = 1.49, 0.55
"""Average ratio of the realised to the estimated gain of a cut and loss of a removal."""

_SLACK = 0.6
"""An exchange is tried if its expected gain is at least this share of its expected loss.

The two are estimated separately, and together they may give more.
"""

_ENOUGH = 1e-6
"""The share of its cost that a node must save for an exchange to be made."""


@njit(**INNER)
@typing.no_type_check
def try_exchange(x, w, at, start, sums, means, near, a, b, least, ids, mark):
    """How much more clusters explain if `a` is removed and `b` cut (-1 for neither).

    The points of their regions move to where they cost least, a few times each. If that explains
    more than `least`, the exchange is made: cluster `a` is then one half of `b`. An exchange that
    empties a cluster is not made. `ids` receives the clusters touched; their number is the second
    result.
    """
    k, d, m = len(start) - 1, means.shape[1], min(near.shape[1], _REGION)
    r = 0
    for q in range(-1, m):  # the two themselves first, then the clusters near either
        for one in range(2):
            c = a if one else b
            if c >= 0:
                c = c if q < 0 else near[c, q]
                if not mark[c]:
                    mark[c] = 1
                    ids[r] = c
                    r += 1
    # on trial, the cluster ids[q] is in row k + q; the second half of b in row `new`
    new = -1 if b < 0 else k + r if a < 0 else k + 1
    end, dead = k + r + (new == k + r), k if b < 0 else -1
    count, before = 0, 0.0
    for q in range(r):
        c = ids[q]
        mark[c] = 0
        before += explained(sums, c)
        for p in range(start[c], start[c + 1]):
            i = at[ORDER, p]
            at[TRIED, count] = i
            at[SLOT, count] = -1 if c == a else new if c == b and at[HALF, i] else k + q
            count += 1
    for q in range(k, end):
        for j in range(d + 1):
            sums[q, j] = 0.0
    for p in range(count):
        if at[SLOT, p] >= 0:
            add(x, at[TRIED, p], w[at[TRIED, p]], sums, at[SLOT, p])
    for q in range(k, end):
        update_mean(sums, q, means)
    for _ in range(_ROUNDS):
        moved = False
        for p in range(count):
            i, mine = at[TRIED, p], at[SLOT, p]
            best, lowest = mine, np.inf
            if mine >= 0 and sums[mine, d] - w[i] <= ROUNDING * w[i]:
                continue  # alone, a point costs nothing
            for q in range(k, end):
                if q != dead:
                    after = sums[q, d] + w[i] + TINY
                    if q == mine:
                        after = (1 + ROUNDING) * (sums[q, d] - w[i])
                    cost = between(x, i, means, q) * sums[q, d] / after
                    if cost < lowest:
                        best, lowest = q, cost
            if best != mine:
                moved = True
                at[SLOT, p] = best
                move(x, i, w[i], sums, means, mine, best)
        if not moved:
            break
    after = 0.0
    for q in range(k, end):
        if q != dead:
            was_empty = q < k + r and q != new and sums[ids[q - k], d] <= 0
            if sums[q, d] <= 0 and not was_empty:
                return -np.inf, r
            after += explained(sums, q)
    if after - before > least:
        for p in range(count):
            at[LABEL, at[TRIED, p]] = ids[at[SLOT, p] - k]
        for q in range(r):
            for j in range(d + 1):
                sums[ids[q], j] = sums[k + q, j]
            update_mean(sums, ids[q], means)
    return after - before, r


@njit(**KERNEL)
@typing.no_type_check
def exchange_node(x, w, at, start, sums, means, near, gap, seen, spare, y, rounds, tries):
    """Settles a node's points, then exchanges clusters for as long as that should pay.

    The gain of cutting a cluster and the loss of removing one are estimated from its points. The
    most promising exchange is tried. If it fails, removal alone is tried as well, so that both
    sides are known better. Returns how many exchanges were tried and how many made.
    """
    n, k = len(w), len(start) - 1
    ids, mark, known, scores = spare[0], spare[1], spare[2], seen[SCORES:]
    nobody = np.int64(-1)
    tried, made, touched = 0, 0, k
    for c in range(k):
        ids[c] = c
    sort_points(at, start)
    add_up(x, w, at, start, sums, means)
    find_near(means, ids, k, near, gap)
    for _ in range(rounds):
        if settle(x, w, at, start, sums, means, near) <= _FEW * n:
            break
        find_near(means, ids, k, near, gap)
    for c in range(k):
        look(x, w, at, start, means, near, seen, c)
    enough = TINY
    for c in range(k):
        enough += _ENOUGH * seen[COST, c]
    while tries > 0 and k > 2:
        for p in range(touched):
            if made:
                look(x, w, at, start, means, near, seen, ids[p])
            cut_in_two(x, w, at, start, sums, seen, y, ids[p])
        for p in range(touched):
            c = ids[p]
            known[c] = 0
            scores[GAIN, c] = _CUT * seen[GAIN, c]
            scores[LOSS, c] = _GIVEN_UP * seen[LOSS, c]
        touched = 0
        while touched == 0 and tried < tries:
            b = np.int64(0)  # with a plain zero, numba would compile what follows twice
            for c in range(k):
                if scores[GAIN, c] > scores[GAIN, b]:
                    b = c
            a = np.int64(b == 0)
            for c in range(k):
                if c != b and scores[LOSS, c] < scores[LOSS, a]:
                    a = c
            if scores[GAIN, b] - _SLACK * scores[LOSS, a] <= enough:
                break
            tried += 1
            one, found, least = b, 0.0, enough
            for _ in range(2):
                gained, r = try_exchange(
                    x, w, at, start, sums, means, near, a, one, least, ids, mark
                )
                if one < 0:  # removal alone
                    tried += 1
                    known[a] = 1
                    scores[LOSS, a] = -gained
                    scores[GAIN, b] = min(scores[GAIN, b], max(found - gained, 0.0))
                elif gained > enough:
                    touched = r
                    break
                elif known[a]:
                    scores[GAIN, b] = 0.0  # with any other cluster it would be worse
                    break
                one, found, least = nobody, gained, np.inf
        if touched == 0:
            break
        made += 1
        sort_points(at, start)
        find_near(means, ids, touched, near, gap)
    return tried, made
