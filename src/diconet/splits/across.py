"""Equal halves of points in the plane by a straight line: nearby points stay together."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from diconet.noise import mix, uniform
from diconet.segments import segment_sort
from diconet.sets import SetBatch
from diconet.tree import Cut


class AcrossSplit(nn.Module):
    """Cuts each set at the median across its longest axis; with seeds, in a random direction.

    The shortest straight cut leaves the fewest items with neighbours on the other side.
    """

    def __init__(self) -> None:
        super().__init__()
        self.config: dict[str, float] = {}

    def forward(self, sets: SetBatch, seeds: Int[Tensor, "sets"] | None) -> Cut:
        if seeds is None:
            along = _longest_axis(sets)
        else:
            angle = torch.pi * uniform(mix(seeds, 0))
            along = torch.stack([angle.cos(), angle.sin()], 1)
        order = segment_sort((sets.items * along[sets.owner]).sum(1), sets.owner)
        side = torch.empty(sets.num_items, dtype=torch.bool, device=order.device)
        side[order] = sets.position >= (sets.sizes // 2)[sets.owner]
        return Cut(side, sets.items.new_zeros(len(sets)))


def _longest_axis(sets: SetBatch) -> Float[Tensor, "sets 2"]:
    """The direction of largest variance, from the closed form for two dimensions."""
    x, y = (sets.items - sets.mean(sets.items)[sets.owner]).T
    xx, xy, yy = sets.mean(torch.stack([x * x, x * y, y * y], 1)).T
    angle = torch.atan2(2 * xy, xx - yy) / 2
    return torch.stack([angle.cos(), angle.sin()], 1)
