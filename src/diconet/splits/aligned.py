"""A split that sees every set in the set's own axes."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from diconet.sets import SetBatch
from diconet.tree import Cut


class Aligned(nn.Module):
    """Shows planar sets to another split moved to mean 0, turned to lie along x, of spread 1.

    What the wrapped split learns for one node then holds for all: cuts turn, shrink and move with
    the set they cut.
    """

    def __init__(self, split: nn.Module) -> None:
        super().__init__()
        self.config = {"split": split}
        self.split = split

    def forward(self, sets: SetBatch, seeds: Int[Tensor, "sets"] | None) -> Cut:
        cut: Cut = self.split(sets.with_items(in_own_axes(sets)), seeds)
        return cut


def in_own_axes(sets: SetBatch) -> Float[Tensor, "items 2"]:
    """The points along and across the direction in which their set is longest."""
    x, y = (sets.items - sets.mean(sets.items)[sets.owner]).unbind(1)
    xx, xy, yy = sets.mean(torch.stack([x * x, x * y, y * y], 1)).unbind(1)
    angle = torch.atan2(2 * xy, xx - yy) / 2
    cos, sin = angle.cos()[sets.owner], angle.sin()[sets.owner]
    spread = ((xx + yy) / 2).sqrt()
    scale = torch.where(spread > 0, spread, 1)[sets.owner]
    return torch.stack([cos * x + sin * y, cos * y - sin * x], 1) / scale[:, None]
