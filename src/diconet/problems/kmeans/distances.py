"""Distances between points and centres, for loops over points."""

from __future__ import annotations

import typing

import numpy as np
from numba import njit

FAR = np.float32(3e38)
"""Farther than anything: points are of size one."""


@njit(cache=True, nogil=True, fastmath=True, error_model="numpy")
@typing.no_type_check
def two_nearest(x, i, centres, far, mine):
    """The nearest centre to a point, its squared distance and that of the second.

    `centres` are features by centres; where two are as near, a point stays with `mine`.
    """
    d, k = centres.shape
    for c in range(k):
        far[c] = 0
    for j in range(d):
        value = x[i, j]
        for c in range(k):
            gap = value - centres[j, c]
            far[c] += gap * gap
    least = FAR
    for c in range(k):
        least = min(least, far[c])
    best = mine
    if mine < 0 or far[mine] > least:
        best = 0
        while best < k - 1 and far[best] > least:
            best += 1
    far[best] = FAR
    second = FAR
    for c in range(k):
        second = min(second, far[c])
    return best, least, second


@njit(cache=True, nogil=True, fastmath=True, error_model="numpy")
@typing.no_type_check
def find_near(means, which, count, near, gap):
    """The centres nearest to some of them, nearest first, and the squared distances."""
    k, d = means.shape
    m = near.shape[1]
    for p in range(count):
        a = which[p]
        for q in range(m):
            near[a, q] = -1
            gap[a, q] = FAR
        for c in range(k):
            far = np.float32(0.0)
            for j in range(d):
                away = means[a, j] - means[c, j]
                far += away * away
            if c != a and far < gap[a, m - 1]:
                q = m - 1
                while q > 0 and gap[a, q - 1] > far:
                    gap[a, q] = gap[a, q - 1]
                    near[a, q] = near[a, q - 1]
                    q -= 1
                gap[a, q] = far
                near[a, q] = c
