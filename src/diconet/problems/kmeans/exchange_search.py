"""The search for exchanges in a node: which clusters to give up, which to cut, and when to stop."""

from __future__ import annotations

import typing

import numpy as np
from numba import njit

from diconet.problems.kmeans.exchange_kernels import (
    FEATURES,
    GAIN,
    LOSS,
    NEAR,
    add_up,
    corrections,
    describe,
    find_near,
    look_at,
    settle,
    sort_by_cluster,
    try_exchange,
)

_TINY = 1e-30
_SLACK = 0.6
"""An exchange is tried though it should gain no more than this share of what it loses.

What it gives is known for its two sides apart, and together they may give more.
"""

_ENOUGH = 1e-6
"""The share of its cost that a node must save for an exchange to be made."""


@njit(cache=True)
@typing.no_type_check
def _estimate(c, n, d, near, gap, mass, cost, gain, loss, means, net, scores):
    """What exchanging cluster c should give, by what is seen and what was learned to correct it."""
    features, out = np.empty(FEATURES), np.empty(2)
    describe(c, n, d, near, gap, mass, cost, gain, loss, means[0], means[1], features)
    corrections(features, net[0], net[1], net[2], net[3], out)
    scores[GAIN, c] = gain[c] * np.exp(out[GAIN])
    scores[LOSS, c] = loss[c] * np.exp(out[LOSS])


@njit(cache=True)
@typing.no_type_check
def _begin(x, w, labels, k, rounds):
    """Settles the points of a node; its clusters as sums, masses, neighbours and order."""
    n, d = x.shape
    m = min(NEAR, k - 1)
    sums, mass = np.empty((k, d)), np.empty(k)
    near, gap = np.empty((k, m), np.int64), np.empty((k, m), np.float32)
    order, start = np.empty(n, np.int64), np.empty(k + 1, np.int64)
    add_up(x, w, labels, sums, mass)
    sort_by_cluster(labels, order, start)
    find_near(sums, mass, near, gap)
    if rounds > 0:
        settle(x, w, labels, near, order, start, sums, mass, rounds)
        find_near(sums, mass, near, gap)
    return sums, mass, near, gap, order, start


@njit(cache=True)
@typing.no_type_check
def exchange_node(x, w, labels, k, rounds, tries, net):
    """Settles a node's points, then exchanges clusters for as long as that should pay.

    What cutting a cluster gains and giving one up loses is estimated first. The best of either is
    then tried on its own, at most `tries` times in all, until both are known; then the exchange is
    made. How many were tried and how many made is the answer.
    """
    n, d = x.shape
    sums, mass, near, gap, order, start = _begin(x, w, labels, k, rounds)
    half = np.zeros(n, np.bool_)
    cost, gain, loss = np.zeros(k), np.zeros(k), np.zeros(k)
    if tries <= 0 or k < 3:
        return 0, 0
    for c in range(k):
        look_at(x, w, c, near, order, start, sums, mass, half, cost, gain, loss)
    means = (cost.sum() / k, mass.sum() / k)
    enough = _ENOUGH * cost.sum() + _TINY
    scores, known = np.empty((2, k)), np.zeros((2, k), np.bool_)
    for c in range(k):
        _estimate(c, n, d, near, gap, mass, cost, gain, loss, means, net, scores)
    mark, stamp, tried, made = np.zeros(k, np.int64), 0, 0, 0
    while tried < tries:
        b = np.argmax(scores[GAIN])
        a = -1
        for c in range(k):
            if c != b and (a < 0 or scores[LOSS, c] < scores[LOSS, a]):
                a = c
        if scores[GAIN, b] - _SLACK * scores[LOSS, a] <= enough:
            break
        # what is not known yet is tried on its own, and made only when both sides are known
        one, other, least = a, b, enough
        if not known[GAIN, b]:
            one, least = -1, np.inf
        elif not known[LOSS, a]:
            other, least = -1, np.inf
        stamp += 1
        tried += 1
        found = try_exchange(
            x, w, labels, near, order, start, sums, mass, half, one, other, mark, stamp, least
        )
        if one < 0:
            known[GAIN, b] = True
            scores[GAIN, b] = max(found, 0.0)
        elif other < 0:
            known[LOSS, a] = True
            scores[LOSS, a] = -found
        elif found <= enough:
            scores[GAIN, b] = 0.0  # with any other it would be worse
        else:
            made += 1
            sort_by_cluster(labels, order, start)
            find_near(sums, mass, near, gap)
            for c in range(k):
                if mark[c] == stamp:
                    look_at(x, w, c, near, order, start, sums, mass, half, cost, gain, loss)
                    known[GAIN, c] = known[LOSS, c] = False
                    _estimate(c, n, d, near, gap, mass, cost, gain, loss, means, net, scores)
    if made:
        settle(x, w, labels, near, order, start, sums, mass, rounds)
    return tried, made


@njit(cache=True, nogil=True)
@typing.no_type_check
def exchange_nodes(x, w, offsets, counts, labels, first, last, rounds, tries, net):
    """Repairs the labels of the nodes from `first` to `last`; `tries` is per cluster."""
    tried, made = 0, 0
    for node in range(first, last):
        low, high = offsets[node], offsets[node + 1]
        k = counts[node]
        if high - low > 1 and k > 1:
            some = exchange_node(
                x[low:high], w[low:high], labels[low:high], k, rounds, int(tries * k), net
            )
            tried += some[0]
            made += some[1]
    return tried, made


@njit(cache=True)
@typing.no_type_check
def survey(x, w, labels, k, rounds):
    """For every cluster of a node, its features, and what exchanges realise over what is seen."""
    n, d = x.shape
    sums, mass, near, gap, order, start = _begin(x, w, labels, k, rounds)
    half = np.zeros(n, np.bool_)
    cost, gain, loss = np.zeros(k), np.zeros(k), np.zeros(k)
    for c in range(k):
        look_at(x, w, c, near, order, start, sums, mass, half, cost, gain, loss)
    features, found, seen = np.empty((k, FEATURES)), np.empty((k, 2)), np.empty((k, 2))
    mark = np.zeros(k, np.int64)
    for c in range(k):
        describe(
            c, n, d, near, gap, mass, cost, gain, loss, cost.sum() / k, mass.sum() / k, features[c]
        )
        seen[c, GAIN], seen[c, LOSS] = gain[c], loss[c]
        found[c, GAIN] = try_exchange(
            x, w, labels, near, order, start, sums, mass, half, -1, c, mark, 2 * c + 1, np.inf
        )
        found[c, LOSS] = -try_exchange(
            x, w, labels, near, order, start, sums, mass, half, c, -1, mark, 2 * c + 2, np.inf
        )
    return features, seen, found
