"""Partition trees: `grow` walks from the root to the leaves, `fold` from the leaves to the root.

A node is a set, a level is a batch of sets, a tree is a list of levels (eq. 2 of the paper). Both
walks are loops over levels; all nodes of all examples at one level are one call.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from diconet.core.host import count
from diconet.core.noise import mix
from diconet.core.segments import (
    index_of,
    inverse,
    offsets_of,
    ragged_arange,
    segment_sort,
    segment_sum,
)
from diconet.core.sets import SetBatch


@dataclass(frozen=True, eq=False)
class Cut:
    """How every set of a batch is divided in two.

    `prob` is each item's probability of the second side, if the split decides item by item.
    `contexts` are the two children's contexts (None for the parent's); a side marked in `closed`
    is finished and will not be cut again.
    """

    side: Bool[Tensor, "items"]
    log_prob: Float[Tensor, "sets"]
    prob: Float[Tensor, "items"] | None = None
    contexts: Float[Tensor, "sets 2 context"] | None = None
    closed: Bool[Tensor, "sets 2"] | None = None


@runtime_checkable
class Split(Protocol):
    """Divides every set in two: at random given seeds, the likelier way without.

    A split whose attribute `many` is True also takes several seeds per set. It then returns the
    cuts of `sets.repeat(times)`, from one forward pass per set.
    """

    def __call__(self, sets: SetBatch, seeds: Int[Tensor, "draws"] | None) -> Cut:
        """One cut per set, or one per seed."""


@runtime_checkable
class Merge(Protocol):
    """Answers every node of a level, given the answers of the level below (None at the bottom).

    The type of an answer is up to the merge: `fold` only passes it on. With a target, the
    answer at the root also carries `log_prob`, the log-likelihood of the target, one per set.
    """

    def __call__(self, level: Level, below: Any, target: Any | None) -> Any:
        """The answers of all nodes of `level`."""


@dataclass(frozen=True)
class Growth:
    """When a tree stops growing: at `depth` cuts, and at nodes of `leaf_size` items or fewer.

    With `halve_to`, the depth follows from each root's size: the number of halvings needed to reach
    that many items.
    """

    depth: int | None = None
    halve_to: float | None = None
    leaf_size: int = 1

    def __post_init__(self) -> None:
        if self.depth is not None and self.depth < 0:
            raise ValueError(f"depth must be at least 0; got {self.depth}.")
        if self.halve_to is not None and not self.halve_to >= 1:
            raise ValueError(f"halve_to must be at least 1; got {self.halve_to}.")
        if self.leaf_size < 1:
            raise ValueError(f"leaf_size must be at least 1; got {self.leaf_size}.")
        if self.depth is not None and self.halve_to is not None:
            raise ValueError("depth and halve_to exclude each other; got both.")

    def cuts(self, sizes: Int[Tensor, "sets"]) -> Int[Tensor, "sets"]:
        """The maximum depth of each root's tree, in cuts."""
        if self.halve_to is not None:
            halvings = torch.log2(sizes.clamp(min=1) / self.halve_to).ceil()
            return halvings.clamp(min=0).long()
        return torch.full_like(sizes, 2**31 if self.depth is None else self.depth)


@dataclass(frozen=True, eq=False)
class Level:
    """The nodes at one depth: their sets, the example (root) of each, and how some were cut.

    The children of node `inner[i]` are nodes 2i and 2i + 1 of the next level; all other nodes are
    leaves. `number` counts from 0 at the root. `seeds` are per node, for a merge that draws.
    `copies` is how many times in a row each set appears at the root, if several trees grow on it.
    """

    number: int
    roots: SetBatch
    sets: SetBatch
    example: Int[Tensor, "nodes"]
    inner: Int[Tensor, "inner"]
    cut: Cut | None = None
    seeds: Int[Tensor, "nodes"] | None = None
    copies: int = 1

    @cached_property
    def is_leaf(self) -> Bool[Tensor, "nodes"]:
        """Which nodes were not cut."""
        leaf = torch.ones(len(self.sets), dtype=torch.bool, device=self.example.device)
        leaf[self.inner] = False
        return leaf


