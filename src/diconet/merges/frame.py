"""How a node sees its points: moved, stretched and maybe turned before a network reads them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from diconet.segments import segment_argmax, segment_sort
from diconet.sets import SetBatch, standardise, whiten
from diconet.tree import joined

Normalise = Literal["spread", "covariance", "facing", "abreast"]

_HAIR = 2e-3
"""Angles count from so little before straight ahead, which rounding may put just below 0."""

_EVEN = 1e-3
"""Squared distances that differ by less may count as one; their mean is the number of features."""


@dataclass(frozen=True, eq=False)
class Frame:
    """A mean and a matrix for each node; `ahead` is the item it has turned to face, as seen."""

    mean: Float[Tensor, "nodes features"]
    stretch: Float[Tensor, "nodes features features"]
    ahead: Float[Tensor, "nodes 2"] | None = None

    @classmethod
    def of(cls, halves: SetBatch, normalise: Normalise) -> Frame:
        """Spread 1 in all, or no covariance either; then maybe facing the farthest item, or with
        the halves abreast."""
        nodes = joined(halves)
        if normalise == "spread":
            _, mean, spread = standardise(nodes)
            unit = torch.eye(nodes.num_features, dtype=spread.dtype, device=spread.device)
            return cls(mean, unit / torch.where(spread > 0, spread, 1)[:, :, None])
        level = cls(*whiten(nodes))
        if normalise == "facing":
            return level._facing_farthest(nodes)
        return level._abreast(halves) if normalise == "abreast" else level

    def __call__(
        self, points: Float[Tensor, "rows features"], node: Int[Tensor, "rows"]
    ) -> Float[Tensor, "rows features"]:
        centred = points - self.mean[node]
        return torch.einsum("rij,rj->ri", self.stretch[node], centred)

    def _facing_farthest(self, nodes: SetBatch) -> Frame:
        """Turned until the item farthest from the mean lies on the first axis.

        The farthest is a corner of the hull, whatever it was stretched by before. Of several about
        as far, as any three are that lost their covariance, the first: rounding should not choose.
        """
        seen = self(nodes.items, nodes.owner)
        distance = torch.round(seen.square().sum(1) / _EVEN)
        farthest = segment_argmax(distance, nodes.owner, len(nodes))
        nowhere = seen.new_zeros(1, 2)  # what an empty node turns to
        faced = torch.cat([seen, nowhere])[farthest]
        far = faced.norm(dim=1)
        ahead = torch.stack([far, torch.zeros_like(far)], 1)
        return Frame(self.mean, _turn(faced) @ self.stretch, ahead)

    def _abreast(self, halves: SetBatch) -> Frame:
        """Turned until the middle of the second half lies straight to the right of the first's."""
        middle = halves.mean(self(halves.items, halves.owner // 2)).reshape(-1, 2, 2)
        both = (halves.sizes.reshape(-1, 2, 1) > 0).all(1)
        across = torch.where(both, middle[:, 1] - middle[:, 0], 0)
        return Frame(self.mean, _turn(across) @ self.stretch)

    def by_angle(
        self, seen: Float[Tensor, "rows 2"], owner: Int[Tensor, "rows"]
    ) -> Int[Tensor, "rows"]:
        """The rows of each owner by angle around the mean; from straight ahead, if it turned."""
        angle = _angle(seen)
        if self.ahead is not None:
            angle = torch.remainder(angle + _HAIR, 2 * math.pi)
        return segment_sort(angle, owner)

    def by_outline(self, halves: SetBatch) -> Int[Tensor, "rows"]:
        """The rows of each half by angle around its own mean; from the faced item's side, if any.

        Around their node's mean, halves that lie side by side are read in leaps: there and back.
        """
        node = halves.owner // 2
        seen = self(halves.items, node)
        middle = halves.mean(seen)[halves.owner]
        angle = _angle(seen - middle)
        if self.ahead is not None:
            angle = angle - _angle(self.ahead[node] - middle)
            angle = torch.remainder(angle + _HAIR, 2 * math.pi)
        return segment_sort(angle, halves.owner)


def _turn(way: Float[Tensor, "nodes 2"]) -> Float[Tensor, "nodes 2 2"]:
    """What turns each way to the first axis; nothing where it leads nowhere."""
    x, y = nn.functional.normalize(way, dim=1).unbind(1)
    x = torch.where((way == 0).all(1), 1, x)
    return torch.stack([torch.stack([x, y], 1), torch.stack([-y, x], 1)], 1)


def _angle(way: Float[Tensor, "rows 2"]) -> Float[Tensor, "rows"]:
    return torch.atan2(way[:, 1], way[:, 0])
