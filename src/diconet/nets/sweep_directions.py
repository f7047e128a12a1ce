"""The directions a set is swept along: spread over its smoothed points, and its principal axes."""

from __future__ import annotations

import typing

import numpy as np
from numba import njit

SMOOTH = 10
AXES = 3
DIRECTIONS = SMOOTH + 2 * AXES + 1
"""Directions a set is swept along, the first `SMOOTH` of them by its smoothed points."""

_LANDMARKS = 256
_NEIGHBOUR = 5
_TINY = 1e-12


@njit(cache=True)
@typing.no_type_check
def centred(points):
    """Points less their mean."""
    n, d = points.shape
    x = np.empty((n, d), np.float32)
    for j in range(d):
        mean = 0.0
        for i in range(n):
            mean += points[i, j]
        mean /= n
        for i in range(n):
            x[i, j] = points[i, j] - mean
    return x


@njit(cache=True, fastmath=True)
@typing.no_type_check
def smoothed(x):
    """Points drawn towards their neighbours, so that clusters shrink; and the local distance.

    Large sets are smoothed by way of evenly chosen landmarks, which keeps the work linear.
    """
    n, d = x.shape
    count = min(n, _LANDMARKS)
    marks = np.empty((count, d), np.float32)
    for a in range(count):
        marks[a] = x[a * n // count]
    weight = np.empty((count, count), np.float32)
    for a in range(count):
        for b in range(a + 1):
            far = np.float32(0.0)
            for j in range(d):
                far += (marks[a, j] - marks[b, j]) ** 2
            weight[a, b] = far
            weight[b, a] = far
    nearby = min(_NEIGHBOUR, count - 1)
    scale = 0.0
    for a in range(count):
        scale += np.partition(weight[a], nearby)[nearby]
    scale = max(scale / count, _TINY)
    for a in range(count):
        mass = np.float32(0.0)
        for b in range(count):
            weight[a, b] = np.exp(-weight[a, b] / np.float32(scale))
            mass += weight[a, b]
        for b in range(count):
            weight[a, b] /= mass
    drawn = weight @ (weight @ (weight @ marks))
    if count == n:
        return drawn, np.sqrt(scale)
    smooth = np.zeros((n, d), np.float32)
    for i in range(n):
        mass = np.float32(0.0)
        for a in range(count):
            far = np.float32(0.0)
            for j in range(d):
                far += (x[i, j] - marks[a, j]) ** 2
            near = np.exp(-far / np.float32(scale))
            mass += near
            for j in range(d):
                smooth[i, j] += near * drawn[a, j]
        for j in range(d):
            # a point far from every landmark stays where it is
            smooth[i, j] = smooth[i, j] / mass if mass > 1e-20 else x[i, j]
    return smooth, np.sqrt(scale)


@njit(cache=True)
@typing.no_type_check
def spread_directions(points, ways):
    """Equal angles in the plane; otherwise all differences of five points far from one another."""
    n, d = points.shape
    if d <= 2:
        for m in range(SMOOTH):
            angle = np.pi * m / SMOOTH
            ways[m, 0] = np.cos(angle)
            if d == 2:
                ways[m, 1] = np.sin(angle)
        return
    nearest = np.zeros(n, np.float64)
    for i in range(n):
        for j in range(d):
            nearest[i] += points[i, j] ** 2
    far = np.zeros(5, np.int64)
    for a in range(5):
        far[a] = np.argmax(nearest)
        for i in range(n):
            away = 0.0
            for j in range(d):
                away += (points[i, j] - points[far[a], j]) ** 2
            nearest[i] = away if a == 0 else min(nearest[i], away)
    m = 0
    for a in range(5):
        for b in range(a):
            ways[m] = points[far[a]] - points[far[b]]
            _normalise(ways[m])
            m += 1


@njit(cache=True)
@typing.no_type_check
def _normalise(way):
    size = 0.0
    for j in range(len(way)):
        size += way[j] ** 2
    size = np.sqrt(size)
    if size > 1e-18:
        for j in range(len(way)):
            way[j] /= size
    else:
        way[:] = 0
        way[0] = 1


@njit(cache=True)
@typing.no_type_check
def principal_axes(x, ways):
    """The leading axes by orthogonal iteration, started from the coordinates of most variance."""
    d = x.shape[1]
    count = min(AXES, d)
    spread = x.T @ x
    axes = np.zeros((AXES, d), np.float32)
    by_variance = np.argsort(-np.diag(spread))
    for a in range(count):
        axes[a, by_variance[a]] = 1
    for _ in range(12):
        axes = axes @ spread
        for a in range(count):
            for b in range(a):
                axes[a] -= np.sum(axes[a] * axes[b]) * axes[b]
            _normalise(axes[a])
    for a in range(count, AXES):  # no more axes: the diagonals of those there are
        axes[a] = axes[0] + axes[(a - count + 1) % count]
        _normalise(axes[a])
    ways[SMOOTH : SMOOTH + AXES] = axes


@njit(cache=True)
@typing.no_type_check
def normal(x, ranks, cut, way):
    """The line between the means of the two sides."""
    n, d = x.shape
    for j in range(d):
        first = 0.0
        second = 0.0
        for c in range(cut):
            first += x[ranks[c], j]
        for c in range(cut, n):
            second += x[ranks[c], j]
        way[j] = second / (n - cut) - first / cut
    _normalise(way)
