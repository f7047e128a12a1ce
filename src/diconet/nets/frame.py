"""Frames: how the points of a node are shifted and scaled before a network reads them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from diconet.core.model import Part
from diconet.core.sets import SetBatch, standardise


@dataclass(frozen=True, eq=False)
class Frame:
    """A mean for each node, and one scale or one per feature."""

    mean: Float[Tensor, "nodes features"]
    scale: Float[Tensor, "nodes spreads"]

    def __call__(
        self, points: Float[Tensor, "rows features"], node: Int[Tensor, "rows"]
    ) -> Float[Tensor, "rows features"]:
        return (points - self.mean[node]) / self.scale[node]


class Spread(Part):
    """Shifts the points of each node to mean 0 and scales them to spread 1.

    With `per_feature`, each feature has its own spread, as in the authors' code: a slice of a
    square then looks like a square, and a merge sees the same shapes at every level.
    """

    def __init__(self, per_feature: bool = False) -> None:
        super().__init__()
        self.per_feature = per_feature

    def forward(self, nodes: SetBatch) -> Frame:
        _, mean, spread = standardise(nodes, per_feature=self.per_feature)
        floor = 1e-6 * mean.abs().amax(1, keepdim=True) if self.per_feature else 0.0
        return Frame(mean, torch.where(spread > floor, spread, 1))
