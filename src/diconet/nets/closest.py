"""Merges that compare items across both halves of a node: for fronts, and for closest pairs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from diconet.core.answers import Sequences
from diconet.core.host import from_host, to_host
from diconet.core.model import Part
from diconet.core.segments import (
    cross,
    index_of,
    segment_argmax,
    segment_logsumexp,
    segment_max,
    segment_sum,
)
from diconet.core.sets import SetBatch
from diconet.core.tree import Level
from diconet.nets.form_kernels import merge_closest, merge_fronts
from diconet.nets.forms import STEP, Forms, counted, middles
from diconet.nets.handed import Chosen, Handed, add_by_root
from diconet.nets.subset import likelihood, log_not


class DominanceMerge(Part):
    """Keeps the items of two fronts that nothing in the other front dominates.

    One item dominates another if none of `num_forms` learned forms of the two is negative and
    some are positive. This rule is given, and so is that fronts are scanned in the order of their
    first feature, so that each item meets only its neighbours in the other half; the forms are
    learned. They are linear without a constant, so that they change sign at the same place at every
    scale. With a target, as in `SubsetMerge`, items that belong to it are kept all the way up, and
    others must be dropped somewhere; every item then meets the whole other half.
    """

    def __init__(self, num_features: int, num_forms: int = 2, resolution: float = 0.1) -> None:
        super().__init__()
        self.form = Forms(2 * num_features, num_forms, degrees=(1,))
        self.resolution = resolution

    def forward(self, level: Level, below: Chosen | None, target: Sequences | None) -> Chosen:
        handed = Handed.of(level, below)
        if target is None:
            return self._merged(level, handed, below)
        node = handed.sets
        log_keep = self._log_keep(handed)
        likelier = log_keep > math.log(0.5)
        keep, survival, total = likelihood(level, handed, below, target, log_keep, likelier)
        rows = index_of(keep)
        kept = torch.bincount(node.owner[rows], minlength=len(node))
        return Chosen(level.roots, node.select(rows, kept), log_prob=total, survival=survival[rows])

    def _log_keep(self, handed: Handed) -> Float[Tensor, "items"]:
        """The log-probability that nothing in the other half dominates an item."""
        node = handed.sets
        row, other = rows_across(handed)
        both = torch.cat([node.items[row], node.items[other]], 1)
        dominated = F.logsigmoid(self.form(both) / self.resolution).sum(1)
        return segment_sum(log_not(dominated), row, node.num_items)

    def _merged(self, level: Level, handed: Handed, below: Chosen | None) -> Chosen:
        node = handed.sets
        order, stays, tested = merge_fronts(
            to_host(node.items.double()),
            to_host(node.offsets),
            to_host(middles(handed)),
            *self.form.terms(),
        )
        order = from_host(order, node.items)
        rows = order[from_host(stays, node.items)[order]]
        kept = torch.bincount(node.owner[rows], minlength=len(node))
        work = counted(level, from_host(tested, node.items), below)
        return Chosen(level.roots, node.select(rows, kept), work=work)


def rows_across(handed: Handed) -> tuple[Int[Tensor, "pairs"], Int[Tensor, "pairs"]]:
    """All pairs of rows of a node that come from different halves, in both orders.

    At a leaf with more than one item, all pairs of different items.
    """
    row, other = cross(handed.sets.sizes, handed.sets.sizes)
    half = handed.half
    apart = (half[row] != half[other]) | ((handed.is_leaf[row] > 0) & (row != other))
    return row[apart], other[apart]


_FAR = 1e6
"""The distance of a missing pair during training."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Every node's items, and its closest pair as rows of the roots (-1 if there is none).

    When solving, a node's items are sorted along the coordinate `axis`.
    """

    roots: SetBatch
    sets: SetBatch
    value: Float[Tensor, "nodes"]
    ends: Int[Tensor, "nodes 2"]
    axis: Int[Tensor, "nodes"] | None = None
    log_prob: Float[Tensor, "roots"] | None = None
    work: Float[Tensor, "roots"] | None = None

    @property
    def solution(self) -> Sequences:
        """The two items of each root, the earlier one first; empty if there are fewer than two."""
        there = self.ends[:, 0] >= 0
        places = self.ends.sort(1)[0] - self.roots.offsets[:-1, None]
        return Sequences(places[there].flatten(), 2 * there.long())


class ClosestMerge(Part):
    """The closer of the halves' two pairs, or a closer pair across the cut.

    The distance of two points is a learned form of the first point and of the offset to the second:
    their coordinates, and all products of two of these. An item is a candidate if its distance from
    the bounding box of the other half is below the closer pair's times `reach`, which is learned
    and rounded like a coefficient. It is given that the form sees offsets, and that candidates are
    scanned along the coordinate in which they extend farther. With a target, its two items should
    win at every node that holds both, against all pairs across and the halves' own; each candidate
    costs `cost` of log-likelihood, so that `reach` stays short.
    """

    def __init__(self, resolution: float = 0.1, cost: float = 0.02) -> None:
        super().__init__()
        self.form = Forms(4, degrees=(1, 2))
        self.log_reach = nn.Parameter(torch.randn((), dtype=torch.float64))
        self.resolution, self.cost = resolution, cost

    @property
    def reach(self) -> Tensor:
        """How close to the other half an item must be to be a candidate, in closest distances."""
        reach = torch.exp(self.log_reach)
        return reach if self.training else torch.round(reach / STEP) * STEP

    def forward(self, level: Level, below: Pairs | None, target: Sequences | None) -> Pairs:
        handed = Handed.of(level, below)
        if target is None:
            return self._merged(level, handed, below)
        return self._likelihood(level, handed, below, target)

    def _merged(self, level: Level, handed: Handed, below: Pairs | None) -> Pairs:
        node = handed.sets
        best, ends = _of_halves(level, below)
        coefficients, pairs = self.form.terms()
        order, axis, value, found, compared = merge_closest(
            to_host(node.items.double()),
            to_host(node.offsets),
            to_host(middles(handed)),
            to_host(_axes(level, below)),
            to_host(best),
            to_host(_rows_of(node, ends, level.roots.num_items)),
            float(self.reach.item()),
            coefficients[0],
            pairs,
        )
        rows = from_host(found, node.items)
        ends = torch.where(rows >= 0, node.index[rows.clamp(min=0)], -1)
        return Pairs(
            level.roots,
            node.select(from_host(order, node.items), node.sizes),
            from_host(value, node.items),
            ends,
            from_host(axis, node.items),
            work=counted(level, from_host(compared, node.items), below),
        )

    def _likelihood(
        self, level: Level, handed: Handed, below: Pairs | None, target: Sequences
    ) -> Pairs:
        node = handed.sets
        row, other = rows_across(handed)
        # from the earlier to the later item of the input: by halves, offsets would point one way
        once = node.index[row] < node.index[other]
        row, other = row[once], other[once]
        best, ends = _of_halves(level, below)
        best = best.clamp(max=_FAR)
        near = self._far(node.items[row], node.items[other] - node.items[row])
        asked, price = self._in_question(handed, best.reshape(-1, 2).amin(1).detach())
        # the halves' own pairs follow the pairs across
        halves_of = torch.arange(len(node), device=row.device).repeat_interleave(2)
        owner = torch.cat([node.owner[row], halves_of])
        logit = torch.cat(
            [asked[row] + asked[other] - near / self.resolution, -best / self.resolution]
        )
        pair = torch.cat([torch.stack([node.index[row], node.index[other]], 1), ends])
        wanted = target.rows(level.roots).reshape(-1, 2)
        hit = (pair.sort(1)[0] == wanted.sort(1)[0][level.example[owner]]).all(1)
        chance = logit - segment_logsumexp(logit, owner, len(node))[owner]
        some = index_of(hit)
        term = torch.cat([chance[some], -self.cost * price])
        where = torch.cat([owner[some], node.owner])
        # the winner: the target if it is present, else the likeliest
        first = segment_argmax(logit.detach() + _FAR**2 * hit, owner, len(node))
        value = torch.cat([near, best])[first.clamp(max=len(logit) - 1)]
        total = add_by_root(level, term, where, below)
        return Pairs(level.roots, node, value, pair[first], log_prob=total)

    def _far(
        self, point: Float[Tensor, "rows 2"], step: Float[Tensor, "rows 2"]
    ) -> Float[Tensor, "rows"]:
        """The learned distance of an offset from a point."""
        return self.form(torch.cat([point, step], 1)).squeeze(1)

    def _in_question(
        self, handed: Handed, best: Float[Tensor, "nodes"]
    ) -> tuple[Float[Tensor, "items"], Float[Tensor, "items"]]:
        """The log-probability and probability that each item is a candidate; at leaves all are."""
        node = handed.sets
        half = 2 * node.owner + handed.half
        gap = torch.zeros_like(node.items)
        for axis in range(2):
            place = node.items[:, axis]
            high = segment_max(place, half, 2 * len(node), empty=-torch.inf)
            low = -segment_max(-place, half, 2 * len(node), empty=-torch.inf)
            there = half + 1 - 2 * handed.half
            outside = torch.maximum(low[there] - place, place - high[there]).clamp(min=0)
            gap[:, axis] = torch.where(torch.isfinite(outside), outside, 0.0)
        distance = self._far(node.items, gap).clamp(min=1e-12).sqrt()
        wide = self.reach * best.clamp(min=1e-12).sqrt()[node.owner]
        free = (handed.is_leaf > 0) | (best >= _FAR)[node.owner]
        asked = F.logsigmoid((wide - distance) / self.resolution).masked_fill(free, 0.0)
        return asked, asked.exp().masked_fill(free, 0.0)


def _of_halves(
    level: Level, below: Pairs | None
) -> tuple[Float[Tensor, "halves"], Int[Tensor, "halves 2"]]:
    """The closest pairs of both halves of every node; infinitely far at leaves."""
    nodes = len(level.sets)
    best = torch.full((nodes, 2), np.inf, dtype=torch.float64, device=level.example.device)
    ends = level.example.new_full((nodes, 2, 2), -1)
    if below is not None:
        best = best.index_copy(0, level.inner, below.value.double().reshape(-1, 2))
        ends[level.inner] = below.ends.reshape(-1, 2, 2)
    return best.flatten(), ends.flatten(0, 1)


def _axes(level: Level, below: Pairs | None) -> Int[Tensor, "halves"]:
    """The coordinate along which the items of each half are sorted; -1 if unknown."""
    axes = level.example.new_full((len(level.sets), 2), -1)
    if below is not None and below.axis is not None:
        axes[level.inner] = below.axis.reshape(-1, 2)
    return axes.flatten()


def _rows_of(node: SetBatch, ends: Int[Tensor, "halves 2"], total: int) -> Int[Tensor, "halves 2"]:
    """Items of the roots as rows of the nodes; -1 is kept."""
    row = node.index.new_full((total + 1,), -1)
    row[node.index] = torch.arange(node.num_items, device=node.index.device)
    return row[ends]
