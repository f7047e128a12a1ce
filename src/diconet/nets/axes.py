"""Splits in a set's principal axes, for points in the plane."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from diconet.core.model import Part
from diconet.core.noise import mix, uniform
from diconet.core.sets import SetBatch
from diconet.core.tree import Cut, cut_in_order


class AcrossSplit(Part):
    """Cuts each set at the median across its longest axis; with seeds, in a random direction.

    A short straight cut leaves few items with neighbours on the other side.
    """

    def forward(self, sets: SetBatch, seeds: Int[Tensor, "sets"] | None) -> Cut:
        angle = _longest_axis(sets)[0] if seeds is None else torch.pi * uniform(mix(seeds, 0))
        return cut_across(sets, angle, sets.sizes // 2)


def cut_across(sets: SetBatch, angle: Float[Tensor, "sets"], first: Int[Tensor, "sets"]) -> Cut:
    """Cuts each planar set by a line across a direction, with `first` points before it."""
    along = torch.stack([angle.cos(), angle.sin()], 1)
    return cut_in_order(sets, (sets.items * along[sets.owner]).sum(1), first)


class Aligned(Part):
    """Applies another split to planar sets that are centred, turned along x and of spread 1.

    What the wrapped split learns for one node then holds for all: cuts rotate, scale and move with
    the set they cut.
    """

    def __init__(self, split: nn.Module) -> None:
        super().__init__()
        self.split = split

    def forward(self, sets: SetBatch, seeds: Int[Tensor, "sets"] | None) -> Cut:
        cut: Cut = self.split(sets.with_items(in_own_axes(sets)), seeds)
        return cut


def in_own_axes(sets: SetBatch) -> Float[Tensor, "items 2"]:
    """The points along and across the longest axis of their set, scaled to spread 1."""
    angle, spread = _longest_axis(sets)
    x, y = (sets.items - sets.mean(sets.items)[sets.owner]).unbind(1)
    cos, sin = angle.cos()[sets.owner], angle.sin()[sets.owner]
    scale = torch.where(spread > 0, spread, 1)[sets.owner]
    return torch.stack([cos * x + sin * y, cos * y - sin * x], 1) / scale[:, None]


def _longest_axis(sets: SetBatch) -> tuple[Float[Tensor, "sets"], Float[Tensor, "sets"]]:
    """The direction of largest variance as an angle, in closed form, and the spread per axis."""
    x, y = (sets.items - sets.mean(sets.items)[sets.owner]).unbind(1)
    xx, xy, yy = sets.mean(torch.stack([x * x, x * y, y * y], 1)).unbind(1)
    return torch.atan2(2 * xy, xx - yy) / 2, ((xx + yy) / 2).sqrt()
