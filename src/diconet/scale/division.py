"""Cells of space: straight cuts that a split network finds on a sample, applied to every chunk.

One pass assigns each row to a cell, and one Dask shuffle brings the rows of a cell together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, no_type_check

import dask.dataframe as dd
import numpy as np
import pandas as pd
import torch
from dask.delayed import Delayed
from jaxtyping import Int
from numba import njit
from torch import Tensor

from diconet.core.compiled import KERNEL
from diconet.core.sets import SetBatch, at_own_scale
from diconet.core.tree import Cut, Growth, PartitionTree, Split, grow
from diconet.nets.axes import cut_across

_QUARTER = 4
"""With cells of similar size, either side of a cut gets at least one in this many points."""


@dataclass(frozen=True, eq=False)
class Sample:
    """A sample of rows, and how many rows each of them represents."""

    points: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray, share: int, seed: Sequence[int]) -> Sample:
        """About `share` random rows; all if there are fewer."""
        many = len(rows) // max(1, len(rows) // share)
        points = rows[np.random.default_rng(seed).permutation(len(rows))[:many]]
        return cls(points, np.full(many, len(rows) / max(1, many)))

    def evened(self, most: int | None = None) -> np.ndarray:
        """At most `most` points, each of which represents the same number of rows."""
        reach = np.cumsum(self.weights)
        many = min(len(reach), most or len(reach))
        steps = (np.arange(many) + 0.5) * (reach[-1] / many)
        return self.points[np.searchsorted(reach, steps)]


@dataclass(frozen=True, eq=False)
class Division:
    """A tree of cuts: points are on the first side if `normals @ (point - centre) <= places`.

    `below` says what is on either side of each cut: another cut, or the cell `~below`. Cells are
    numbered from the left of the tree, and `budgets` are what the split gave to each.
    """

    centre: np.ndarray
    normals: np.ndarray
    places: np.ndarray
    below: np.ndarray
    budgets: np.ndarray

    @classmethod
    def by_size(cls, split: Split, sample: np.ndarray, most: float) -> Division:
        """Cells of at most `most` points of the sample, and not many fewer."""
        growth = Growth(leaf_size=max(1, int(most)))
        return cls._grown(_Straight(split, balanced=True), sample, growth, None)

    @classmethod
    def by_budget(cls, split: Split, sample: np.ndarray, budget: int, most: int) -> Division:
        """Cells with a budget of at most `most`, for a split that divides the whole budget."""
        return cls._grown(_Straight(split, most=most), sample, Growth(), budget)

    @classmethod
    def _grown(
        cls, split: _Straight, sample: np.ndarray, growth: Growth, budget: int | None
    ) -> Division:
        centre = sample.mean(0)
        reach = float(np.abs(sample - centre).max(initial=0.0)) or 1.0
        context = torch.full((1, 0 if budget is None else 1), float(budget or 0))
        sets = SetBatch.of([torch.from_numpy((sample - centre) / reach)], context)
        whole = torch.tensor([budget is not None and budget <= split.most])
        with torch.inference_mode():
            tree = grow(split, sets, growth, closed=whole)
        normals = np.concatenate([np.empty((0, sample.shape[1])), *split.normals]) / reach
        below, last = _below(tree)
        leaves = [level.sets.context[level.is_leaf] for level in tree.levels]
        budgets = torch.cat(leaves).flatten().long().numpy()
        order = np.argsort(last, kind="stable")
        below[below < 0] = ~np.argsort(order, kind="stable")[~below[below < 0]]
        budgets = budgets[order] if budget is not None else budgets
        places = np.concatenate([np.empty(0), *split.places])
        return cls(centre, normals, places, below, budgets)

    def __len__(self) -> int:
        return len(self.places) + 1

    def cells(self, points: np.ndarray) -> np.ndarray:
        """The cell number of each point."""
        found = np.zeros(len(points), dtype=np.int64)
        if len(self.places):
            _descend(points, self.centre, self.normals, self.places, self.below, found)
        return found


def _below(tree: PartitionTree) -> tuple[np.ndarray, np.ndarray]:
    """The children of each inner node, leaves numbered by level; their order from the left."""
    below, last, first_cut, cells = [], [], 0, 0
    start = np.zeros(1)
    for level in tree.levels:
        leaf, number = level.is_leaf.numpy(), np.empty(len(level.sets), dtype=np.int64)
        number[~leaf] = first_cut + np.arange((~leaf).sum())
        number[leaf] = ~(cells + np.arange(leaf.sum()))
        below.append(number)
        last.append(start[leaf])
        first_cut, cells = first_cut + int((~leaf).sum()), cells + int(leaf.sum())
        step = 0.5 ** (level.number + 1)
        start = (start[~leaf][:, None] + [0, step]).ravel()
    return np.concatenate(below)[1:].reshape(-1, 2), np.concatenate(last)


class _Straight:
    """Straightens and records another split's cuts, so that they apply to points it never saw.

    The line between the means of the two sides is cut so that the same number of points lie on each
    side. With `balanced`, a cut that leaves one side too small moves along its line. Sides whose
    budget is at most `most` are finished.
    """

    def __init__(self, split: Split, *, balanced: bool = False, most: int = 0) -> None:
        self.split, self.balanced, self.most = split, balanced, most
        self.normals: list[np.ndarray] = []
        self.places: list[np.ndarray] = []

    def __call__(self, sets: SetBatch, seeds: Int[Tensor, "sets"] | None) -> Cut:
        cut = self.split(at_own_scale(sets), seeds)
        second = cut.side.double()[:, None]
        beyond = sets.sum(second)
        far = sets.sum(sets.items * second) / beyond.clamp(min=1)
        near = sets.sum(sets.items * (1 - second)) / (sets.sizes[:, None] - beyond).clamp(min=1)
        normal = far - near
        first = sets.sizes - beyond.squeeze(1).long()
        if self.balanced:
            quarter = sets.sizes // _QUARTER
            first = torch.minimum(torch.maximum(first, quarter), sets.sizes - quarter)
        along = (sets.items * normal[sets.owner]).sum(1)
        parts = zip(along.split(sets.sizes.tolist()), first.tolist(), strict=True)
        place = torch.stack([part.sort().values[max(0, many - 1)] for part, many in parts])
        self.normals.append(normal.numpy())
        self.places.append(place.numpy())
        side = along > place[sets.owner]
        if cut.contexts is None:
            return replace(cut, side=side, prob=None)
        closed = cut.contexts[:, :, 0] <= self.most
        return replace(cut, side=side, prob=None, closed=closed)


@dataclass(frozen=True)
class MedianSplit:
    """Cuts planar sets at the median across the longer side of their box, rotated by `angle`."""

    angle: float = 0.0

    def __call__(self, sets: SetBatch, seeds: Int[Tensor, "sets"] | None) -> Cut:
        x, y = sets.items.unbind(1)
        angle = sets.items.new_full((len(sets),), self.angle)
        c, s = angle.cos()[:1], angle.sin()[:1]
        turned = torch.stack([c * x + s * y, c * y - s * x], 1)
        parts = turned.split(sets.sizes.tolist())
        wide = torch.stack([part.amax(0) - part.amin(0) for part in parts])
        across = torch.where(wide[:, 1] > wide[:, 0], torch.pi / 2, 0.0)
        return cut_across(sets, angle + across, sets.sizes // 2)


@njit(**KERNEL)
@no_type_check
def _descend(points, centre, normals, places, below, cells):
    for i in range(len(points)):
        node = 0
        while node >= 0:
            along = 0.0
            for j in range(points.shape[1]):
                along += normals[node, j] * (points[i, j] - centre[j])
            node = below[node, 1 if along > places[node] else 0]
        cells[i] = ~node


def shuffled(frames: Sequence[Delayed], cells: int, columns: dict[str, Any]) -> list[Delayed]:
    """The rows of each cell together; `columns` describes the frames' columns, including `cell`."""
    meta = pd.DataFrame({name: np.empty(0, kind) for name, kind in columns.items()})
    frame = dd.from_delayed(list(frames), meta=meta, verify_meta=False)
    by_cell = frame.set_index("cell", divisions=list(range(cells + 1)), shuffle_method="tasks")
    return list(by_cell.to_delayed())
