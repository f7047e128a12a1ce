"""Distances between points and centres, and sums over clusters, for compiled loops."""

from __future__ import annotations

import typing

import numpy as np
from numba import njit

from diconet.core.compiled import INNER, KERNEL

FAR = np.float32(3e38)
"""Larger than any distance: points are of size one."""

TINY = 1e-30


@njit(**INNER, fastmath=True)
@typing.no_type_check
def between(x, i, centres, c):
    """The squared distance of a point from a centre."""
    far = np.float32(0.0)
    for j in range(x.shape[1]):
        gap = x[i, j] - centres[c, j]
        far += gap * gap
    return far


@njit(**INNER)
@typing.no_type_check
def add(x, i, weight, sums, c):
    """Adds a point to the sums of a cluster, whose last column is the weight."""
    d = x.shape[1]
    sums[c, d] += weight
    for j in range(d):
        sums[c, j] += weight * x[i, j]


@njit(**INNER)
@typing.no_type_check
def update_mean(sums, c, means):
    """The mean of a cluster from its sums."""
    d = means.shape[1]
    for j in range(d):
        means[c, j] = sums[c, j] / (sums[c, d] + TINY)


@njit(**INNER)
@typing.no_type_check
def two_nearest(x, i, centres, mine):
    """The nearest centre to a point, its squared distance and that of the second nearest.

    If two are equally near, a point stays with `mine`.
    """
    best, least, second = mine, FAR, FAR
    for q in range(-1 if mine >= 0 else 0, len(centres)):
        c = mine if q < 0 else q
        far = FAR if q == mine else between(x, i, centres, c)
        if far < least:
            best, least, second = c, far, least
        elif far < second:
            second = far
    return best, least, second


@njit(**KERNEL)
@typing.no_type_check
def find_near(means, which, count, near, gap):
    """The centres nearest to some of them, nearest first, and the squared distances."""
    m = near.shape[1]
    for p in range(count):
        a = which[p]
        for q in range(m):
            near[a, q] = -1
            gap[a, q] = FAR
        for c in range(len(near)):
            far = between(means, a, means, c)
            if c != a and far < gap[a, m - 1]:
                q = m - 1
                while q > 0 and gap[a, q - 1] > far:
                    gap[a, q] = gap[a, q - 1]
                    near[a, q] = near[a, q - 1]
                    q -= 1
                gap[a, q] = far
                near[a, q] = c
