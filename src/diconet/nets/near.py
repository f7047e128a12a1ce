"""Near-neighbour graphs within sets: k slots per item, and features of their edges.

All features are invariant to scale and position: lengths are in units of the item's neighbourhood.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from scipy.spatial import cKDTree
from torch import Tensor

from diconet.core.host import from_host, to_host
from diconet.core.sets import SetBatch, standardise

NUM_FEATURES = 15
_APART = 64.0  # distance between two sets in the tree; within a set, items lie within a few units


@dataclass(frozen=True, eq=False)
class NearGraph:
    """For every item, the rows of its nearest neighbours, nearest first.

    A slot without a neighbour (`present` false) holds the item's own row.
    """

    neighbour: Int[Tensor, "items slots"]
    present: Bool[Tensor, "items slots"]

    @classmethod
    def of(cls, sets: SetBatch, slots: int) -> NearGraph:
        """The nearest `slots` neighbours of every item within its set."""
        points, _, _ = standardise(sets)
        rows = _rows(sets.index)
        # The largest extent of a standardised set grows with its size, but never beyond sqrt(2 n).
        apart = _APART * max(1.0, float(sets.sizes.max()) ** 0.5 if len(sets) else 1.0)
        place = to_host(torch.cat([points.double(), apart * sets.owner.double()[:, None]], 1))
        many = min(slots + 1, sets.num_items)
        _, found = cKDTree(place).query(place, k=np.arange(1, many + 1))
        lists = from_host(np.asarray(found, dtype=np.int64), rows)
        if many <= slots:
            lists = torch.cat([lists, rows[:, None].expand(-1, slots + 1 - many)], 1)
        # An item is its own nearest neighbour, except among copies, where it may be anywhere.
        own = lists == rows[:, None]
        last = torch.arange(slots + 1, device=rows.device)
        first_own = torch.where(own, last, slots).amin(1)
        keep = last != first_own[:, None]
        lists = lists[keep].reshape(len(rows), slots)
        present = (sets.owner[lists] == sets.owner[:, None]) & (lists != rows[:, None])
        return cls(torch.where(present, lists, rows[:, None]), present)

    @property
    def slots(self) -> int:
        """The maximum number of neighbours per item."""
        return self.neighbour.shape[1]

    @cached_property
    def reverse(self) -> Int[Tensor, "items slots"]:
        """The flat index of the slot with the reverse edge; its own if there is none."""
        rows = _rows(self.neighbour)[:, None, None]
        back = (self.neighbour[self.neighbour] == rows) & self.present[self.neighbour]
        found, slot = back.max(2)
        there = self.neighbour * self.slots + slot
        return torch.where(self.present & found, there, self._numbers)

    @cached_property
    def mutual(self) -> Bool[Tensor, "items slots"]:
        """Whether the reverse edge has a slot too."""
        return self.reverse != self._numbers

    @property
    def _numbers(self) -> Int[Tensor, "items slots"]:
        """The flat index of every slot."""
        return _rows(self.neighbour.flatten()).reshape(self.neighbour.shape)

    def within(self, rows: Int[Tensor, "rows"]) -> NearGraph:
        """The graph on some rows alone, renumbered; slots that lead elsewhere are empty."""
        new = rows.new_full((len(self.neighbour),), -1)
        new[rows] = _rows(rows)
        neighbour = new[self.neighbour[rows]]
        present = self.present[rows] & (neighbour >= 0)
        return NearGraph(torch.where(present, neighbour, _rows(rows)[:, None]), present)

    def around(self, rows: Bool[Tensor, "items"], hops: int) -> Bool[Tensor, "items"]:
        """These rows and all within `hops` edges of them."""
        for _ in range(hops):
            grown = rows.clone()
            grown[self.neighbour[rows].flatten()] = True
            rows = grown | (rows[self.neighbour] & self.present).any(1)
        return rows


def _rows(values: Tensor) -> Int[Tensor, "rows"]:
    """The row numbers, on the same device."""
    return torch.arange(len(values), device=values.device)


def _blockers(
    graph: NearGraph, gap: Float[Tensor, "items slots 2"], length: Float[Tensor, "items slots"]
) -> tuple[Float[Tensor, "items slots"], Float[Tensor, "items slots"]]:
    """How many of an item's other neighbours lie in the circle on an edge, and in its lune."""
    between = gap @ gap.mT
    square = length.square()
    to_other = (square[:, :, None] + square[:, None] - 2 * between).clamp(min=0)
    itself = torch.eye(graph.slots, dtype=torch.bool, device=gap.device)
    other = graph.present[:, None] & ~itself
    in_circle = ((square[:, None] < between) & other).sum(2).to(gap.dtype)
    nearer = torch.maximum(square[:, None].expand_as(to_other), to_other)
    in_lune = ((nearer < square[:, :, None]) & other).sum(2).to(gap.dtype)
    return in_circle, in_lune


def edge_features(
    points: Float[Tensor, "items 2"], graph: NearGraph
) -> Float[Tensor, "items slots features"]:
    """Edge features: direction, length, rank and crowding, in units of the item's neighbourhood."""
    present = graph.present.to(points.dtype)
    ends = points[graph.neighbour]
    gap = ends - points[:, None]
    length = torch.linalg.vector_norm(gap, dim=2)
    near = present[:, :5]
    unit = (length[:, :5] * near).sum(1) / near.sum(1).clamp(min=1)
    # Copies of a city have no neighbourhood to measure by; any unit will do.
    unit = torch.where(unit > 0, unit, length.amax(1)).clamp(min=1e-12)
    mine, theirs = unit[:, None], unit[graph.neighbour]
    rank = torch.arange(graph.slots, dtype=points.dtype, device=points.device)
    rank = rank.expand_as(length) / graph.slots
    back_rank = torch.where(graph.mutual, rank.flatten()[graph.reverse], 1.0)

    in_circle, in_lune = _blockers(graph, gap, length)
    features = torch.stack(
        [
            gap[..., 0] / mine,
            gap[..., 1] / mine,
            length / mine,
            (length / theirs).clamp(max=4),
            rank,
            graph.mutual.to(points.dtype),
            back_rank,
            (mine / theirs).log(),
            (length / mine).clamp(min=1e-3).log(),
            in_circle / 4,
            (in_circle == 0).to(points.dtype),
            in_lune / 4,
            (in_lune == 0).to(points.dtype),
            present.mean(1, keepdim=True).expand_as(length),
            torch.ones_like(length),
        ],
        2,
    )
    return features.clamp(-8, 8) * present[:, :, None]
