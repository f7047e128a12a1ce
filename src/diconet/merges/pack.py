"""The knapsack's merge: what the parts hold together, and what still fits beside it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool
from torch import Tensor, nn

from diconet.answers import Sequences
from diconet.greedy import by_ratio, greedy_fill, used
from diconet.segments import index_of
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
    """A leaf is taken whole if it fits the capacity it was given; a node has what its parts have.

    With `fill`, the root goes on and takes by value per weight whatever else fits.
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
        sets = level.sets
        everything = torch.ones(sets.num_items, dtype=torch.bool)
        fits = used(sets, everything) <= sets.context[:, 0]
        chosen[sets.index[(level.is_leaf & fits)[sets.owner]]] = True
        if self.fill and level.number == 0:
            chosen = greedy_fill(sets, by_ratio(sets), chosen=chosen)
        return Packed(level.roots, chosen)
