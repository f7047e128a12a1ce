"""Values of answers, and proofs that they are right, which cost less than finding them.

A proof never accepts a wrong answer, and none of them uses a network. Only that a run of numbers
has the largest sum takes as long to check as to find: one pass either way.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

_STEPS = 64
"""The closest pair is proven by comparing each point with at most this many along an axis."""


def _in_order(items: np.ndarray, answer: np.ndarray) -> float:
    """The share of neighbours that are in order."""
    values = items[answer, 0]
    return float((np.diff(values) >= 0).mean()) if len(values) > 1 else 1.0


def _square(items: np.ndarray, pair: np.ndarray) -> float:
    step = items[pair[0]] - items[pair[1]]
    return float((step * step).sum())


VALUES: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "sort": _in_order,
    "select": lambda items, answer: float(items[answer[0], 0]),
    "subarray": lambda items, answer: float(items[answer, 0].sum()),
    "closest": lambda items, pair: math.sqrt(_square(items, pair)) if len(pair) == 2 else math.inf,
    "skyline": lambda items, answer: float(len(answer)),
}
"""The value of an answer, by problem: a function of items and answer."""


def is_sorted(items: np.ndarray, answer: np.ndarray, given: np.ndarray) -> bool:
    """Whether every item occurs once, and none before a smaller one."""
    once = np.bincount(answer, minlength=len(items))
    return len(answer) == len(items) and bool((once == 1).all()) and _in_order(items, answer) == 1


def is_kth(items: np.ndarray, answer: np.ndarray, given: np.ndarray) -> bool:
    """Whether fewer than k items are smaller, and at least k are not larger."""
    value, k = items[answer[0], 0], given[0]
    return bool((items < value).sum() < k <= (items <= value).sum())


def is_best_run(items: np.ndarray, answer: np.ndarray, given: np.ndarray) -> bool:
    """Whether the run is contiguous and no running sum exceeds its sum, up to rounding."""
    total = np.concatenate([[0.0], np.cumsum(items[:, 0])])
    best = (total[1:] - np.minimum.accumulate(total[:-1])).max()
    rounding = 1e-15 * np.abs(items).sum()
    in_a_row = len(answer) > 0 and bool((np.diff(answer) == 1).all())
    return in_a_row and bool(items[answer, 0].sum() >= best - rounding)


def is_closest(items: np.ndarray, answer: np.ndarray, given: np.ndarray) -> bool:
    """Whether no point has a closer one among those within that distance along one of the axes."""
    if len(answer) != 2 or answer[0] == answer[1]:
        return len(items) < 2 and len(answer) == 0
    square = _square(items, answer)
    return any(_none_closer(items[np.argsort(items[:, axis])], axis, square) for axis in (0, 1))


def _none_closer(ranked: np.ndarray, axis: int, square: float) -> bool:
    """Whether no two points are closer; also False if too many are close along the axis."""
    for step in range(1, min(_STEPS, len(ranked))):
        gap = ranked[step:] - ranked[:-step]
        near = np.square(gap[:, axis]) < square
        if not near.any():
            return True
        if bool((np.square(gap[near]).sum(1) < square).any()):
            return False
    return len(ranked) <= _STEPS


def is_front(items: np.ndarray, answer: np.ndarray, given: np.ndarray) -> bool:
    """Whether the answer is a staircase, and every other point is beaten by one of its steps."""
    order = np.lexsort((items[answer, 1], items[answer, 0]))
    steps = items[answer[order]]
    same = (steps[1:] == steps[:-1]).all(1)
    down = (steps[1:, 0] > steps[:-1, 0]) & (steps[1:, 1] < steps[:-1, 1])
    rest = items[np.setdiff1d(np.arange(len(items)), answer)]
    if len(answer) == 0 or not bool((same | down).all()):
        return len(items) == 0
    under = np.searchsorted(steps[:, 0], rest[:, 0], side="right") - 1
    below = steps[under.clip(0)]
    beaten = (under >= 0) & (below[:, 1] <= rest[:, 1]) & (below != rest).any(1)
    return bool(beaten.all())


PROOFS: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], bool]] = {
    "sort": is_sorted,
    "select": is_kth,
    "subarray": is_best_run,
    "closest": is_closest,
    "skyline": is_front,
}
"""Whether an answer is proven right, by problem: items, answer, and the context of the set."""
