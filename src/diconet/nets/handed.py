"""What the general merges share: a node's items as passed up by its halves, with their edges."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from diconet.core.answers import Sequences
from diconet.core.noise import mix
from diconet.core.relations import Relations
from diconet.core.segments import index_of, ragged_arange, segment_sort
from diconet.core.sets import SetBatch
from diconet.core.tree import Level, halves, joined
from diconet.nets.encoder import SetEncoder

MERGE_SALT = 0x5EED
"""Separates a merge's draws from those of the split at the same node."""

HAND_FEATURES = 2
"""Extra features per item passed up: its half (-1, 1, or 0 at a leaf), and whether at a leaf."""


@dataclass(frozen=True, eq=False)
class Handed:
    """The items that the nodes of a level have to merge: the first half's, then the second's.

    `origin` is the row of each item in the level's own sets or, numbered after those, in the
    answers below. `half` is 0 or 1; at a leaf all items are in half 0.
    """

    sets: SetBatch
    origin: Int[Tensor, "items"]
    half: Int[Tensor, "items"]
    is_leaf: Float[Tensor, "items"]
    seeds: Int[Tensor, "nodes"] | None

    @classmethod
    def of(cls, level: Level, below: Any) -> Handed:
        """Lines up what a level has to merge, given the answers of the level below."""
        pairs, origin = halves(level, None if below is None else below.sets)
        node = joined(pairs)
        edges = level.sets.relations if below is None else _edges_among(level.sets, node)
        node = replace(node, relations=edges)
        leaf = level.is_leaf[node.owner].to(node.items.dtype)
        seeds = None if level.seeds is None else mix(level.seeds, MERGE_SALT)
        return cls(node, origin, pairs.owner % 2, leaf, seeds)

    def kept(self, level: Level, keep: Bool[Tensor, "items"]) -> SetBatch:
        """Only some of the items, in the order of the roots, so that sequences stay in order."""
        rows = index_of(keep)
        rows = rows[segment_sort(self.sets.index[rows], self.sets.owner[rows])]
        sizes = torch.bincount(self.sets.owner[rows], minlength=len(self.sets))
        at_root = level.number == 0  # where the edges of the answer are not needed
        whole = replace(self.sets, relations=None) if at_root else self.sets
        return whole.select(rows, sizes)

    def looked_at(self, level: Level, encoder: SetEncoder) -> Look:
        """An encoder's vectors for the items, from one forward pass for all copies of a set.

        Trees on the same set that were not cut merge the same items, and share the forward pass.
        """
        copies = level.copies if len(level.inner) == 0 else 1
        sets, seeds, signals = self.sets, self.seeds, self.signals(encoder.norm.weight.dtype)
        if copies > 1:
            first = torch.arange(0, len(sets), copies, device=self.half.device)
            signals = signals[ragged_arange(sets.offsets[:-1][first], sets.sizes[first])]
            sets, seeds = sets.take(first), None if seeds is None else seeds[first]
        return Look(sets, encoder(sets, seeds, signals), copies)

    def signals(self, dtype: torch.dtype) -> Float[Tensor, "items 2"]:
        """The features per item that say where it comes from."""
        sign = (2 * self.half - 1) * (1 - self.is_leaf)
        return torch.stack([sign, self.is_leaf], 1).to(dtype)

    def in_order_of(self, target: Sequences, level: Level) -> Int[Tensor, "items"]:
        """The rows of every node in the order of a target."""
        rank = self.sets.index.new_empty(level.roots.num_items)
        rank[target.rows(level.roots)] = torch.arange(len(rank), device=rank.device)
        return segment_sort(rank[self.sets.index], self.sets.owner)

    def from_below(
        self, level: Level, values: Float[Tensor, "rows *features"]
    ) -> Float[Tensor, "items *features"]:
        """Per-item values of the answers below; 0 for a leaf's own items."""
        own = level.sets.num_items
        lower = self.origin >= own
        out = values.new_zeros(self.sets.num_items, *values.shape[1:])
        return out.index_copy(0, index_of(lower), values[self.origin[lower] - own])


@dataclass(frozen=True, eq=False)
class Look:
    """Encoder vectors for the items of sets that occur in `copies`."""

    sets: SetBatch
    vectors: Float[Tensor, "items width"]
    copies: int

    def per_copy(self) -> Float[Tensor, "rows width"]:
        """The vectors of the items of all copies."""
        return self.sets.repeated(self.vectors, self.copies)

    def copied(self, values: Tensor) -> Tensor:
        """Per-set values, repeated for every copy."""
        return values.repeat_interleave(self.copies, 0)


def _edges_among(own: SetBatch, node: SetBatch) -> Relations | None:
    """The edges between the items passed up in each node; `own` are the nodes' whole sets."""
    if own.relations is None:
        return None
    # an item of the roots is in at most one node of a level, so its index gives its row
    span = int(own.index.max()) + 1 if own.num_items else 1
    place, home = own.index.new_full((2, span), -1)
    place[node.index] = node.position
    home[node.index] = node.owner
    return own.relations.moved(place[own.index], home[own.index], len(own), own.offsets)


def add_by_root(
    level: Level,
    values: Float[Tensor, "items"],
    owner: Int[Tensor, "items"],
    below: Any,
    name: str = "log_prob",
) -> Float[Tensor, "roots"]:
    """Values of items (each in a node) summed over each root, added to what is below."""
    total = values.new_zeros(len(level.roots)).index_add(0, level.example[owner], values)
    before = getattr(below, name, None)
    return total if before is None else before + total


@dataclass(frozen=True, eq=False)
class Chosen:
    """The items that every node passes up, in order; their draws; the likelihood of a target.

    `draw_log_prob` is the log-probability of all draws of a root so far; `survival` that of each
    item having been kept this far; `work` the number of comparisons or similar steps, if counted.
    """

    roots: SetBatch
    sets: SetBatch
    draw_log_prob: Float[Tensor, "roots"] | None = None
    log_prob: Float[Tensor, "roots"] | None = None
    survival: Float[Tensor, "items"] | None = None
    work: Float[Tensor, "roots"] | None = None

    @classmethod
    def by_steps(
        cls,
        level: Level,
        below: Chosen | None,
        answer: SetBatch,
        log_prob: Float[Tensor, "nodes"],
        target: Sequences | None,
    ) -> Chosen:
        """An answer made step by step; steps count as draws or, with a target, by likelihood."""
        if target is None and level.seeds is None:
            return cls(level.roots, answer)
        name = "draw_log_prob" if target is None else "log_prob"
        owner = torch.arange(len(answer), device=log_prob.device)
        total = add_by_root(level, log_prob, owner, below, name)
        return cls(level.roots, answer, **{name: total})

    @property
    def solution(self) -> Sequences:
        """The chosen items as positions within the roots."""
        return Sequences.from_answer(self.sets, self.roots)
