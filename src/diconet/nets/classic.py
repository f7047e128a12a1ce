"""Splits by rule: equal halves, and a wrapper that bounds how small a side can get."""

from __future__ import annotations

import torch
from jaxtyping import Int
from torch import Tensor, nn

from diconet.core.model import Part
from diconet.core.segments import index_of, segment_sort
from diconet.core.sets import SetBatch
from diconet.core.tree import Cut, cut_in_order


class MedianSplit(Part):
    """Equal halves along one feature: the classical split for sorting and planar hulls."""

    def __init__(self, feature: int = 0) -> None:
        super().__init__()
        self.feature = feature

    def forward(self, sets: SetBatch, seeds: Int[Tensor, "sets"] | None) -> Cut:
        return cut_in_order(sets, sets.items[:, self.feature], sets.sizes // 2)


class Balanced(Part):
    """A split whose sides each get at least a share `share` of the items.

    If the wrapped split gives a side too few items, the likeliest others are added to it. That
    bounds the depth of a tree by the logarithm of its size. For solving, not for training: the
    log-probability is still that of the wrapped split's own cut.
    """

    def __init__(self, split: nn.Module, share: float = 0.25) -> None:
        super().__init__()
        if not 0 < share <= 0.5:
            raise ValueError(f"share must be above 0 and at most 0.5; got {share}.")
        self.split = split
        self.share = share

    def forward(self, sets: SetBatch, seeds: Int[Tensor, "sets"] | None) -> Cut:
        cut: Cut = self.split(sets, seeds)
        least = (sets.sizes.to(torch.float32) * self.share).floor().long().clamp(min=1)
        least = torch.minimum(least, sets.sizes // 2)
        second = sets.sum(cut.side.to(torch.float32)).long()
        wanted = torch.minimum(torch.maximum(second, least), sets.sizes - least)
        if bool((wanted == second).all()):
            return cut
        wrong = index_of((wanted != second)[sets.owner])
        pull = cut.side.to(torch.float32) if cut.prob is None else cut.prob.detach()
        order = segment_sort(pull[wrong], sets.owner[wrong])
        rows = wrong[order]
        owner = sets.owner[rows]
        side = cut.side.clone()
        # rows are grouped by set, so an item's rank is its position within the set
        side[rows] = sets.position[wrong] >= (sets.sizes - wanted)[owner]
        return Cut(side, cut.log_prob, cut.prob, cut.contexts, cut.closed)
