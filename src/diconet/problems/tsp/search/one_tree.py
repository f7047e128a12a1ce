"""A lower bound on the length of a tour: Held and Karp's bound by 1-trees (1970, 1971).

A 1-tree is a shortest tree through all cities but the first, and the two shortest edges from that.
Every tour is a 1-tree, so none is shorter; prices on the cities, which lengthen all tours alike,
bring the 1-tree closer to a tour.
"""

from __future__ import annotations

import math
from typing import no_type_check

import numpy as np
from numba import njit

from diconet.core.compiled import INNER, KERNEL
from diconet.problems.tsp.search.metric import Metric, distance

LARGEST = 2_000
"""The number of cities up to which the bound takes at most about a second."""

_ROUNDS = 3_000  # needed for clustered cities
_STEPS = 5e7
_MARGIN = 1e-11  # above the accumulated rounding error


def held_karp_bound(metric: Metric) -> float:
    """A lower bound on the length of any round trip."""
    num = len(metric)
    if num < 3:
        return metric.length(np.arange(num)) * (1 - _MARGIN)
    rounds = int(min(max(_STEPS / num**2, 20), _ROUNDS))
    bound = float(_ascend(metric.xy, metric.code, rounds)) * (1 - _MARGIN)
    return float(math.ceil(bound)) if metric.is_whole else metric.unit * bound


@njit(**KERNEL)
@no_type_check
def _ascend(xy, code, rounds):
    """Raises prices where the 1-tree has too many edges, with Volgenant and Jonker's steps."""
    n = len(xy)
    price = np.zeros(n)
    degree = np.full(n, 2)
    before = np.full(n, 2)
    best = -np.inf
    first = 0.0
    for r in range(rounds):
        before[:] = degree
        bound = _one_tree(xy, code, price, degree)
        if bound > best:
            best = bound
            first = bound / (2 * n)
        off = 0
        for i in range(n):
            off += abs(degree[i] - 2)
        if off == 0:
            return best
        left = 1.0 - r / rounds
        step = first * left * left
        for i in range(n):
            price[i] += step * (0.6 * (degree[i] - 2) + 0.4 * (before[i] - 2))
    return best


@njit(**INNER)
@no_type_check
def _one_tree(xy, code, price, degree):
    """The length of the shortest 1-tree under these prices, minus what they add to any tour."""
    n = len(xy)
    degree[:] = 0
    near = np.full(n, np.inf)
    parent = np.zeros(n, dtype=np.int64)
    left = np.arange(1, n)
    many = n - 1
    here = 1
    place = 0
    total = -2.0 * price.sum()
    while True:
        many -= 1
        left[place] = left[many]
        if many == 0:
            break
        shortest = np.inf
        for k in range(many):
            city = left[k]
            gap = distance(xy, code, here, city) + price[here] + price[city]
            if gap < near[city]:
                near[city] = gap
                parent[city] = here
            if near[city] < shortest:
                shortest = near[city]
                place = k
        here = left[place]
        total += shortest
        degree[here] += 1
        degree[parent[here]] += 1
    one, two = np.inf, np.inf
    first, second = 0, 0
    for city in range(1, n):
        gap = distance(xy, code, 0, city) + price[0] + price[city]
        if gap < one:
            one, two = gap, one
            first, second = city, first
        elif gap < two:
            two, second = gap, city
    degree[0] = 2
    degree[first] += 1
    degree[second] += 1
    return total + one + two
