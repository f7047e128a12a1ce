"""Looking for the best of many ways through the core of a knapsack, by samples or by a beam.

The ways of one knapsack share its items, so the cost of trying one more hardly grows with the
number of items.
"""

from __future__ import annotations

import typing

import numpy as np
import torch
from jaxtyping import Int
from numba import njit
from torch import Tensor
from torch.nn import functional as F

from diconet.greedy import by_ratio
from diconet.sets import SetBatch
from diconet.splits.takeleave import TakeLeave, Walk

HEAD, DECIDED, FILLED, LEFT = range(4)
"""How an item got into the knapsack: ahead of the core, by decision, by greedy at last; or not."""


@torch.no_grad()
def best_of_walks(
    split: TakeLeave, sets: SetBatch, seeds: Int[Tensor, "sets samples"]
) -> Int[Tensor, "items"]:
    """How each item fares in the best of the likeliest way and a random one for every seed."""
    order = by_ratio(sets)
    start = split.start(sets, order)
    likeliest = start.take(np.arange(len(sets)))
    split.run(likeliest, None)
    drawn = start.take(np.repeat(np.arange(len(sets)), seeds.shape[1]))
    split.run(drawn, seeds.flatten())
    owner = np.append(np.arange(len(sets)), np.repeat(np.arange(len(sets)), seeds.shape[1]))
    return _best(sets, order, _joined(likeliest, drawn), owner)


@torch.no_grad()
def beam_of_walks(split: TakeLeave, sets: SetBatch, width: int) -> Int[Tensor, "items"]:
    """How each item fares in the best of the `width` likeliest ways that a beam finds."""
    if width < 1:
        raise ValueError(f"width must be at least 1; got {width}.")
    order = by_ratio(sets)
    walk = split.start(sets, order)
    owner = np.arange(len(sets))
    score = np.zeros(len(sets))
    while True:
        active, inputs = walk.look(np.arange(len(walk)))
        if len(active) == 0:
            return _best(sets, order, walk, owner)
        logits = split.logits(inputs)
        waiting = np.setdiff1d(np.arange(len(walk)), active, assume_unique=True)
        parent = np.concatenate([waiting, active, active])
        take = np.repeat([False, True, False], [len(waiting), len(active), len(active)])
        decided = np.arange(len(parent)) >= len(waiting)
        gain = torch.cat([F.logsigmoid(logits), F.logsigmoid(-logits)]).double().numpy()
        likely = score[parent] + np.append(np.zeros(len(waiting)), gain)
        keep = _top(owner[parent], likely, width)
        owner, score = owner[parent[keep]], likely[keep]
        walk = walk.take(parent[keep])
        moved = np.flatnonzero(decided[keep])
        walk.decide(moved, take[keep][moved])


def _top(owner: np.ndarray, score: np.ndarray, width: int) -> np.ndarray:
    """The rows with the `width` best scores of each owner, the owners in order."""
    order = np.lexsort((-score, owner))
    sizes = np.bincount(owner)
    place = np.arange(len(owner)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return order[place < width]


def _joined(a: Walk, b: Walk) -> Walk:
    names = ("starts", "first", "stops", "ends", "position", "room", "taken")
    both = [np.concatenate([getattr(a, name), getattr(b, name)]) for name in names]
    return Walk(a.values, a.weights, *both)


def _best(
    sets: SetBatch, order: Int[Tensor, "items"], walk: Walk, owner: np.ndarray
) -> Int[Tensor, "items"]:
    """How each item fares in its set's best way, filled up by greedy."""
    worth = completed(walk)
    best = _top(owner, worth, 1)
    stage = np.full(sets.num_items, LEFT)
    _mark(
        walk.weights,
        walk.starts[best],
        walk.first[best],
        walk.position[best],
        walk.ends[best],
        walk.room[best],
        walk.taken[best],
        stage,
    )
    result = torch.empty(sets.num_items, dtype=torch.long)
    result[order] = torch.from_numpy(stage)
    return result


def completed(walk: Walk) -> np.ndarray:
    """What each way adds to its head: the value it took and that of greedy in the room left."""
    ways = walk.first, walk.position, walk.ends, walk.room, walk.taken
    return _completed(walk.values, walk.weights, *ways)


@njit(cache=True)
@typing.no_type_check
def _completed(values, weights, first, position, ends, room, taken):
    worth = np.zeros(len(room))
    for way in range(len(room)):
        left = room[way]
        for place in range(position[way], ends[way]):
            if weights[place] <= left:
                left -= weights[place]
                worth[way] += values[place]
        for place in range(first[way], position[way]):
            if taken[way, place - first[way]]:
                worth[way] += values[place]
            elif weights[place] <= left:  # passed over, but after all there is room
                left -= weights[place]
                worth[way] += values[place]
    return worth


@njit(cache=True)
@typing.no_type_check
def _mark(weights, starts, first, position, ends, room, taken, stage):
    for way in range(len(room)):
        left = room[way]
        stage[starts[way] : first[way]] = HEAD
        for place in range(position[way], ends[way]):
            if weights[place] <= left:
                left -= weights[place]
                stage[place] = FILLED
        for place in range(first[way], position[way]):
            if taken[way, place - first[way]]:
                stage[place] = DECIDED
            elif weights[place] <= left:
                left -= weights[place]
                stage[place] = FILLED