@dataclass(frozen=True, eq=False)
class PartitionTree:
    """A hierarchy of partitions for every set of a batch."""

    levels: tuple[Level, ...]

    @property
    def roots(self) -> SetBatch:
        """The sets that the tree was grown on."""
        return self.levels[0].sets

    @property
    def depth(self) -> int:
        """The number of cuts on the longest path."""
        return len(self.levels) - 1

    @cached_property
    def log_prob(self) -> Float[Tensor, "sets"]:
        """log f(P(X)): the log-probability of all cuts of an example together."""
        total = self.roots.items.new_zeros(len(self.roots))
        for level in self.levels:
            if level.cut is not None:
                example = level.example[level.inner]
                total = total + segment_sum(level.cut.log_prob, example, len(total))
        return total

    def nodes_at(self, depth: int) -> Int[Tensor, "items"]:
        """For every item of the roots, the number (within its example) of its node at `depth`.

        A leaf higher up counts as its own only descendant, so this is a partition at any depth.
        Nodes are numbered from the left.
        """
        path = self.roots.index.new_zeros(self.roots.num_items)
        for side in self.sides[:depth]:
            path = _renumber(2 * path + side, self.roots.owner)
        return path

    @cached_property
    def sides(self) -> Bool[Tensor, "depth items"]:
        """The path of every root item: its side of each cut, the first side if it was not cut."""
        index = self.roots.index
        sides = index.new_zeros((self.depth, len(index)), dtype=torch.bool)
        for side, level in zip(sides, self.levels, strict=False):
            if level.cut is not None:
                side[level.sets.take(level.inner).index] = level.cut.side
        return sides

    @property
    def leaves(self) -> Int[Tensor, "items"]:
        """For every item of the roots, the number (within its example) of its leaf."""
        return self.nodes_at(self.depth)


