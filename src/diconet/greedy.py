"""Filling a knapsack by value per weight: the order, Dantzig's greedy, and his bound.

Weights and capacities are whole numbers held as float64, so that every sum of them is exact (up to
2**53) and "fits" means fits.
"""

from __future__ import annotations

import typing

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numba import njit
from torch import Tensor

from diconet.segments import segment_sort, segment_sum
from diconet.sets import SetBatch

VALUE, WEIGHT = 0, 1
"""The columns of an item."""

ROOM, PASSED, TO_COME = 0, 1, 2
"""The columns of a context. A root has only the first, its capacity; below, a set also knows how
many of its items (the best by ratio) were passed over, and how many decisions are still to come."""


def ratio_of(sets: SetBatch) -> Float[Tensor, "items"]:
    """Value per weight of every item; what weighs nothing comes first of all."""
    value, weight = sets.items[:, VALUE].double(), sets.items[:, WEIGHT].double()
    return torch.where(weight > 0, value / weight.clamp(min=1e-300), value * torch.inf).nan_to_num()


def by_ratio(sets: SetBatch) -> Int[Tensor, "items"]:
    """The row order that sorts each set by falling value per weight."""
    return segment_sort(-ratio_of(sets), sets.owner)


def used(sets: SetBatch, chosen: Bool[Tensor, "items"]) -> Float[Tensor, "sets"]:
    """The weight of the chosen items of each set."""
    return sets.sum(torch.where(chosen, sets.items[:, WEIGHT].double(), 0.0))


def worth(sets: SetBatch, chosen: Bool[Tensor, "items"]) -> Float[Tensor, "sets"]:
    """The value of the chosen items of each set."""
    return sets.sum(torch.where(chosen, sets.items[:, VALUE].double(), 0.0))


def greedy_fill(
    sets: SetBatch,
    order: Int[Tensor, "items"],
    *,
    skip: bool = True,
    chosen: Bool[Tensor, "items"] | None = None,
) -> Bool[Tensor, "items"]:
    """Takes items in this order while they fit, on top of those already `chosen`.

    At the first item that does not fit it stops or, with `skip`, passes over it and goes on.
    """
    if chosen is None:
        chosen = torch.zeros(sets.num_items, dtype=torch.bool)
    result = chosen.numpy().copy()
    room = sets.context[:, ROOM].double() - used(sets, chosen)
    items = sets.items.double().numpy()
    _fill(items, order.numpy(), sets.offsets.numpy(), room.numpy().copy(), result, skip)
    return torch.from_numpy(result)


@njit(cache=True)
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


def fractional_bound(sets: SetBatch) -> Float[Tensor, "sets"]:
    """The value that no choice can exceed: greedy with a fraction of the item that breaks it."""
    order = by_ratio(sets)
    items = sets.items.double()[order]
    before = np.cumsum(items[:, WEIGHT].numpy()) - items[:, WEIGHT].numpy()
    start = torch.from_numpy(np.append(before, 0.0))[sets.offsets[:-1].clamp(max=len(before))]
    room = sets.context[:, ROOM].double()[sets.owner] - (
        torch.from_numpy(before) - start[sets.owner]
    )
    weight = items[:, WEIGHT]
    share = torch.where(weight > 0, room / weight.clamp(min=1e-300), 1.0).clamp(0, 1)
    return segment_sum(share * items[:, VALUE].clamp(min=0), sets.owner, len(sets))
