"""Lists of partial choices, compiled: how a leaf makes one and how a node joins two.

A *choice* flips some items of a node: takes items out that the fractional optimum has in, or puts
others in. It is known by what that adds to weight and value and by its *loss*: how much value the
flips give up at the fractional optimum's prices. Lists are sorted by weight, and their values rise:
a choice that is heavier than another and no more valuable is of no use.

A list is *complete* if it leaves out no useful choice whose loss is within the budget.
"""

from __future__ import annotations

import typing

import numpy as np
from numba import njit

HALVINGS = 40
"""How often the budget of a node is halved between what is too much and what is not."""

NOTHING = -(2**62)
"""Less than the value of any choice."""

DEFERRED, LEAF, FIXED, JOINED = range(4)
"""The kinds of nodes."""


@njit(cache=True)
@typing.no_type_check
def undominated(value, order):
    """The places of `order` (rising weight, falling value) worth keeping, in that order."""
    count = 0
    best = np.int64(NOTHING)
    for place in order:
        if value[place] > best:
            best = value[place]
            order[count] = place
            count += 1
    return order[:count]


@njit(cache=True)
@typing.no_type_check
def by_weight(weight, value):
    """The order of rising weight, among equals of falling value."""
    order = np.argsort(weight, kind="mergesort")
    start = 0
    for end in range(1, len(order) + 1):
        if end == len(order) or weight[order[end]] != weight[order[start]]:
            if end - start > 1:
                # only the first of equals is ever kept, so bring the most valuable there
                top = start
                for place in range(start + 1, end):
                    if value[order[place]] > value[order[top]]:
                        top = place
                order[start], order[top] = order[top], order[start]
            start = end
    return order


@njit(cache=True)
@typing.no_type_check
def _by_loss(loss):
    return np.argsort(loss, kind="mergesort")


@njit(cache=True)
@typing.no_type_check
def pairs_within(la, a, lb, b, budget):
    """How many pairs of two lists, ordered by rising loss, lose no more than the budget."""
    count, j = 0, len(b)
    for i in a:
        while j > 0 and la[i] + lb[b[j - 1]] > budget:
            j -= 1
        if j == 0:
            break
        count += j
    return count


@njit(cache=True)
@typing.no_type_check
def _spread(weight, loss, order, most, target):
    """At most `most` of a list: those that lose least.

    Of equals, half are the nearest to the weight in demand, half are spread over all weights.
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
    ties = ties[np.argsort(ties, kind="mergesort")]  # lists are by weight, so places are, too
    near = 0
    while near < len(ties) and weight[ties[near]] < target:
        near += 1
    kept = order[:most].copy()
    close = (most - start) // 2
    near = min(max(near - close // 2, 0), len(ties) - close)
    kept[start : start + close] = ties[near : near + close]
    spread = most - start - close
    for i in range(spread):
        kept[start + close + i] = ties[i * len(ties) // spread]
    return kept


@njit(cache=True)
@typing.no_type_check
def _thinned(wa, la, a, wb, lb, b, budget, most, target):
    """Two lists by rising loss, and a budget, that give at most `most` pairs."""
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


@njit(cache=True)
@typing.no_type_check
def join(wa, va, la, ma, wb, vb, lb, mb, budget, budget_2, most, target):
    """All pairs within the budgets as one list; thinned out first where they are more than `most`.

    There are two losses, by two prices (l and m); a useful choice is within the budget of both, and
    likely to weigh about `target`.
    Gives weight, value, losses, the places of both parts, and whether nothing was thinned out.
    """
    a, b, a_2, b_2 = _by_loss(la), _by_loss(lb), _by_loss(ma), _by_loss(mb)
    count = pairs_within(la, a, lb, b, budget)
    count_2 = pairs_within(ma, a_2, mb, b_2, budget_2)
    whole = min(count, count_2) <= most
    by_second = whole and count_2 < count
    if by_second:  # for fewer pairs to look at, the prices change places
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


@njit(cache=True)
@typing.no_type_check
def leaf(weights, values, flipped, kept_2, flipped_2, budget, budget_2, most, target):
    """The list of a leaf, one item after the other, in the form of `join`.

    In place of the places there are bits: bit i of a choice says whether item i is flipped.
    """
    weight, value = np.zeros(1, np.int64), np.zeros(1, np.int64)
    loss, loss_2, bits = np.zeros(1), np.zeros(1), np.zeros(1, np.int64)
    whole = True
    flip_w, flip_v = np.zeros(2, np.int64), np.zeros(2, np.int64)
    flip_l, flip_m = np.zeros(2), np.zeros(2)
    flip = flip_w, flip_v, flip_l, flip_m
    for item in range(len(weights)):
        flip_w[1], flip_v[1], flip_l[1] = weights[item], values[item], flipped[item]
        flip_m[0], flip_m[1] = kept_2[item], flipped_2[item]
        weight, value, loss, loss_2, left, right, all_ = join(
            weight, value, loss, loss_2, *flip, budget, budget_2, most, target
        )
        whole = whole and all_
        old, bits = bits, np.empty(len(left), np.int64)
        for i in range(len(left)):
            bits[i] = old[left[i]] | (right[i] << item)
    return weight, value, loss, loss_2, bits, np.zeros(len(bits), np.int64), whole


@njit(cache=True)
@typing.no_type_check
def best_pair(wa, va, wb, vb, room):
    """The two choices that fit together and are worth most: value and places (-1: none)."""
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


@njit(cache=True)
@typing.no_type_check
def level_lists(items, offsets, kind, child, budgets, below, below_offsets):
    """The lists of all nodes of a level, end to end, with their offsets and whether each is whole.

    A node is a leaf with items to choose from, one that keeps all as they are, or one that joins
    the lists of the nodes `child` and `child` + 1 below (LEAF, FIXED, JOINED); for any other kind
    the list stays empty. `items` are the weight and value that flipping adds, what it loses, and
    what keeping and flipping lose at the second price.
    """
    weights, values, flipped, kept_2, flipped_2 = items
    w, v, loss_1, loss_2, _, _ = below
    budget, budget_2, most, target = budgets
    parts = []
    nodes = []
    ends = np.zeros(len(kind) + 1, np.int64)
    whole = np.ones(len(kind), np.bool_)
    for node in range(len(kind)):
        ends[node + 1] = ends[node]
        if kind[node] == DEFERRED:
            continue
        limits = budget[node], budget_2[node], most[node], target[node]
        if kind[node] == JOINED:
            a, b, c = below_offsets[child[node] : child[node] + 3]
            one = w[a:b], v[a:b], loss_1[a:b], loss_2[a:b]
            other = w[b:c], v[b:c], loss_1[b:c], loss_2[b:c]
            part = join(*one, *other, *limits)
        else:
            a = offsets[node]
            b = offsets[node + 1] if kind[node] == LEAF else a
            part = leaf(
                weights[a:b], values[a:b], flipped[a:b], kept_2[a:b], flipped_2[a:b], *limits
            )
        parts.append(part)
        nodes.append(node)
        whole[node] = part[6]
        ends[node + 1] += len(part[0])
    total = ends[-1]
    weight, value = np.empty(total, np.int64), np.empty(total, np.int64)
    loss, second = np.empty(total), np.empty(total)
    left, right = np.empty(total, np.int64), np.empty(total, np.int64)
    for i in range(len(parts)):
        a, b = ends[nodes[i]], ends[nodes[i] + 1]
        weight[a:b], value[a:b], loss[a:b], second[a:b] = parts[i][:4]
        left[a:b], right[a:b] = parts[i][4], parts[i][5]
    return (weight, value, loss, second, left, right), ends, whole