def _renumber(labels: Int[Tensor, "items"], owner: Int[Tensor, "items"]) -> Int[Tensor, "items"]:
    """Labels renumbered consecutively from 0 within each example, in the same order."""
    if not len(labels):
        return labels
    span = count(labels.max()) + 1
    keys, dense = torch.unique(owner * span + labels, return_inverse=True)
    present, first = torch.unique(keys // span, return_counts=True)
    start = labels.new_zeros(count(owner.max()) + 1)
    start[present] = offsets_of(first)[:-1]
    return dense - start[owner]


def grow(
    split: Split,
    sets: SetBatch,
    growth: Growth,
    seeds: Int[Tensor, "sets"] | None = None,
    closed: Bool[Tensor, "sets"] | None = None,
    *,
    copies: int = 1,
) -> PartitionTree:
    """Cuts every set in two, and the parts again, until `growth` stops it (eq. 3).

    With seeds, one per set, cuts are drawn at random; without, each is the likeliest one. If only
    the leaf size bounds the tree, a node whose cut left one side empty becomes a leaf, because the
    same cut would recur. Sets marked in `closed` are not cut.

    With `copies`, that many trees grow on each set, each with its own seed; a split with
    `many` then makes one forward pass per root.
    """
    first = sets.as_roots()
    roots = sets = first if copies == 1 else first.repeat(copies)
    example = torch.arange(len(sets), device=sets.sizes.device)
    left = growth.cuts(sets.sizes)
    open_ = torch.ones_like(example, dtype=torch.bool) if closed is None else ~closed
    levels: list[Level] = []
    while True:
        inner = index_of(open_ & (left > 0) & (sets.sizes > growth.leaf_size))
        times = 1 if levels else copies
        level = Level(len(levels), roots, sets, example, inner, seeds=seeds, copies=times)
        if len(inner) == 0:
            return PartitionTree((*levels, level))
        nodes = sets if len(inner) == len(sets) else sets.take(inner)
        node_seeds = None if seeds is None else seeds[inner]
        shared = nodes is roots and seeds is not None and getattr(split, "many", False)
        cut = split(first if shared else nodes, node_seeds)
        levels.append(replace(level, cut=cut))
        sets = children(nodes, cut)
        example = example[inner].repeat_interleave(2)
        left = (left[inner] - 1).repeat_interleave(2)
        open_ = torch.ones_like(left, dtype=torch.bool)
        if cut.closed is not None:
            open_ = ~cut.closed.flatten()
        if growth.depth is None and growth.halve_to is None:
            open_ = open_ & (sets.sizes < nodes.sizes.repeat_interleave(2))
        if node_seeds is not None:
            which = torch.arange(len(example), device=example.device) % 2
            seeds = mix(node_seeds.repeat_interleave(2), which)


def cut_in_order(sets: SetBatch, key: Float[Tensor, "items"], first: Int[Tensor, "sets"]) -> Cut:
    """A deterministic cut: the `first` items of each set by ascending key go to the first side."""
    side = torch.empty(sets.num_items, dtype=torch.bool, device=key.device)
    side[segment_sort(key, sets.owner)] = sets.position >= first[sets.owner]
    return Cut(side, sets.items.new_zeros(len(sets)))


def children(sets: SetBatch, cut: Cut) -> SetBatch:
    """The two sides of every set as adjacent sets; items keep their order."""
    second = cut.side.long()
    num_second = torch.zeros_like(sets.sizes).index_add(0, sets.owner, second)
    sizes = torch.stack([sets.sizes - num_second, num_second], 1).flatten()
    # Ranks by counting rather than sorting, so that a level costs time linear in its items.
    seen = offsets_of(second)
    second_rank = seen[:-1] - seen[sets.offsets[:-1]][sets.owner]
    rank = torch.where(cut.side, second_rank, sets.position - second_rank)
    home = 2 * sets.owner + second
    order = inverse(offsets_of(sizes)[home] + rank)
    edges = None
    if sets.relations is not None:
        edges = sets.relations.moved(rank, home, len(sizes), sets.offsets)
    context = (
        sets.context.repeat_interleave(2, dim=0)
        if cut.contexts is None
        else cut.contexts.flatten(0, 1)
    )
    return SetBatch(sets.items[order], sizes, context, sets.index[order], edges)


def fold(merge: Merge, tree: PartitionTree, target: Any | None = None) -> Any:
    """Answers every node from its children's answers, up to the root (eq. 4)."""
    answer = None
    for level in reversed(tree.levels):
        answer = merge(level, answer, target)
    return answer


def halves(level: Level, below: SetBatch | None) -> tuple[SetBatch, Int[Tensor, "rows"]]:
    """What each node has to merge, two sets per node: its children's answers; at a leaf (X, empty).

    Also returns the origin of each row: a row of the level's own sets or, numbered after those, a
    row of the answers below.
    """
    own = level.sets
    nodes = len(own)
    sizes = own.sizes.new_zeros(nodes, 2)
    starts = own.sizes.new_zeros(nodes, 2)
    leaf = index_of(level.is_leaf)
    sizes[leaf, 0] = own.sizes[leaf]
    starts[leaf, 0] = own.offsets[:-1][leaf]
    if below is not None:
        sizes[level.inner] = below.sizes.reshape(-1, 2)
        starts[level.inner] = own.num_items + below.offsets[:-1].reshape(-1, 2)
        items = torch.cat([own.items, below.items])
        index = torch.cat([own.index, below.index])
    else:
        items, index = own.items, own.index
    rows = ragged_arange(starts.flatten(), sizes.flatten())
    context = own.context.repeat_interleave(2, dim=0)
    return SetBatch(items[rows], sizes.flatten(), context, index[rows]), rows


def joined(pairs: SetBatch) -> SetBatch:
    """The two sets of each node concatenated: first half, then second."""
    return replace(pairs, sizes=pairs.sizes.reshape(-1, 2).sum(1), context=pairs.context[::2])
