"""What a knapsack network is compared with: Dantzig's greedy, its variants, and luck."""

from __future__ import annotations

import typing

import numpy as np
import torch
from jaxtyping import Bool
from numba import njit
from torch import Tensor

from diconet.greedy import by_ratio, greedy_fill, ratio_of, worth
from diconet.noise import mix, uniform
from diconet.segments import segment_sort
from diconet.sets import SetBatch


def greedy_that_stops(sets: SetBatch) -> Bool[Tensor, "items"]:
    """Items by falling value per weight, up to the first that does not fit: the paper's Greedy."""
    return greedy_fill(sets, by_ratio(sets), skip=False)


def greedy_that_skips(sets: SetBatch) -> Bool[Tensor, "items"]:
    """Items by falling value per weight, passing over what does not fit."""
    return greedy_fill(sets, by_ratio(sets))


def noisy_ratio(
    sets: SetBatch, samples: int, *, seed: int = 0, noise: float = 8.0
) -> Bool[Tensor, "items"]:
    """The best of many greedy choices, each by ratios disturbed at random: learning's control.

    The logarithm of a ratio moves by up to `noise` / n, about as many places up or down the order.
    """
    ratio = ratio_of(sets).clamp(1e-300, 1e300).log()
    scale = noise / sets.sizes[sets.owner].clamp(min=1)
    best = greedy_that_skips(sets)
    value = worth(sets, best)
    base = mix(torch.arange(sets.num_items), seed)
    for sample in range(samples):
        moved = ratio + scale * (2 * uniform(mix(base, sample)) - 1)
        chosen = greedy_fill(sets, segment_sort(-moved, sets.owner))
        better = worth(sets, chosen) > value
        best = torch.where(better[sets.owner], chosen, best)
        value = worth(sets, best)
    return best


def pilot(sets: SetBatch) -> Bool[Tensor, "items"]:
    """Forces each item in turn, finishes greedily and keeps the best (Duin and Voss, 1999)."""
    order = by_ratio(sets)
    items = sets.items.double()[order].numpy()
    room = sets.context[:, 0].double().numpy()
    forced = _best_forced(items, sets.offsets.numpy(), room)
    first = torch.zeros(sets.num_items, dtype=torch.bool)
    first[order[torch.from_numpy(forced[forced >= 0])]] = True
    return greedy_fill(sets, order, chosen=first)


@njit(cache=True)
@typing.no_type_check
def _best_forced(items, offsets, room):
    best = np.full(len(room), -1)
    for s in range(len(room)):
        most = -1.0
        for forced in range(offsets[s], offsets[s + 1]):
            if items[forced, 1] > room[s]:
                continue
            left, value = room[s] - items[forced, 1], items[forced, 0]
            for place in range(offsets[s], offsets[s + 1]):
                if place != forced and items[place, 0] > 0 and items[place, 1] <= left:
                    left -= items[place, 1]
                    value += items[place, 0]
            if value > most:
                most, best[s] = value, forced
    return best
