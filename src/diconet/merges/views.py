"""Asking a merge again from other sides, and keeping the best answer.

A network that is not invariant to turning its input gives several answers for one node. Where the
reward is the same at every node of the tree, as the area of a hull is, it tells which of them is
best, at each node and without any label, so that errors do not add up on the way to the root.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from diconet.merges.pointer import Pointed
from diconet.polygons import once_around, polygon_area
from diconet.sets import SetBatch
from diconet.tree import Level


class BestOfViews(nn.Module):
    """A merge of points into cycles, from `turns` sides and again in a mirror: the largest wins.

    Training goes to the wrapped merge alone, as if this were not here. A merge whose nodes face an
    item sees every turn alike, so only the mirror tells it anything.
    """

    def __init__(self, merge: nn.Module, turns: int = 8) -> None:
        super().__init__()
        if turns < 1:
            raise ValueError(f"turns must be at least 1; got {turns}.")
        self.config = {"merge": merge, "turns": turns}
        self.merge = merge
        self.turns = turns

    def forward(self, level: Level, below: Pointed | None, target: Any | None) -> Pointed:
        if target is not None:
            answer: Pointed = self.merge(level, below, target)
            return answer
        answers = []
        for seen_level, seen_below, mirrored in _views(level, below, self.turns):
            cycles = self.merge(seen_level, seen_below, None).sets
            answers.append(_backwards(cycles) if mirrored else cycles)
        everything = SetBatch.cat(answers)
        everything = everything.with_items(level.roots.items[everything.index])
        area = polygon_area(everything.items, everything.sizes)
        # A cycle that goes around twice would count its area twice.
        simple = once_around(everything.items, everything.sizes)
        area = area.where(simple, -torch.inf).reshape(len(answers), -1)
        nodes = torch.arange(len(level.sets), device=area.device)
        # Among equals, as where two points span no area, the answer that keeps most.
        kept = everything.sizes.reshape(area.shape).where(area == area.amax(0), -1)
        best = everything.take(kept.argmax(0) * len(nodes) + nodes)
        return Pointed(level.roots, best, level.number if below is None else below.depth)


def _views(
    level: Level, below: Pointed | None, turns: int
) -> Iterator[tuple[Level, Pointed | None, bool]]:
    """A level and the answers below it turned step by step, then mirrored and turned again."""
    for mirrored in (False, True):
        for turn in range(turns):
            angle = 2 * math.pi * turn / turns
            seen = replace(level, sets=_seen(level.sets, angle, mirrored))
            under = below and replace(below, sets=_seen(below.sets, angle, mirrored))
            yield seen, under, mirrored


def _seen(sets: SetBatch, angle: float, mirrored: bool) -> SetBatch:
    x, y = sets.items.unbind(1)
    if mirrored:
        x, y = y, x
    cos, sin = math.cos(angle), math.sin(angle)
    return sets.with_items(torch.stack([cos * x - sin * y, sin * x + cos * y], 1))


def _backwards(cycles: SetBatch) -> SetBatch:
    """Every cycle the other way round."""
    start, stop = cycles.offsets[:-1][cycles.owner], cycles.offsets[1:][cycles.owner]
    rows: Tensor = start + stop - 1 - torch.arange(cycles.num_items, device=start.device)
    return cycles.select(rows, cycles.sizes)
