"""A split by one line: a learned direction, and a threshold along it drawn once per node."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from diconet.core.model import Part
from diconet.core.noise import mix, uniform
from diconet.core.segments import index_of, segment_argmax, segment_max, segment_sort
from diconet.core.sets import SetBatch, standardise
from diconet.core.tree import Cut

_TINY = 1e-12

_WIDTHS = (-2.5, 1.0)
"""Bounds on the width of the distribution, on a log scale, so that it can still change."""


class LineSplit(Part):
    """Cuts each set across a learned direction, at a learned threshold, in units of its spread.

    With seeds, the threshold is drawn from a logistic distribution whose width is also learned: one
    draw per node, and every item's probability of the second side is known. Sequences (`ordered`)
    have only one direction, their own. Neither side of a cut is empty. The log-probability is
    computed in training mode only; when solving, a cut that would leave a side less than `share` of
    the items goes through the middle instead.
    """

    general = True

    def __init__(self, num_features: int, ordered: bool = False, share: float = 0.0) -> None:
        super().__init__()
        if not 0 <= share <= 0.5:
            raise ValueError(f"share must be from 0 to 0.5; got {share}.")
        self.ordered, self.share = ordered, share
        self.direction = nn.Parameter(torch.randn(num_features, dtype=torch.float64))
        self.place = nn.Parameter(torch.randn((), dtype=torch.float64))
        self.log_width = nn.Parameter(torch.zeros((), dtype=torch.float64))

    def keys(self, sets: SetBatch) -> Float[Tensor, "items"]:
        """The position of each item along the direction, in units of the spread along it."""
        if self.ordered:
            return (2 * sets.position + 1).double() / sets.sizes[sets.owner] - 1
        items = standardise(sets.with_items(sets.items.double()), floor=0.0)[0]
        along = items @ (self.direction / torch.linalg.vector_norm(self.direction))
        # in units of the spread across it, a thin part would be cut far from its middle
        variance = sets.mean(along.square())
        return along / torch.where(variance > 0, variance, 1).sqrt()[sets.owner]

    def forward(self, sets: SetBatch, seeds: Int[Tensor, "sets"] | None) -> Cut:
        key = self.keys(sets)
        logit = (key - self.place) * torch.exp(-self.log_width.clamp(*_WIDTHS))
        low, high = (way * segment_max(way * logit, sets.owner, len(sets)) for way in (-1, 1))
        threshold = torch.zeros_like(low) if seeds is None else _drawn(low, high, seeds)
        # beyond the ends there is nothing to cut
        threshold = torch.minimum(torch.maximum(threshold, low), high)
        side = logit.detach() > threshold[sets.owner]
        side = side | ((logit.detach() == threshold[sets.owner]) & (threshold == high)[sets.owner])
        side = self._guarded(sets, key.detach(), side)
        log_prob = sets.items.new_zeros(len(sets))
        if self.training:
            log_prob = _log_prob(sets, logit, side)
        return Cut(side, log_prob, torch.sigmoid(logit))

    def _guarded(self, sets: SetBatch, key: Float[Tensor, "items"], side: Tensor) -> Tensor:
        """Sides that are not too small; if all items are equal, two halves in their order."""
        second = sets.sum(side.double())
        least = (sets.sizes * (0.0 if self.training else self.share)).floor().clamp(min=1)
        bad = (torch.minimum(second, sets.sizes - second) < least) & (sets.sizes > 1)
        if not bool(bad.any()):
            return side
        rows = index_of(bad[sets.owner])
        order = rows[segment_sort(key[rows], sets.owner[rows])]
        side = side.clone()
        # rows are grouped by set, so an item's rank is its position within the set
        side[order] = sets.position[rows] >= sets.sizes[sets.owner[rows]] // 2
        return side


def _drawn(
    low: Float[Tensor, "sets"], high: Float[Tensor, "sets"], seeds: Int[Tensor, "sets"]
) -> Float[Tensor, "sets"]:
    """A logistic number between the ends of each set."""
    start, stop = torch.sigmoid(low), torch.sigmoid(high)
    return torch.logit(start + (stop - start) * uniform(mix(seeds, 31)).double(), eps=_TINY)


def _log_prob(sets: SetBatch, logit: Float[Tensor, "items"], side: Tensor) -> Float[Tensor, "sets"]:
    """The log-probability that the threshold falls between the sides, if it cuts the set."""
    last = _pick(sets, logit, torch.where(side, -math.inf, logit))
    first = _pick(sets, logit, torch.where(side, -logit, -math.inf))
    ends = [_pick(sets, logit, -logit), _pick(sets, logit, logit)]
    between, everything = (
        (torch.sigmoid(stop) - torch.sigmoid(start)).clamp(min=_TINY)
        for start, stop in ((last, first), ends)
    )
    return (torch.log(between) - torch.log(everything)).to(sets.items.dtype)


def _pick(
    sets: SetBatch, logit: Float[Tensor, "items"], key: Float[Tensor, "items"]
) -> Float[Tensor, "sets"]:
    """The logit of the item with the largest key of each set, with its gradient."""
    best = segment_argmax(key.detach(), sets.owner, len(sets)).clamp(max=len(logit) - 1)
    return logit[best]
