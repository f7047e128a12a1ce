"""Lloyd's algorithm on all points of a set: from centres to labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from diconet.problems.kmeans.lloyd_kernels import first_round, half_apart, means_of, next_round
from diconet.problems.kmeans.threads import in_parts

_BLOCK = 32_768
_ROUNDING = 1e-6
"""Bounds are kept in single precision, relative to the size of the points."""


@dataclass(frozen=True, eq=False)
class Settled:
    """Labels, none of them unused, and after how many rounds of Lloyd's algorithm."""

    labels: np.ndarray
    rounds: int


def lloyd(
    x: np.ndarray,
    weights: np.ndarray,
    centres: np.ndarray,
    *,
    rounds: int,
    tolerance: float = 1e-4,
    labels: np.ndarray | None = None,
) -> Settled:
    """Each point to its nearest centre, then at most `rounds` rounds of means and nearest centres.

    It stops when no point moves, or when the centres' moves, squared and added up, are below
    `tolerance` times the mean variance of the points' columns, as in scikit-learn. Where two
    centres are as near, a point stays with its label.
    """
    n = len(x)
    state = _Bounds(
        np.ascontiguousarray(centres.T, dtype=x.dtype),
        np.full(n, -1, np.int64) if labels is None else labels.astype(np.int64),
        np.empty(n, np.float32),
        np.empty(n, np.float32),
        np.zeros((len(centres), x.shape[1])),
        np.zeros(len(centres)),
    )
    state.add(x, lambda block, more: _nearest(x, weights, state, block, more))
    enough = tolerance * float(np.var(x[:: max(1, n // 100_000)], axis=0).mean())
    done = 0
    while done < rounds:
        done += 1
        _fill_empty(x, weights, state.labels, state.upper, state.sums, state.mass)
        moved = means_of(state.sums, state.mass, state.by_feature) * (1 + _ROUNDING)
        apart = half_apart(state.by_feature) * (1 - _ROUNDING)
        visit = partial(_moved, x, weights, state, moved, apart)
        if state.add(x, visit) == 0 or np.square(moved).sum() <= enough:
            break
    _fill_empty(x, weights, state.labels, state.upper, state.sums, state.mass)
    return Settled(state.labels, done)


@dataclass(frozen=True, eq=False)
class _Bounds:
    """Centres by feature, labels, Hamerly's two bounds per point, and what clusters add up to."""

    by_feature: np.ndarray
    labels: np.ndarray
    upper: np.ndarray
    lower: np.ndarray
    sums: np.ndarray
    mass: np.ndarray

    def add(self, x: np.ndarray, visit: Callable[[tuple[int, int], Any], int]) -> int:
        """Visits all points in fixed blocks, adds up their changes in order, counts the moves."""
        blocks = [(low, min(low + _BLOCK, len(x))) for low in range(0, len(x), _BLOCK)]

        def each(block: tuple[int, int]) -> tuple[np.ndarray, np.ndarray, int]:
            more = np.zeros_like(self.sums), np.zeros_like(self.mass)
            return *more, visit(block, more)

        total = 0
        for more_sums, more_mass, changed in in_parts(each, blocks):
            self.sums[:] += more_sums
            self.mass[:] += more_mass
            total += changed
        return total


def _nearest(
    x: np.ndarray, weights: np.ndarray, state: _Bounds, block: tuple[int, int], more: Any
) -> int:
    bounds = state.labels, state.upper, state.lower
    first_round(x, weights, *block, state.by_feature, *bounds, *more)
    return 0


def _moved(
    x: np.ndarray,
    weights: np.ndarray,
    state: _Bounds,
    moved: np.ndarray,
    apart: np.ndarray,
    block: tuple[int, int],
    more: Any,
) -> int:
    bounds = state.labels, state.upper, state.lower
    return int(next_round(x, weights, *block, state.by_feature, moved, apart, *bounds, *more))


def _fill_empty(
    x: np.ndarray,
    weights: np.ndarray,
    labels: np.ndarray,
    upper: np.ndarray,
    sums: np.ndarray,
    mass: np.ndarray,
) -> None:
    """Gives every cluster without points the one that is farthest from its centre."""
    if (mass > 0).all():
        return
    counts = np.bincount(labels, minlength=len(mass))
    far = np.argsort(-upper, kind="stable")
    place = 0
    for c in np.flatnonzero(counts == 0):
        while counts[labels[far[place]]] < 2:
            place += 1
        i = far[place]
        counts[labels[i]] -= 1
        counts[c] += 1
        mass[labels[i]] -= weights[i]
        sums[labels[i]] -= weights[i] * x[i]
        labels[i], upper[i] = c, 0.0
        mass[c] += weights[i]
        sums[c] += weights[i] * x[i]
