"""Textbook algorithms in the places of the networks: with them the engine's answers are known."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch

from diconet.core.answers import Sequences
from diconet.core.segments import segment_sort
from diconet.core.sets import SetBatch
from diconet.core.tree import Level, halves, joined
from diconet.problems.hull.task import hull_of


@dataclass(frozen=True, eq=False)
class Ordered:
    """Packed items in order, as an answer."""

    roots: SetBatch
    sets: SetBatch

    @property
    def solution(self) -> Sequences:
        return Sequences.from_answer(self.sets, self.roots)


def exact_hull_merge(level: Level, below: Ordered | None, target: object) -> Ordered:
    """The hull of what the two children kept."""
    pairs, _ = halves(level, None if below is None else below.sets)
    node = joined(pairs)
    bounds = node.offsets.tolist()
    rows, sizes = [], []
    for start, stop in pairwise(bounds):
        corners = torch.from_numpy(hull_of(node.items[start:stop].double().numpy()))
        rows.append(start + corners)
        sizes.append(len(corners))
    return Ordered(level.roots, node.select(torch.cat(rows), torch.tensor(sizes)))


def ordered_merge(level: Level, below: Ordered | None, target: object) -> Ordered:
    """First half before second half; only a leaf's own items are put in order."""
    pairs, origin = halves(level, None if below is None else below.sets)
    node = joined(pairs)
    is_own = origin < level.sets.num_items
    place = node.position.to(node.items.dtype)
    rows = segment_sort(torch.where(is_own, node.items[:, 0], place), node.owner)
    return Ordered(level.roots, node.select(rows, node.sizes))
