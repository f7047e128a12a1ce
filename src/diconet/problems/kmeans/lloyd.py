"""Lloyd's algorithm with bounds (Hamerly, 2010): most points need no distance in most rounds.

Centres go beyond the means of their points, almost twice as far: with the same labels, a centre at
m + b (c - m) in place of c costs no more for any b in [-1, 1]. So the cost can only fall, in fewer
rounds and usually lower than if centres go to the means, which is b = 0.

Points are processed in blocks of fixed size whose results are added in order, so
the answer does not depend on the number of threads.
"""

from __future__ import annotations

import typing
from dataclasses import dataclass

import numpy as np
from numba import njit

from diconet.core.compiled import KERNEL
from diconet.core.threads import in_parts
from diconet.problems.kmeans.distances import add, between, find_near, two_nearest

_BLOCK = 32_768
_REACH = 1.9
"""How far a centre goes, over its distance to the mean of its points; below 2 the cost falls."""

_SETTLED = 2e-3
"""If at most this share of the points moved in a round, later ones would gain next to nothing."""

_ROUNDING = 1e-6
"""Rounding error of the single-precision bounds, relative to the size of the points."""


@dataclass(frozen=True, eq=False)
class Settled:
    """Labels, none of them unused, and the number of rounds of Lloyd's algorithm."""

    labels: np.ndarray
    rounds: int


def lloyd(
    x: np.ndarray,
    weights: np.ndarray,
    centres: np.ndarray,
    *,
    rounds: int,
    settled: float = _SETTLED,
    reach: float = _REACH,
    labels: np.ndarray | None = None,
) -> Settled:
    """Assigns each point to its nearest centre, then makes at most `rounds` rounds of Lloyd.

    It stops when at most a share `settled` of the points moved. The last round sets centres to the
    means; in those before, they go `reach` times as far. If two centres are equally near, a point
    keeps its label.
    """
    n, k = len(x), len(centres)
    state = _State(
        np.full(n, -1, np.int64) if labels is None else labels.astype(np.int64),
        np.full(n, np.inf, np.float32),
        np.zeros(n, np.float32),
        np.zeros((k, centres.shape[1] + 1)),
    )
    means, moved, done, last = centres.astype(x.dtype), np.zeros(k), 0, rounds == 0
    while True:
        changed = _visit(x, weights, means, moved, state, done == 0)
        _fill_empty(x, weights, state)
        if last:
            return Settled(state.labels, done)
        last = done + 1 == rounds or (done > 0 and changed <= settled * n)
        done += 1
        mass = state.sums[:, -1:]
        new = np.where(mass > 0, state.sums[:, :-1] / np.maximum(mass, 1e-30), means)
        new = (means + (1.0 if last else reach) * (new - means)).astype(x.dtype)
        moved = np.sqrt(np.square(new - means, dtype=np.float64).sum(1)) * (1 + _ROUNDING)
        means = new


@dataclass(frozen=True, eq=False)
class _State:
    """Labels, bounds on the distances to the two nearest centres, and sums over clusters.

    The last column of `sums` is the weight.
    """

    labels: np.ndarray
    upper: np.ndarray
    lower: np.ndarray
    sums: np.ndarray


def _visit(
    x: np.ndarray,
    weights: np.ndarray,
    means: np.ndarray,
    moved: np.ndarray,
    state: _State,
    first: bool,
) -> int:
    """Moves all points to their nearest means, given how far those moved; returns how many did."""
    n, k = len(x), len(means)
    near, gap = np.empty((k, 1), np.int64), np.empty((k, 1), np.float32)
    find_near(means, np.arange(k), k, near, gap)
    apart = 0.5 * np.sqrt(gap[:, 0].astype(np.float64)) * (1 - _ROUNDING)
    how = (means, moved, apart, first)
    bounds = (state.labels, state.upper, state.lower)

    def visit(low: int) -> tuple[np.ndarray, int]:
        more, high = np.zeros_like(state.sums), min(low + _BLOCK, n)
        return more, int(visit_block(x, weights, low, high, *how, *bounds, more))

    changed = 0
    for sums, moves in in_parts(visit, range(0, n, _BLOCK), work=x.size * k):
        state.sums[:] += sums
        changed += moves
    return changed


@njit(**KERNEL)
@typing.no_type_check
def visit_block(x, w, low, high, centres, moved, apart, first, labels, upper, lower, sums):
    """Moves each point of a block to its nearest centre, unless its bounds exclude a change.

    `moved` is how far each centre moved, `apart` half the distance from each to its nearest;
    `first` checks all points. The changes are added to `sums`; returns their number.
    """
    k = len(centres)
    most, second, which = 0.0, 0.0, -1
    for c in range(k):
        if moved[c] > most:
            most, second, which = moved[c], most, c
        elif moved[c] > second:
            second = moved[c]
    changed = 0
    for i in range(low, high):
        mine = labels[i]
        if not first:
            upper[i] += moved[mine]
            lower[i] -= second if mine == which else most
            bound = max(apart[mine], lower[i])
            if upper[i] <= bound:
                continue
            upper[i] = np.sqrt(between(x, i, centres, mine))
            if upper[i] <= bound:
                continue
        best, least, runner_up = two_nearest(x, i, centres, mine)
        upper[i] = np.sqrt(least)
        lower[i] = np.sqrt(runner_up)
        if first or best != mine:
            labels[i] = best
            changed += 1
            add(x, i, w[i], sums, best)
            if not first:
                add(x, i, -w[i], sums, mine)
    return changed


def _fill_empty(x: np.ndarray, weights: np.ndarray, state: _State) -> None:
    """Gives every empty cluster the point that is farthest from its centre."""
    labels, sums = state.labels, state.sums
    counts = np.bincount(labels, minlength=len(sums))
    if counts.min() > 0:
        return
    far = np.argsort(-state.upper, kind="stable")
    place = 0
    for c in np.flatnonzero(counts == 0):
        while counts[labels[far[place]]] < 2:
            place += 1
        i = far[place]
        counts[labels[i]] -= 1
        counts[c] += 1
        point = weights[i] * np.append(x[i], 1)
        sums[labels[i]] -= point
        sums[c] += point
        labels[i], state.upper[i] = c, 0.0
