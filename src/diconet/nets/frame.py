"""How a node sees its points: moved and scaled before a network reads them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from diconet.core.model import Part
from diconet.core.sets import SetBatch, standardise


@dataclass(frozen=True, eq=False)
class Frame:
    """A mean and a scale for each node."""

    mean: Float[Tensor, "nodes features"]
    scale: Float[Tensor, "nodes 1"]

    def __call__(
        self, points: Float[Tensor, "rows features"], node: Int[Tensor, "rows"]
    ) -> Float[Tensor, "rows features"]:
        return (points - self.mean[node]) / self.scale[node]


class Spread(Part):
    """Moves the points of each node to mean 0 and scales them to spread 1."""

    def forward(self, nodes: SetBatch) -> Frame:
        _, mean, spread = standardise(nodes)
        return Frame(mean, torch.where(spread > 0, spread, 1))
