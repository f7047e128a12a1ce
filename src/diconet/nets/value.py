"""The merge for numbers or labels: combines the halves' vectors into the node's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from diconet.core.answers import Values
from diconet.core.model import Part
from diconet.core.noise import gumbels, mix
from diconet.core.sets import SetBatch
from diconet.core.tree import Level
from diconet.nets.encoder import SetEncoder, segment_peak
from diconet.nets.handed import HAND_FEATURES, Handed
from diconet.nets.signals import normals

_USUAL_SIZE = 32
"""Sums over a set are represented as means times the size divided by this."""


@dataclass(frozen=True, eq=False)
class Embedded:
    """A vector per node (or item) and, at the root, the values read from it."""

    sets: SetBatch
    vectors: Float[Tensor, "rows width"]
    solution: Values | None = None
    draw_log_prob: Float[Tensor, "roots"] | None = None
    log_prob: Float[Tensor, "roots"] | None = None


class ValueMerge(Part):
    """A number or label per set, or per item, from the node's set and its halves' vectors.

    A number (`num_labels` None) is drawn from a normal distribution around the network's output,
    in units of `target_scale` around `target_centre`, both times the size of the set to
    `target_power`; a label from a softmax over `num_labels`. Without seeds it is the likeliest.
    """

    def __init__(
        self,
        num_labels: int | None = None,
        per_item: bool = False,
        target_scale: float = 1.0,
        target_centre: float = 0.0,
        target_power: float = 0.0,
        **encoder: Any,
    ) -> None:
        super().__init__()
        width = encoder.get("width", 32)
        extra = HAND_FEATURES + (width if per_item else 0)
        self.encoder = SetEncoder(extra=extra, **encoder)
        self.num_labels, self.per_item = num_labels, per_item
        self.scale, self.centre, self.power = target_scale, target_centre, target_power
        if not per_item:
            self.combine = nn.Sequential(
                nn.Linear(5 * width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width)
            )
        self.norm = nn.LayerNorm(width)
        out = 2 if num_labels is None else num_labels
        self.read = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, out))

    def forward(self, level: Level, below: Embedded | None, target: Values | None) -> Embedded:
        handed = Handed.of(level, below)
        if self.per_item:
            vectors = self._item_vectors(level, handed, below)
        else:
            vectors = self._set_vectors(level, handed, below)
        if level.number > 0:
            return Embedded(handed.sets, vectors)
        reading = self.read(self.norm(vectors))
        if self.per_item:
            # the root's items in their own order, not by halves
            back = torch.empty_like(handed.sets.index)
            back[handed.sets.index] = torch.arange(len(back), device=back.device)
            reading = reading[back]
        return self._answered(level.roots, handed, vectors, reading, target)

    def _item_vectors(
        self, level: Level, handed: Handed, below: Embedded | None
    ) -> Float[Tensor, "items width"]:
        before = self.norm.weight.new_zeros(handed.sets.num_items, self.encoder.width)
        if below is not None:
            before = handed.from_below(level, self.norm(below.vectors))
        extra = torch.cat([handed.signals(before.dtype), before], 1)
        return self.encoder(handed.sets, handed.seeds, extra)

    def _set_vectors(
        self, level: Level, handed: Handed, below: Embedded | None
    ) -> Float[Tensor, "nodes width"]:
        sets = handed.sets
        hidden = handed.looked_at(level, self.encoder).per_copy()
        mean = sets.mean(hidden)
        whole = mean * (sets.sizes / _USUAL_SIZE).to(mean.dtype)[:, None]
        pooled = [mean, segment_peak(hidden, sets.sizes, sets.owner), whole]
        both = mean.new_zeros(len(sets), 2, self.encoder.width)
        if below is not None:
            pairs = self.norm(below.vectors).reshape(-1, 2, self.encoder.width)
            both = both.index_copy(0, level.inner, pairs)
        # symmetric in the two halves
        parts = [*pooled, both.sum(1), (both[:, 0] - both[:, 1]).abs()]
        return mean + self.combine(torch.cat(parts, 1))

    def _answered(
        self,
        roots: SetBatch,
        handed: Handed,
        vectors: Float[Tensor, "rows width"],
        reading: Float[Tensor, "rows outputs"],
        target: Values | None,
    ) -> Embedded:
        owner = roots.owner if self.per_item else torch.arange(len(roots), device=reading.device)
        seeds = handed.seeds
        if seeds is not None:
            seeds = mix(seeds[owner], roots.position) if self.per_item else mix(seeds, 1)
        if self.num_labels is None:
            unit = roots.sizes.clamp(min=1).to(reading.dtype)[owner] ** self.power
            values, log_prob = self._number(reading, unit, seeds, target)
        else:
            values, log_prob = _label(reading, seeds, target)
        total = log_prob.new_zeros(len(roots)).index_add(0, owner, log_prob)
        solution = Values(values, roots.sizes if self.per_item else None)
        if target is not None:
            return Embedded(handed.sets, vectors, solution, log_prob=total)
        drawn = None if seeds is None else total
        return Embedded(handed.sets, vectors, solution, draw_log_prob=drawn)

    def _number(
        self,
        reading: Float[Tensor, "rows 2"],
        unit: Float[Tensor, "rows"],
        seeds: Tensor | None,
        target: Values | None,
    ) -> tuple[Float[Tensor, "rows"], Float[Tensor, "rows"]]:
        middle, spread = reading[:, 0], reading[:, 1].clamp(-4, 1).exp()
        drawn = middle.detach()
        if seeds is not None and target is None:
            drawn = drawn + spread.detach() * normals(seeds, 1)[:, 0]
        values = (drawn * self.scale + self.centre) * unit
        if target is not None:
            wanted = ((target.values / unit - self.centre) / self.scale).to(middle.dtype)
            # least squares, so that the spread cannot excuse hard inputs; it is fitted separately
            off = (wanted - middle.detach()) / spread
            return values, -(wanted - middle).square() / 2 - off.square() / 2 - spread.log()
        off = (drawn - middle) / spread
        return values, -off.square() / 2 - spread.log()


def _label(
    reading: Float[Tensor, "rows labels"], seeds: Tensor | None, target: Values | None
) -> tuple[Int[Tensor, "rows"], Float[Tensor, "rows"]]:
    chances = F.log_softmax(reading, 1)
    drawn = chances.detach()
    if seeds is not None:
        drawn = drawn + gumbels(seeds, chances.shape[1])
    values = drawn.argmax(1)
    scored = values if target is None else target.values.long()
    return values, chances.gather(1, scored[:, None]).squeeze(1)
