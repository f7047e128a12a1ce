"""Compiled operations on lists of partial choices: how a node joins two.

A *choice* flips some items of a node: takes out items that the fractional optimum has in, or puts
others in. It is described by its change of weight and value and by its *loss*: how much value the
flips give up at the fractional optimum's prices. Lists are sorted by weight, and their values rise:
a choice that is heavier than another and no more valuable is useless.

A list is *complete* if it omits no useful choice whose loss is within the budget.
"""

from __future__ import annotations

import typing

import numpy as np
from numba import njit

from diconet.core.compiled import INNER, KERNEL

HALVINGS = 40
"""Bisection steps to find a node's budget."""

NOTHING = -(2**62)
"""Below the value of any choice."""


@njit(**KERNEL)
@typing.no_type_check
def rising(key):
    """The ascending order of int64 keys, by merges: NumPy's sort would take seconds to compile."""
    num = len(key)
    order, other = np.empty(num, np.int64), np.empty(num, np.int64)
    for i in range(num):
        order[i] = i
    width = 1
    while width < num:
        for low in range(0, num, 2 * width):
            middle, high = min(low + width, num), min(low + 2 * width, num)
            i, j = low, middle
            for place in range(low, high):
                if i < middle and (j == high or key[order[i]] <= key[order[j]]):
                    other[place] = order[i]
                    i += 1
                else:
                    other[place] = order[j]
                    j += 1
        order, other = other, order
        width *= 2
    return order


@njit(**INNER)
@typing.no_type_check
def _by_loss(loss):
    """The order of ascending loss: the bits of nonnegative numbers sort like their values."""
    return rising(loss.view(np.int64))


@njit(**KERNEL)
@typing.no_type_check
def undominated(value, order):
    """The entries of `order` (ascending weight, descending value) worth keeping, in that order."""
    count = 0
    best = np.int64(NOTHING)
    for place in order:
        if value[place] > best:
            best = value[place]
            order[count] = place
            count += 1
    return order[:count]


@njit(**KERNEL)
@typing.no_type_check
def by_weight(weight, value):
    """The order of ascending weight, with descending value among equals."""
    order = rising(weight)
    start = 0
    for end in range(1, len(order) + 1):
        if end == len(order) or weight[order[end]] != weight[order[start]]:
            if end - start > 1:
                # only the first of equals is ever kept, so move the most valuable there
                top = start
                for place in range(start + 1, end):
                    if value[order[place]] > value[order[top]]:
                        top = place
                order[start], order[top] = order[top], order[start]
            start = end
    return order


@njit(**KERNEL)
@typing.no_type_check
def pairs_within(la, a, lb, b, budget):
    """How many pairs of two lists, sorted by loss, lose no more than the budget."""
    count, j = 0, len(b)
    for i in a:
        while j > 0 and la[i] + lb[b[j - 1]] > budget:
            j -= 1
        if j == 0:
            break
        count += j
    return count


@njit(**INNER)
@typing.no_type_check
def _spread(weight, loss, order, most, target):
    """At most `most` entries of a list: those that lose least.

    Of equals, half are those closest to the target weight, half are spread over all weights.
    """
    if len(order) <= most:
        return order
    limit = loss[order[most - 1]]
    start = most - 1
    while start > 0 and loss[order[start - 1]] == limit:
        start -= 1
    stop = most
    while stop < len(order) and loss[order[stop]] == limit:
        stop += 1
    ties = order[start:stop]
    ties = ties[rising(ties)]  # lists are sorted by weight, and so are the indices
    near = 0
    while near < len(ties) and weight[ties[near]] < target:
        near += 1
    kept = order[:most].copy()
    close = (most - start) // 2
    near = min(max(near - close // 2, 0), len(ties) - close)
    for i in range(close):
        kept[start + i] = ties[near + i]
    spread = most - start - close
    for i in range(spread):
        kept[start + close + i] = ties[i * len(ties) // spread]
    return kept


@njit(**INNER)
@typing.no_type_check
def _thinned(wa, la, a, wb, lb, b, budget, most, target):
    """Two lists sorted by loss, and a budget, with at most `most` pairs within it."""
    if pairs_within(la, a, lb, b, 0.0) > most:
        few = max(int(np.sqrt(most)), 1)
        a = _spread(wa, la, a, few, 0.5 * target)
        b = _spread(wb, lb, b, few, 0.5 * target)
    if pairs_within(la, a, lb, b, budget) > most:
        low, high = 0.0, budget
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            if pairs_within(la, a, lb, b, middle) > most:
                high = middle
            else:
                low = middle
        budget = low
    return a, b, budget


@njit(**KERNEL)
@typing.no_type_check
def join(wa, va, la, ma, wb, vb, lb, mb, budget, budget_2, most, target):
    """All pairs within the budgets as one list; thinned out first if they exceed `most`.

    There are two losses, by two prices (l and m); a useful choice is within both budgets, and
    likely to weigh about `target`.
    Returns weight, value, losses, the indices of both parts, and whether nothing was thinned out.
    """
    a, b, a_2, b_2 = _by_loss(la), _by_loss(lb), _by_loss(ma), _by_loss(mb)
    count = pairs_within(la, a, lb, b, budget)
    count_2 = pairs_within(ma, a_2, mb, b_2, budget_2)
    whole = min(count, count_2) <= most
    by_second = whole and count_2 < count
    if by_second:  # swap the prices if that leaves fewer pairs to examine
        la, lb, ma, mb, budget, budget_2 = ma, mb, la, lb, budget_2, budget
        a, b, count = a_2, b_2, count_2
    elif not whole:
        a, b, budget = _thinned(wa, la, a, wb, lb, b, budget, most, target)
        count = pairs_within(la, a, lb, b, budget)
    weight, value = np.empty(count, np.int64), np.empty(count, np.int64)
    loss, loss_2 = np.empty(count), np.empty(count)
    left, right = np.empty(count, np.int64), np.empty(count, np.int64)
    num = 0
    for i in a:
        for j in b:
            if la[i] + lb[j] > budget:
                break
            if ma[i] + mb[j] <= budget_2:
                weight[num], value[num] = wa[i] + wb[j], va[i] + vb[j]
                loss[num], loss_2[num] = la[i] + lb[j], ma[i] + mb[j]
                left[num], right[num] = i, j
                num += 1
    keep = undominated(value, by_weight(weight[:num], value[:num]))
    if by_second:
        loss, loss_2 = loss_2, loss
    return weight[keep], value[keep], loss[keep], loss_2[keep], left[keep], right[keep], whole


@njit(**KERNEL)
@typing.no_type_check
def best_pair(wa, va, wb, vb, room):
    """The most valuable two choices that fit together: value and indices (-1: none)."""
    best, left, right = np.int64(NOTHING), -1, -1
    j = len(wb) - 1
    for i in range(len(wa)):
        while j >= 0 and wa[i] + wb[j] > room:
            j -= 1
        if j < 0:
            break
        # values rise along a list, so the heaviest that fits is the best that fits
        if va[i] + vb[j] > best:
            best, left, right = va[i] + vb[j], i, j
    return best, left, right
