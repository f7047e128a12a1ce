"""Best-first growth: always cut the leaf that ranks highest, until there are as many as wanted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from diconet.noise import mix
from diconet.segments import index_of, offsets_of, ragged_arange
from diconet.sets import SetBatch
from diconet.tree import Cut, Level, PartitionTree, Split, children

Rank = Callable[[SetBatch], Float[Tensor, "nodes"]]
"""How urgent it is to cut each node; for k-means, what it costs as one cluster."""


def grow_best_first(
    split: Split,
    sets: SetBatch,
    num_leaves: Int[Tensor, "sets"],
    rank: Rank,
    seeds: Int[Tensor, "sets"] | None = None,
) -> PartitionTree:
    """A tree with `num_leaves` leaves on each set (as many as items, where those are fewer).

    The tree is the one that cuts the highest-ranking leaf time after time, a node counting as no
    more urgent than its parent. It is found level by level, all nodes of a level in one call: only
    a node among the `num_leaves - 1` highest of its example so far can be in it, so only those are
    cut, and what later proves too low is pruned. No leaf is empty: a cut that leaves a side empty
    gives it the item that leans there most.
    """
    if bool((num_leaves < 1).any()):
        raise ValueError(f"num_leaves must be at least 1; got {int(num_leaves.min())}.")
    roots = sets = sets.as_roots()
    wanted = num_leaves - 1
    example = torch.arange(len(sets), device=sets.sizes.device)
    bound = torch.full((len(sets),), torch.inf, device=sets.sizes.device)
    levels: list[Level] = []
    urgency = sets.items.new_zeros(0)  # of all nodes cut so far, level after level
    owner = example[:0]
    while True:
        mine = torch.minimum(rank(sets).to(bound.dtype), bound)
        able = index_of(sets.sizes > 1)
        all_urgency = torch.cat([urgency, mine[able]])
        all_owner = torch.cat([owner, example[able]])
        top = _highest(all_urgency, all_owner, wanted)
        inner = able[top[len(urgency) :]]
        level = Level(len(levels), roots, sets, example, inner)
        if len(inner) == 0:
            return _pruned((*levels, level), top)
        urgency, owner = torch.cat([urgency, mine[inner]]), torch.cat([owner, example[inner]])
        nodes = sets.take(inner)
        cut = without_empty_side(nodes, split(nodes, None if seeds is None else seeds[inner]))
        levels.append(replace(level, cut=cut))
        sets = children(nodes, cut)
        example = example[inner].repeat_interleave(2)
        bound = mine[inner].repeat_interleave(2)
        if seeds is not None:
            which = torch.arange(len(example), device=example.device) % 2
            seeds = mix(seeds[inner].repeat_interleave(2), which)


def _highest(
    urgency: Float[Tensor, "nodes"], owner: Int[Tensor, "nodes"], wanted: Int[Tensor, "sets"]
) -> Bool[Tensor, "nodes"]:
    """Which nodes are among the `wanted` highest of their example; of equals, the first."""
    order = torch.argsort(urgency, descending=True, stable=True)
    order = order[torch.argsort(owner[order], stable=True)]
    counts = torch.bincount(owner, minlength=len(wanted))
    place = torch.empty_like(order)
    place[order] = ragged_arange(torch.zeros_like(counts), counts)
    return place < wanted[owner]


def without_empty_side(sets: SetBatch, cut: Cut) -> Cut:
    """The cut with one item moved wherever a side of a set of two or more would be empty.

    It is the item likeliest to be on that side, or the last where the split does not say.
    """
    second = torch.bincount(sets.owner[cut.side], minlength=len(sets))
    bad = ((second == 0) | (second == sets.sizes)) & (sets.sizes > 1)
    if not bool(bad.any()):
        return cut
    lean = cut.side.to(sets.items.dtype) if cut.prob is None else cut.prob.detach()
    lean = torch.where((second == 0)[sets.owner], lean, -lean)
    peak = lean.new_full((len(sets),), -torch.inf).scatter_reduce(0, sets.owner, lean, "amax")
    rows = torch.where(lean == peak[sets.owner], torch.arange(len(lean), device=lean.device), -1)
    last = rows.new_full((len(sets),), -1).scatter_reduce(0, sets.owner, rows, "amax")
    side = cut.side.clone()
    moved = last[bad]
    side[moved] = ~side[moved]
    return replace(cut, side=side)


def _pruned(levels: tuple[Level, ...], keep: Bool[Tensor, "cut_nodes"]) -> PartitionTree:
    """The tree in which only the nodes to keep are cut; a child of a dropped cut is dropped too."""
    done: list[Level] = []
    kept_nodes = torch.arange(len(levels[0].sets), device=keep.device)
    start = 0
    for level in levels:
        count = len(level.inner)
        kept = keep[start : start + count]
        start += count
        place = torch.full((len(level.sets),), -1, device=keep.device)
        place[kept_nodes] = torch.arange(len(kept_nodes), device=keep.device)
        # a node that ranks high enough has ancestors that do: they rank no lower and come first
        chosen = index_of(kept)
        done.append(
            replace(
                level,
                sets=level.sets.take(kept_nodes),
                example=level.example[kept_nodes],
                inner=place[level.inner[chosen]],
                cut=None if level.cut is None or len(chosen) == 0 else _some(level, chosen),
            )
        )
        if len(chosen) == 0:
            break
        kept_nodes = torch.stack([2 * chosen, 2 * chosen + 1], 1).flatten()
    return PartitionTree(tuple(done))


def _some(level: Level, chosen: Int[Tensor, "some"]) -> Cut:
    """The cuts of some of a level's inner nodes."""
    assert level.cut is not None
    cut, sizes = level.cut, level.sets.sizes[level.inner]
    rows = ragged_arange(offsets_of(sizes)[chosen], sizes[chosen])
    return Cut(
        cut.side[rows],
        cut.log_prob[chosen],
        None if cut.prob is None else cut.prob[rows],
        None if cut.contexts is None else cut.contexts[chosen],
        None if cut.closed is None else cut.closed[chosen],
    )
