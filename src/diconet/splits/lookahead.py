"""A split that looks at the clusters its own cut would lead to, and draws the cut around them."""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Int
from torch import Tensor, nn

from diconet.clusters import lloyd_steps
from diconet.sets import SetBatch
from diconet.tree import Cut, Growth, children, grow


class LookAhead(nn.Module):
    """A split by budget whose cuts go around clusters instead of through them.

    Each cut is first followed down to its leaves by the likeliest cuts. These clusters then move
    for some `rounds` of Lloyd's algorithm, and every item goes to the side its cluster is on. For
    solving, not for training: the log-probability is still that of the wrapped split's own cut.
    """

    def __init__(self, split: nn.Module, rounds: int = 2) -> None:
        super().__init__()
        if rounds < 0:
            raise ValueError(f"rounds must be at least 0; got {rounds}.")
        self.config = {"split": split, "rounds": rounds}
        self.split = split
        self.rounds = rounds

    def forward(self, sets: SetBatch, seeds: Int[Tensor, "sets"] | None) -> Cut:
        cut: Cut = self.split(sets, seeds)
        if cut.closed is None or self.rounds == 0:
            return cut
        sides = children(sets, cut)
        sides = SetBatch.pack(sides.items, sides.sizes, sides.context)
        below = grow(self.split, sides, Growth(), closed=cut.closed.flatten())
        leaves = torch.empty_like(below.leaves)
        # the children's items are the set's own, first side first
        leaves[torch.argsort(2 * sets.owner + cut.side, stable=True)] = below.leaves
        count = sides.owner.new_zeros(len(sides))
        count = count.scatter_reduce(0, sides.owner, below.leaves + 1, "amax")[::2]
        labels = leaves + torch.where(cut.side, count[sets.owner], 0)
        moved = lloyd_steps(sets, labels, self.rounds)
        return replace(cut, side=moved >= count[sets.owner], prob=None)
