"""Filling a knapsack by value per weight: the order, and Dantzig's greedy algorithm.

Weights and capacities are whole numbers held as float64, so that every sum of them is exact (up to
2**53), and no rounding affects what fits.
"""

from __future__ import annotations

import typing

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numba import njit
from torch import Tensor

from diconet.core.compiled import KERNEL
from diconet.core.host import from_host, to_host
from diconet.core.segments import segment_sort
from diconet.core.sets import SetBatch

VALUE, WEIGHT = 0, 1
"""The columns of an item."""

ROOM, TO_COME = 0, 1
"""The columns of a context: the room left and, below the root, the number of calls to come."""


def by_ratio(sets: SetBatch) -> Int[Tensor, "items"]:
    """The row order that sorts each set by descending value per weight; weight zero comes first."""
    value, weight = sets.items[:, VALUE].double(), sets.items[:, WEIGHT].double()
    ratio = torch.where(weight > 0, value / weight.clamp(min=1e-300), value * torch.inf)
    return segment_sort(-ratio.nan_to_num(), sets.owner)


def used(sets: SetBatch, chosen: Bool[Tensor, "items"]) -> Float[Tensor, "sets"]:
    """The weight of the chosen items of each set."""
    return sets.sum(torch.where(chosen, sets.items[:, WEIGHT].double(), 0.0))


def worth(sets: SetBatch, chosen: Bool[Tensor, "items"]) -> Float[Tensor, "sets"]:
    """The value of the chosen items of each set."""
    return sets.sum(torch.where(chosen, sets.items[:, VALUE].double(), 0.0))


def whole_instances(sets: SetBatch) -> list[tuple[np.ndarray, np.ndarray, int]]:
    """Values, weights and capacity of every set as integers."""
    whole = sets.items.round().long()
    if not bool((whole == sets.items).all()):
        raise ValueError("values and weights must be whole numbers for branch and bound.")
    capacities = sets.context[:, ROOM].long().tolist()
    return [
        (to_host(items[:, VALUE]), to_host(items[:, WEIGHT]), capacity)
        for items, capacity in zip(sets.unpack(whole), capacities, strict=True)
    ]


def greedy_fill(
    sets: SetBatch,
    order: Int[Tensor, "items"],
    *,
    skip: bool = True,
    chosen: Bool[Tensor, "items"] | None = None,
) -> Bool[Tensor, "items"]:
    """Takes items in this order while they fit, in addition to those already `chosen`.

    At the first item that does not fit it stops or, with `skip`, skips it and continues.
    """
    if chosen is None:
        chosen = torch.zeros(sets.num_items, dtype=torch.bool, device=order.device)
    result = to_host(chosen).copy()
    room = sets.context[:, ROOM].double() - used(sets, chosen)
    items = to_host(sets.items.double())
    _fill(items, to_host(order), to_host(sets.offsets), to_host(room).copy(), result, skip)
    return from_host(result, order)


def greedy_that_stops(sets: SetBatch) -> Bool[Tensor, "items"]:
    """The paper's Greedy: items by descending ratio, up to the first that does not fit."""
    return greedy_fill(sets, by_ratio(sets), skip=False)


def greedy_that_skips(sets: SetBatch) -> Bool[Tensor, "items"]:
    """Items by descending value per weight, skipping those that do not fit."""
    return greedy_fill(sets, by_ratio(sets))


@njit(**KERNEL)
@typing.no_type_check
def _fill(items, order, offsets, room, chosen, skip):
    for s in range(len(room)):
        for place in range(offsets[s], offsets[s + 1]):
            row = order[place]
            if chosen[row] or items[row, 0] <= 0:
                continue
            if items[row, 1] <= room[s]:
                chosen[row] = True
                room[s] -= items[row, 1]
            elif not skip:
                break
