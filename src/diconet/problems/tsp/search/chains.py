"""Lin-Kernighan in steps of three edges: each step is the best sequential 3-opt move there is.

A step takes out the edges t1-t2, t3-t4, t5-t6 and puts in t2-t3, t4-t5 and t6-t1. Only steps after
which there is still one tour are looked at, so every chain can end anywhere (Helsgaun, 2000).
"""

from __future__ import annotations

from typing import no_type_check

from numba import njit

from diconet.problems.tsp.search.metric import distance
from diconet.problems.tsp.search.moves import beside, exchange, held, undo

ENDS = 40
"""The room that the ends of a chain's edges need."""

_STEPS = 4
_NOTHING, _TWO = 0, 1  # kinds of steps; 2 to 4 are those of three edges


@njit(cache=True, nogil=True)
@no_type_check
def improve(xy, code, near, reach, link, tour, pos, t1, tiny, longest, log, used, ends):
    """Makes the first chain from t1 that gains more than `tiny`.

    Gives what it gained (0 if nothing), the entries of the log in use, and how many `ends` moved.
    """
    start = used
    move = ends[ENDS - 4 :]
    for direction in range(2):
        t2 = beside(tour, pos, direction == 0, t1)
        if held(link, t1, t2):
            continue
        base = distance(xy, code, t1, t2)
        many = 0
        for _ in range(_STEPS):
            gain, left, kind = _best_step(
                xy,
                code,
                near,
                reach,
                link,
                tour,
                pos,
                t1,
                t2,
                base,
                tiny,
                longest,
                ends,
                many,
                move,
            )
            if kind == _NOTHING:
                break
            used = _make(tour, pos, t1, t2, move, kind, log, used)
            ends[many], ends[many + 1] = t1, t2
            for k in range(4):
                ends[many + 2 + k] = move[k]
            many += 4 if kind == _TWO else 6
            if gain > tiny:
                return gain, used, many
            base, t2 = left, move[3]
        used = undo(tour, pos, log, used, start)
    return 0.0, start, 0


@njit(cache=True, nogil=True)
@no_type_check
def _was_added(ends, many, a, b):
    """Whether this chain has put in the edge a-b."""
    at = 0
    while at < many:
        # t1 t2 t3 t4 [t5 t6]: put in were t2-t3 and t4-t5
        if (ends[at + 1] == a and ends[at + 2] == b) or (ends[at + 1] == b and ends[at + 2] == a):
            return True
        if (ends[at + 3] == a and ends[at + 4] == b) or (ends[at + 3] == b and ends[at + 4] == a):
            return True
        at += 6
    return False


@njit(cache=True, nogil=True)
@no_type_check
def _best_step(
    xy, code, near, reach, link, tour, pos, t1, t2, base, tiny, longest, ends, many, move
):
    """The step that gains most if the chain ends with it, or else the most promising one.

    Gives its gain, what is left before the way home is paid, and its kind; `move` gets t3 .. t6.
    """
    n = len(tour)
    forward = beside(tour, pos, True, t1) == t2
    best, kind = tiny, 0
    open_best, open_kind, left = tiny, 0, 0.0
    o3 = o4 = o5 = o6 = t1
    p2 = pos[t2]
    for k in range(near.shape[1]):
        t3 = near[t2, k]
        if t3 < 0:
            break
        g1 = base - reach[t2, k]
        if g1 <= tiny:
            break
        if t3 == t1:
            continue
        at3 = pos[t3] - p2 if forward else p2 - pos[t3]
        if at3 < 0:
            at3 += n
        for side in range(2):
            t4 = beside(tour, pos, (side == 1) == forward, t3)
            if t4 == t2 or held(link, t3, t4) or (many > 0 and _was_added(ends, many, t3, t4)):
                continue
            if (at3 if side else min(at3, n - at3)) > longest:
                continue
            g2 = g1 + distance(xy, code, t3, t4)
            if side == 0:
                gain = g2 - distance(xy, code, t4, t1)
                if gain > best:
                    best, kind = gain, 1
                    move[0], move[1] = t3, t4
            for j in range(near.shape[1]):
                t5 = near[t4, j]
                if t5 < 0:
                    break
                g3 = g2 - reach[t4, j]
                if g3 <= best:
                    break
                if t5 in (t3, t1):
                    continue
                at5 = pos[t5] - p2 if forward else p2 - pos[t5]
                if at5 < 0:
                    at5 += n
                if side == 1 and at5 > at3:
                    continue
                if side == 0 and at5 >= at3 and min(at5, n - at5) > longest:
                    continue
                for way in range(2):
                    # side 0 leaves one choice of t6, side 1 two of them
                    if side == 0:
                        if way == 1:
                            break
                        t6 = beside(tour, pos, (at5 < at3) == forward, t5)
                        if t6 == t4:
                            break
                        this = 2
                    else:
                        if (t5 == t3 and way == 0) or (t5 == t2 and way == 1):
                            continue
                        t6 = beside(tour, pos, (way == 0) == forward, t5)
                        this = 3 + way
                    if held(link, t5, t6) or (many > 0 and _was_added(ends, many, t5, t6)):
                        continue
                    g4 = g3 + distance(xy, code, t5, t6)
                    gain = g4 - distance(xy, code, t6, t1)
                    if gain > best:
                        best, kind, left = gain, this, g4
                        move[0], move[1], move[2], move[3] = t3, t4, t5, t6
                    elif kind == 0 and g4 > open_best:
                        open_best, open_kind = g4, this
                        o3, o4, o5, o6 = t3, t4, t5, t6
    if kind > 0:
        return best, left, kind
    if open_kind > 0:
        move[0], move[1], move[2], move[3] = o3, o4, o5, o6
    return 0.0, open_best, open_kind


@njit(cache=True, nogil=True)
@no_type_check
def _make(tour, pos, t1, t2, move, kind, log, used):
    """Makes a step, as exchanges of two edges each."""
    t3, t4, t5, t6 = move[0], move[1], move[2], move[3]
    if kind == 1:
        return exchange(tour, pos, t1, t2, t4, t3, log, used)
    if kind == 2:
        used = exchange(tour, pos, t1, t2, t4, t3, log, used)
        return exchange(tour, pos, t1, t4, t6, t5, log, used)
    if kind == 3:
        used = exchange(tour, pos, t1, t2, t3, t4, log, used)
        used = exchange(tour, pos, t1, t3, t6, t5, log, used)
        return exchange(tour, pos, t3, t5, t2, t4, log, used)
    used = exchange(tour, pos, t1, t2, t6, t5, log, used)
    return exchange(tour, pos, t2, t5, t3, t4, log, used)
