"""Two-means at every node of a balanced tree: recursive Lloyd, without a call per node."""

from __future__ import annotations

import typing

import numpy as np
from numba import njit


@njit(cache=True)
@typing.no_type_check
def recursive_two_means(points, offsets, depths, starts, rounds):
    """A label per item: each set is cut in two as many levels deep as it should be.

    Each cut is the cheapest of `starts` k-means++ starts with at most `rounds` rounds of Lloyd.
    """
    labels = np.zeros(len(points), np.int64)
    state = np.zeros(1, np.uint64)
    for s in range(len(offsets) - 1):
        state[0] = s
        mine = labels[offsets[s] : offsets[s + 1]]
        x = points[offsets[s] : offsets[s + 1]]
        for level in range(depths[s]):
            before = mine.copy()
            for part in range(2**level):
                rows = np.flatnonzero(before == part)
                second = two_means(x[rows], starts, rounds, state)
                for r in range(len(rows)):
                    mine[rows[r]] = 2 * part + second[r]
    return labels


@njit(cache=True, fastmath=True)
@typing.no_type_check
def two_means(x, starts, rounds, state):
    """Which points are in the second of two clusters; the best of several starts."""
    n, d = x.shape
    best, least = np.zeros(n, np.int64), np.inf
    side = np.empty(n, np.int64)
    far = np.empty(n)
    centre = np.empty((2, d))
    for _ in range(starts if n > 1 else 0):
        _two_seeds(x, far, centre, state)
        side[:] = -1
        for _ in range(rounds):
            cost, moved = _assign(x, centre, side)
            _means(x, side, centre)
            if not moved:
                break
        cost, _ = _assign(x, centre, side)
        if cost < least:
            least = cost
            best[:] = side
    return best


@njit(cache=True)
@typing.no_type_check
def _uniform(state):
    """The next number of a splitmix64 generator, from 0 to 1."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((z ^ (z >> np.uint64(31))) >> np.uint64(11)) / 9007199254740992.0


@njit(cache=True, fastmath=True)
@typing.no_type_check
def _two_seeds(x, far, centre, state):
    """k-means++: any point, then one in proportion to its squared distance from that."""
    n, d = x.shape
    first = min(int(n * _uniform(state)), n - 1)
    total = 0.0
    for i in range(n):
        far[i] = 0.0
        for j in range(d):
            far[i] += (x[i, j] - x[first, j]) ** 2
        total += far[i]
    left = total * _uniform(state)
    second = 0
    while second < n - 1 and left >= far[second]:
        left -= far[second]
        second += 1
    centre[0] = x[first]
    centre[1] = x[second]


@njit(cache=True, fastmath=True)
@typing.no_type_check
def _assign(x, centre, side):
    """Each point to the nearer centre; what that costs, and whether one has moved."""
    cost, moved = 0.0, False
    for i in range(len(x)):
        near, other = 0.0, 0.0
        for j in range(x.shape[1]):
            near += (x[i, j] - centre[0, j]) ** 2
            other += (x[i, j] - centre[1, j]) ** 2
        new = 1 if other < near else 0
        moved = moved or side[i] != new
        side[i] = new
        cost += min(near, other)
    return cost, moved


@njit(cache=True)
@typing.no_type_check
def _means(x, side, centre):
    """The mean of each cluster; an empty one stays where it was."""
    count = np.zeros(2)
    total = np.zeros((2, x.shape[1]))
    for i in range(len(x)):
        count[side[i]] += 1
        for j in range(x.shape[1]):
            total[side[i], j] += x[i, j]
    for c in range(2):
        if count[c] > 0:
            centre[c] = total[c] / count[c]
