"""Trees with a given number of leaves, from a split that has no notion of a budget."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Int
from torch import Tensor

from diconet.core.sets import SetBatch
from diconet.core.tree import Cut, Split


@dataclass(frozen=True)
class SharedBudget:
    """Divides a set's budget of leaves (its context) between the two sides of another split's cut.

    In proportion to the items of each side; a side never gets more leaves than it has items, and
    is finished when it has one left. No side is empty.
    """

    split: Split

    def __call__(self, sets: SetBatch, seeds: Int[Tensor, "sets"] | None) -> Cut:
        cut = without_empty_side(sets, self.split(sets, seeds))
        budget = torch.minimum(sets.context[:, 0].long(), sets.sizes).clamp(min=2)
        second_size = torch.bincount(sets.owner[cut.side], minlength=len(sets))
        first_size = sets.sizes - second_size
        least = (budget - second_size).clamp(min=1)
        most = torch.maximum(torch.minimum(budget - 1, first_size), least)
        wanted = (budget * first_size / sets.sizes).round().long()
        first = torch.minimum(torch.maximum(wanted, least), most)
        leaves = torch.stack([first, budget - first], 1)
        contexts = sets.context[:, None].expand(-1, 2, -1).clone()
        contexts[:, :, 0] = leaves.to(contexts.dtype)
        return replace(cut, contexts=contexts, closed=leaves <= 1)


def without_empty_side(sets: SetBatch, cut: Cut) -> Cut:
    """The cut with one item moved where a side of a set of two or more would be empty.

    It is the item likeliest to be on that side, or the last if the split gives no probabilities.
    """
    second = torch.bincount(sets.owner[cut.side], minlength=len(sets))
    bad = ((second == 0) | (second == sets.sizes)) & (sets.sizes > 1)
    if not bool(bad.any()):
        return cut
    pull = cut.side.to(sets.items.dtype) if cut.prob is None else cut.prob.detach()
    pull = torch.where((second == 0)[sets.owner], pull, -pull)
    peak = pull.new_full((len(sets),), -torch.inf).scatter_reduce(0, sets.owner, pull, "amax")
    rows = torch.where(pull == peak[sets.owner], torch.arange(len(pull), device=pull.device), -1)
    last = rows.new_full((len(sets),), -1).scatter_reduce(0, sets.owner, rows, "amax")
    side = cut.side.clone()
    moved = last[bad]
    side[moved] = ~side[moved]
    return replace(cut, side=side)
