"""What a take-or-leave decision looks at, computed for many knapsacks at once.

A knapsack under way is a run of items sorted by value per weight, a position in it and the room
left: everything before the position is decided. What does not fit the room never will, so only
items that fit count. The *break item* is the first of them that greedy, going on from here, cannot
take; measured against its ratio, an item's value is its *reduced* value.
"""

from __future__ import annotations

import typing

import numpy as np
from numba import njit

WINDOW = 18
"""How many items, from the one to decide on, are described one by one."""

HORIZON = 64
"""How many items a greedy completion runs through."""

REACH = 1024
"""How far ahead those items are looked for."""

PER_ITEM = 6
NUM_INPUTS = PER_ITEM * WINDOW + 10

LOOKAHEAD = PER_ITEM * WINDOW + 5
"""The input that says how much better the best completion found after taking is than that after
leaving, each a greedy one with at most one choice turned round."""


@njit(cache=True)
@typing.no_type_check
def breaks(weights, starts, ends, room):
    """For every knapsack the place of the first item that greedy, stopping, does not take."""
    found = ends.copy()
    for s in range(len(starts)):
        left = room[s]
        for place in range(starts[s], ends[s]):
            if weights[place] > left:
                found[s] = place
                break
            left -= weights[place]
    return found


@njit(cache=True)
@typing.no_type_check
def upcoming(values, weights, ends, stops, room, position, active, out):
    """Moves every active knapsack on to its next item that fits, and describes what it looks at.

    The knapsacks that have something to decide come first in `active`, each with its row of `out`;
    says how many they are. One whose items ahead all fit has nothing to decide: greedy takes them.
    """
    value, weight = np.empty(HORIZON), np.empty(HORIZON)
    count = 0
    for k in range(len(active)):
        s = active[k]
        place = position[s]
        while place < stops[s] and weights[place] > room[s]:
            place += 1
        position[s] = place
        if place >= stops[s]:
            continue
        reach = min(ends[s], place + REACH)
        num, total = 0, 0.0
        while place < reach and num < HORIZON:
            if weights[place] <= room[s]:
                value[num], weight[num] = values[place], weights[place]
                total += weights[place]
                num += 1
            place += 1
        if total <= room[s] and place >= ends[s]:
            continue
        _describe(value[:num], weight[:num], room[s], out[count])
        active[count] = s
        count += 1
    return count


@njit(cache=True)
@typing.no_type_check
def _complete(value, weight, lightest, start, room, without):
    """The value that greedy, skipping, adds from `start` on; one item is left out."""
    total = 0.0
    for i in range(start, len(value)):
        if room < lightest[i]:
            break
        if weight[i] <= room and i != without:
            room -= weight[i]
            total += value[i]
    return total


@njit(cache=True)
@typing.no_type_check
def _flips(value, weight, lightest, room, last, out):
    """For each item from 1 on, the value of greedy with its choice there turned round."""
    left, total = room, 0.0
    for i in range(1, last):
        if weight[i] <= left:
            out[i] = total + _complete(value, weight, lightest, i + 1, left, -1)
            left -= weight[i]
            total += value[i]
        elif weight[i] <= room:
            out[i] = value[i] + _complete(value, weight, lightest, 1, room - weight[i], i)
        else:
            out[i] = -np.inf


@njit(cache=True)
@typing.no_type_check
def _describe(value, weight, room, out):
    """One row of inputs, all free of the units used: item 0 is the one to decide on."""
    last = min(WINDOW, len(value))
    broken, slack, bound = 0, room, 0.0
    while broken < len(value) - 1 and weight[broken] <= slack:
        slack -= weight[broken]
        bound += value[broken]
        broken += 1
    break_ratio = value[broken] / weight[broken]
    bound += slack * break_ratio
    mean_weight, spread = 0.0, 0.0
    for i in range(last):
        mean_weight += weight[i]
        spread += (value[i] / weight[i] / break_ratio - 1) ** 2
    mean_weight /= last
    spread = np.sqrt(spread / last) + 1e-9
    unit = break_ratio * mean_weight * spread

    lightest = weight.copy()
    for i in range(len(weight) - 2, -1, -1):
        lightest[i] = min(lightest[i], lightest[i + 1])
    take = value[0] + _complete(value, weight, lightest, 1, room - weight[0], -1)
    leave = _complete(value, weight, lightest, 1, room, -1)
    flips_take, flips_leave = np.empty(last), np.empty(last)
    _flips(value, weight, lightest, room - weight[0], last, flips_take)
    _flips(value, weight, lightest, room, last, flips_leave)
    flips_take[1:] += value[0]
    flips_take[0], flips_leave[0] = leave, take
    best_take, best_leave = take, leave
    left = room
    out[:] = 0.0
    for i in range(last):
        if i:
            best_take = max(best_take, flips_take[i])
            best_leave = max(best_leave, flips_leave[i])
        left -= weight[i]
        row = out[PER_ITEM * i : PER_ITEM * (i + 1)]
        row[0] = (value[i] - break_ratio * weight[i]) / unit
        row[1] = weight[i] / mean_weight
        row[2] = np.arcsinh(left / mean_weight)
        row[3] = np.arcsinh(max((flips_take[i] - take) / unit, -20.0))
        row[4] = np.arcsinh(max((flips_leave[i] - take) / unit, -20.0))
        row[5] = 1.0
    rest = out[PER_ITEM * WINDOW :]
    rest[0] = broken / WINDOW
    rest[1] = np.arcsinh(room / mean_weight)
    rest[2] = min(slack / mean_weight, 20.0)
    rest[3] = np.arcsinh(slack / mean_weight / spread)
    rest[4] = np.arcsinh((take - leave) / unit)
    rest[5] = np.arcsinh((best_take - best_leave) / unit)
    rest[6] = np.arcsinh((bound - best_take) / unit)
    rest[7] = np.arcsinh((bound - best_leave) / unit)
    rest[8] = np.log(spread) / 4
    rest[9] = np.arcsinh((best_take - take) / unit)
