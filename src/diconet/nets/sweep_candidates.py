"""The parallel cuts that a set may choose from, their costs and their features."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from diconet.core.host import from_host, to_host
from diconet.core.segments import offsets_of, owner_of
from diconet.core.sets import SetBatch
from diconet.nets.sweep_kernels import (
    DEVIATION,
    DIRECTIONS,
    MEASURES,
    RIGHT,
    SPANS,
    TOTAL,
    WIDEST,
    room_for,
    sweep_sets,
)

CUT_FEATURES = 22
"""Numbers that describe one candidate cut."""

_TINY = 1e-12


@dataclass(frozen=True, eq=False)
class Candidates:
    """The cuts each set may choose from, packed set after set.

    A candidate puts the first `position` items of an order along its direction on the first side.
    `regret` is the log of its cost relative to the best of its set: as it is, and with both
    sides cut further as if points filled 1, 2 or 4 dimensions.
    """

    sets: SetBatch
    budget: Float[Tensor, "sets"]
    measures: Float[Tensor, "cuts measures"]
    owner: Int[Tensor, "cuts"]
    sizes: Int[Tensor, "sets"]
    position: Int[Tensor, "cuts"]
    direction: Int[Tensor, "cuts"]
    order: Int[Tensor, "items directions"]

    @property
    def cost(self) -> Float[Tensor, "cuts 2"]:
        """The sum of squared distances to the mean within each of the two sides."""
        return self.measures[:, : RIGHT + 1]

    @cached_property
    def regret(self) -> Float[Tensor, "cuts 4"]:
        """Log of the cost of a cut relative to the least of its set, counted in four ways."""
        return torch.log(self._after / self._least[self.owner]).clamp(max=5.0)

    @cached_property
    def _after(self) -> Float[Tensor, "cuts 4"]:
        low, high = (self.cost / self.measures[:, TOTAL : TOTAL + 1].clamp(min=1e-30)).unbind(1)
        third, other = low.pow(1 / 3), high.pow(1 / 3)
        ways = [low + high, (third + other) ** 3, (low.sqrt() + high.sqrt()) ** 2]
        return torch.stack([*ways, (third.square() + other.square()) ** 1.5], 1) + 1e-6

    @cached_property
    def _least(self) -> Float[Tensor, "sets 4"]:
        at = self.owner[:, None].expand(-1, 4)
        return self._after.new_ones(len(self.sets), 4).scatter_reduce(0, at, self._after, "amin")

    def off_centre(self) -> Float[Tensor, "cuts"]:
        """0 if a cut is in the middle, 1 if it is at an end."""
        return (2 * self.position / self.sets.sizes[self.owner] - 1).abs()

    def spans(self, rows: Int[Tensor, "rows"] | slice) -> Float[Tensor, "rows windows"]:
        """Log of the extent of some windows of items around a cut, in deviations."""
        seen = self.measures[rows]
        return torch.log(seen[:, SPANS:] / (seen[:, DEVIATION, None] + _TINY) + 1e-4)

    def features(self, rows: Int[Tensor, "rows"] | slice) -> Float[Tensor, "rows features"]:
        """Features of some candidates, invariant to shift, scale and reflection."""
        owner, seen = self.owner[rows], self.measures[rows]
        n, budget, total = (
            self.sets.sizes[owner],
            self.budget[owner],
            seen[:, TOTAL].clamp(min=1e-30),
        )
        place, deviation = self.position[rows] / n, seen[:, DEVIATION]
        spans = self.spans(rows)
        widest = torch.log(seen[:, WIDEST] / (deviation + _TINY) + 1e-4)
        low, high = (seen[:, : RIGHT + 1] / total[:, None]).unbind(1)
        each = torch.log((low * (1 - place) + 1e-6) / (high * place + 1e-6))
        least = self._least[owner, 0]
        saved = 1 - low - high
        rest = [
            (2 * place - 1).abs(),
            saved,
            (low - high).abs() / (low + high + _TINY),  # how the two sides differ in total,
            each.abs().clamp(max=8) / 4,  # and per item
            torch.log2(budget) / 4,
            (budget == 2).float(),
            (budget == 3).float(),
            torch.cos(2 * torch.pi * place * budget),  # 1 where clusters of equal size end
            (budget * (place - 0.5).abs()).clamp(max=4),
            torch.log(n / budget) / 4,
            deviation.square() * n / total,  # the direction's share of the variance
            spans[:, -1] - widest,
            saved / (1 - least).clamp(min=1e-6),
            torch.log(least + 1e-4),
        ]
        return torch.cat([spans, torch.stack(rest, 1), self.regret[rows]], 1)


def candidates_of(
    sets: SetBatch, budget: Float[Tensor, "sets"], *, max_positions: int = 32
) -> Candidates:
    """Cuts between neighbours along a few directions of each set.

    The directions are the principal axes, and the normals of the cuts along them that lower the
    squared distances most. Sets of more than `max_positions` items offer the widest gap in each
    of that many stretches.
    """
    positions = (sets.sizes - 1).clamp(0, max_positions)
    sizes = positions * DIRECTIONS
    owner = owner_of(sizes)
    starts = offsets_of(sizes)
    total = len(owner)
    measures = np.empty((total, MEASURES), np.float32)
    position = np.empty(total, np.int64)
    order = np.zeros((sets.num_items, DIRECTIONS), np.int64)
    points = np.ascontiguousarray(to_host(sets.items), dtype=np.float32)
    about = (sets.offsets, budget.double(), starts, positions)
    room = room_for(max(1, int(sets.sizes.max())) if len(sets) else 1, points.shape[1])
    sweep_sets(points, *(to_host(part) for part in about), measures, position, order, room)
    place = torch.arange(total, device=owner.device) - starts[owner]
    direction = place // positions[owner]
    found = (from_host(part, sets.items) for part in (measures, position, order))
    measured, at, orders = found
    return Candidates(sets, budget, measured, owner, sizes, at, direction, orders)


def sides_of(sets: SetBatch, candidates: Candidates, chosen: Int[Tensor, "sets"]) -> Tensor:
    """Which items lie beyond the chosen cut of their set."""
    direction = candidates.direction[chosen][sets.owner]
    start = candidates.sets.offsets[candidates.owner[chosen]]
    order = candidates.order[start[sets.owner] + sets.position, direction]
    beyond = sets.position >= candidates.position[chosen][sets.owner]
    side = torch.empty_like(beyond)
    side[sets.offsets[:-1][sets.owner] + order] = beyond
    return side
