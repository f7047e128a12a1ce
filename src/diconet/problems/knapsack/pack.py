"""The merge of the paper's recursion: the union of what the parts hold."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool
from torch import Tensor

from diconet.core.answers import Sequences
from diconet.core.model import Part
from diconet.core.segments import index_of
from diconet.core.sets import SetBatch
from diconet.core.tree import Level
from diconet.problems.knapsack.greedy import ROOM, used


@dataclass(frozen=True, eq=False)
class Packed:
    """Which items of the roots are in the knapsack, as far as a level knows."""

    roots: SetBatch
    chosen: Bool[Tensor, "items"]
    log_prob: None = None

    @property
    def solution(self) -> Sequences:
        """The choice as positions within each set, in the order of the items."""
        return Sequences.where(self.roots, self.chosen)


class PackMerge(Part):
    """Takes a whole leaf if it fits the room it was given; a node holds what its parts hold."""

    def forward(self, level: Level, below: Packed | None, target: None) -> Packed:
        chosen = (
            torch.zeros_like(level.roots.index, dtype=torch.bool)
            if below is None
            else below.chosen.clone()
        )
        leaves = level.sets.take(index_of(level.is_leaf))
        everything = torch.ones_like(leaves.index, dtype=torch.bool)
        fits = used(leaves, everything) <= leaves.context[:, ROOM]
        chosen[leaves.index[fits[leaves.owner]]] = True
        return Packed(level.roots, chosen)
