"""The knapsack's merge: what the parts hold together, and what still fits beside it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn

from diconet.answers import Sequences
from diconet.greedy import PASSED, ROOM, by_ratio, greedy_fill, used
from diconet.segments import index_of, segment_sort
from diconet.sets import SetBatch
from diconet.tree import Level


@dataclass(frozen=True, eq=False)
class Packed:
    """Which items of the roots are in the knapsack, as far as a level knows."""

    roots: SetBatch
    chosen: Bool[Tensor, "items"]
    log_prob: None = None

    @property
    def solution(self) -> Sequences:
        """The choice as places within each set, in the order of the items."""
        rows = index_of(self.chosen)
        return Sequences(
            self.roots.position[rows],
            torch.bincount(self.roots.owner[rows], minlength=len(self.roots)),
        )


class PackMerge(nn.Module):
    """A leaf is taken whole if it fits the room it was given; a node holds what its parts hold.

    With `fill`, a leaf that does not fit is filled by greedy, the items passed over last.
    """

    def __init__(self, fill: bool = False) -> None:
        super().__init__()
        self.config = {"fill": fill}
        self.fill = fill

    def forward(self, level: Level, below: Packed | None, target: None) -> Packed:
        chosen = (
            torch.zeros(level.roots.num_items, dtype=torch.bool)
            if below is None
            else below.chosen.clone()
        )
        leaves = level.sets.take(index_of(level.is_leaf))
        if self.fill:
            taken = greedy_fill(leaves, passed_last(leaves))
        else:
            everything = torch.ones(leaves.num_items, dtype=torch.bool)
            taken = (used(leaves, everything) <= leaves.context[:, ROOM])[leaves.owner]
        chosen[leaves.index[taken]] = True
        return Packed(level.roots, chosen)


def passed_last(sets: SetBatch) -> Int[Tensor, "items"]:
    """The row order by falling value per weight, with those that were passed over at the end."""
    order = by_ratio(sets)
    if sets.context.shape[1] == 1:
        return order
    late = sets.position < sets.context[:, PASSED][sets.owner]
    return order[segment_sort(late.long(), sets.owner)]
