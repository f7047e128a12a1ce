"""Proof that a polygon is the convex hull, and the hull itself, both in exact arithmetic.

Doubles decide if their error bound allows it (Shewchuk 1997); the remaining cases, nearly or
truly collinear triples, are decided in integers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float, Int

_ROUND = 2.0**-53
_BOUND = (3 + 16 * _ROUND) * _ROUND  # error of a determinant of differences, per sum of its terms
_TINY = 2.0**-900  # below this, products may have lost bits to underflow


def turns(
    a: Float[np.ndarray, "n 2"], b: Float[np.ndarray, "n 2"], c: Float[np.ndarray, "n 2"]
) -> Int[np.ndarray, "n"]:
    """The exact sign of each turn a -> b -> c: 1 to the left, -1 to the right, 0 straight on."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        one = (a[:, 0] - c[:, 0]) * (b[:, 1] - c[:, 1])
        two = (a[:, 1] - c[:, 1]) * (b[:, 0] - c[:, 0])
        size = np.abs(one) + np.abs(two)
        sure = (np.abs(one - two) > _BOUND * size) & (size > _TINY) & (size < np.inf)
        sign = np.where(sure, np.sign(one - two), 0).astype(np.int64)
    doubt = np.flatnonzero(~sure)
    if len(doubt):
        sign[doubt] = _exact_turns(a[doubt], b[doubt], c[doubt])
    return sign


def _exact_turns(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """The same in Python's integers, which are of arbitrary precision."""
    whole = _as_integers(np.stack([a, b, c]))
    (ax, ay), (bx, by), (cx, cy) = ((point[:, 0], point[:, 1]) for point in whole)
    det = (ax - cx) * (by - cy) - (ay - cy) * (bx - cx)
    return np.array([(d > 0) - (d < 0) for d in det], dtype=np.int64)


def _as_integers(values: np.ndarray) -> Any:
    """Doubles times one power of two that makes all of them whole."""
    mantissa, exponent = np.frexp(values)
    digits = np.ldexp(mantissa, 53).astype(np.int64)
    shift = np.where(digits == 0, 0, exponent)
    shift = shift - shift.min()
    return digits.astype(object) << shift.astype(object)


def is_hull(points: Float[np.ndarray, "n 2"], corners: Int[np.ndarray, "h"]) -> bool:
    """Whether the corners are the hull's, counter-clockwise, no three collinear, none twice.

    True only if proven: the polygon turns left at every corner and goes around once, and every
    point was found inside it or on its edge.
    """
    if len(corners) == 0:
        return len(points) == 0
    polygon = points[corners]
    if len(corners) == 1:
        return bool((points == polygon).all())
    start = int(np.lexsort((polygon[:, 1], polygon[:, 0]))[0])
    polygon = np.roll(polygon, -start, axis=0)
    if len(corners) == 2:
        return _on_segment(points, polygon)
    if not _goes_around_once(polygon):
        return False
    top = int(np.lexsort((polygon[:, 1], polygon[:, 0]))[-1])
    lower = polygon[: top + 1]
    upper = np.concatenate([polygon[top:], polygon[:1]])[::-1]
    x = points[:, 0]
    if bool((x < lower[0, 0]).any() or (x > lower[-1, 0]).any()):
        return False
    # The edge below each point and the one above it. A chain's vertical edge (the last of the lower
    # one, the first of the upper one) has no unique height and is never picked.
    under = np.clip(np.searchsorted(lower[:, 0], x, side="left") - 1, 0, len(lower) - 2)
    above = np.clip(np.searchsorted(upper[:, 0], x, side="right") - 1, 0, len(upper) - 2)
    is_over = turns(lower[under], lower[under + 1], points) >= 0
    is_below = turns(upper[above], upper[above + 1], points) <= 0
    return bool((is_over & is_below).all())


def _goes_around_once(polygon: np.ndarray) -> bool:
    """Whether it turns left everywhere, from the lowest corner up to the highest and back."""
    after, beyond = np.roll(polygon, -1, axis=0), np.roll(polygon, -2, axis=0)
    if not bool((turns(polygon, after, beyond) > 0).all()):
        return False
    x, y = polygon[:, 0], polygon[:, 1]
    rises = (x < after[:, 0]) | ((x == after[:, 0]) & (y < after[:, 1]))
    return int((rises != np.roll(rises, 1)).sum()) == 2


def _on_segment(points: np.ndarray, ends: np.ndarray) -> bool:
    """Whether all points lie between two different ends, in lexicographic order of the ends."""
    low, high = ends
    if bool((low == high).all()):
        return False
    start, stop = np.broadcast_to(low, points.shape), np.broadcast_to(high, points.shape)
    straight = turns(start, stop, points) == 0
    x, y = points[:, 0], points[:, 1]
    from_low = (x > low[0]) | ((x == low[0]) & (y >= low[1]))
    to_high = (x < high[0]) | ((x == high[0]) & (y <= high[1]))
    return bool((straight & from_low & to_high).all())


_SWEEPS = 64
"""The number of passes over all points, after which the rest is processed one by one."""


def exact_hull(points: Float[np.ndarray, "n 2"]) -> Int[np.ndarray, "h"]:
    """The corners, counter-clockwise, by exact turns alone; of equal points the first.

    Andrew's monotone chain (1979), for cases that the network gets wrong.
    """
    order = np.lexsort((points[:, 1], points[:, 0]))
    is_new = np.ones(len(order), dtype=bool)
    is_new[1:] = (points[order[1:]] != points[order[:-1]]).any(1)
    order = order[is_new]
    if len(order) < 3:
        return order
    lower, upper = _chain(points, order), _chain(points, order[::-1])
    return np.concatenate([lower[:-1], upper[:-1]])


def _chain(points: np.ndarray, order: np.ndarray) -> np.ndarray:
    """The corners from the first to the last point in order, each turn to the left.

    A point that is not to the right of the line between one point before and one after it is not a
    corner, so passes over all points at once discard most of them.
    """
    for _ in range(_SWEEPS):
        left = turns(points[order[:-2]], points[order[1:-1]], points[order[2:]]) > 0
        if left.all():
            return order
        order = order[np.concatenate([[True], left, [True]])]
    kept: list[int] = []
    for i in order.tolist():
        while len(kept) > 1 and turns(*(points[[k]] for k in (*kept[-2:], i)))[0] <= 0:
            kept.pop()
        kept.append(i)
    return np.array(kept)
