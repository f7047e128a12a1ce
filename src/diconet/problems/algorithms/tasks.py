"""Five problems that textbooks solve by dividing: inputs, right answers, rewards.

Each has an `oracle`, a reward of at most 1, and `right`, which says of whole answers whether they
are right: another answer that is as good, such as equal numbers in another order, counts as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from scipy.spatial import cKDTree
from torch import Tensor

from diconet.core.answers import Sequences
from diconet.core.host import from_host, to_host
from diconet.core.segments import owner_of, segment_sort, segment_sum
from diconet.core.sets import SetBatch
from diconet.problems.algorithms.inputs import TEST_KINDS, Kind, check_kinds, drawn

_GRID = 2.0**20
"""Numbers to be summed are multiples of one over this, so that sums of doubles are exact."""


@dataclass(frozen=True)
class _Algorithm:
    """What the five have in common; `kinds` are the inputs drawn, in turn."""

    kinds: tuple[Kind, ...] = TEST_KINDS

    precise = True
    """Networks see the items in double precision."""

    def __post_init__(self) -> None:
        check_kinds(self.kinds)


@dataclass(frozen=True)
class Sort(_Algorithm):
    """Numbers in ascending order."""

    num_features = 1
    answer = "order"

    def sample(self, num_sets: int, set_size: int, *, rng: torch.Generator) -> SetBatch:
        """Numbers of several kinds."""
        return drawn(self.kinds, num_sets, set_size, 1, rng)

    def oracle(self, sets: SetBatch) -> Sequences:
        """By a library's sort."""
        return Sequences(sets.position[segment_sort(sets.items[:, 0], sets.owner)], sets.sizes)

    def reward(self, sets: SetBatch, solution: Sequences) -> Float[Tensor, "sets"]:
        """The share of places that hold the right number."""
        return sets.mean(self._in_place(sets, solution).float())

    def right(self, sets: SetBatch, solution: Sequences) -> Bool[Tensor, "sets"]:
        """Whether all places hold the right number."""
        return sets.sum(self._in_place(sets, solution).double()) == sets.sizes

    def _in_place(self, sets: SetBatch, solution: Sequences) -> Bool[Tensor, "items"]:
        found, wanted = (one.rows(sets) for one in (solution, self.oracle(sets)))
        return sets.items[found, 0] == sets.items[wanted, 0]


@dataclass(frozen=True)
class Select(_Algorithm):
    """The k-th smallest of numbers, counted from 1; k is given with the set."""

    num_features = 1
    answer = "subset"

    def sample(self, num_sets: int, set_size: int, *, rng: torch.Generator) -> SetBatch:
        """Numbers of several kinds, and any k."""
        sets = drawn(self.kinds, num_sets, set_size, 1, rng)
        k = torch.randint(1, set_size + 1, (num_sets, 1), generator=rng).double()
        return SetBatch.pack(sets.items, sets.sizes, k)

    def oracle(self, sets: SetBatch) -> Sequences:
        """By a library's sort."""
        order = segment_sort(sets.items[:, 0], sets.owner)
        k = sets.context[:, 0].round().long() - 1
        k = torch.minimum(k.clamp(min=0), sets.sizes - 1)
        return Sequences(sets.position[order[sets.offsets[:-1] + k]], torch.ones_like(sets.sizes))

    def reward(self, sets: SetBatch, solution: Sequences) -> Float[Tensor, "sets"]:
        """1 less the share of items between the one found and the right one."""
        found, wanted = (self._value(sets, one) for one in (solution, self.oracle(sets)))
        low, high = (end(found, wanted)[sets.owner] for end in (torch.minimum, torch.maximum))
        value = sets.items[:, 0]
        off = sets.sum(((value >= low) & (value < high)).float())
        return 1 - off / sets.sizes

    def right(self, sets: SetBatch, solution: Sequences) -> Bool[Tensor, "sets"]:
        """Whether the number is the right one."""
        return self._value(sets, solution) == self._value(sets, self.oracle(sets))

    def _value(self, sets: SetBatch, solution: Sequences) -> Float[Tensor, "sets"]:
        owner = owner_of(solution.sizes)
        values = sets.items.new_full((len(sets),), -torch.inf)
        return values.index_copy(0, owner, sets.items[solution.rows(sets), 0])


@dataclass(frozen=True)
class Subarray(_Algorithm):
    """The run of a sequence of numbers, of one at least, whose sum is largest."""

    num_features = 1
    answer = "subset"
    ordered = True

    def sample(self, num_sets: int, set_size: int, *, rng: torch.Generator) -> SetBatch:
        """Numbers of several kinds around 0, whose sums doubles hold exactly."""
        sets = drawn(self.kinds, num_sets, set_size, 1, rng)
        centred = sets.items - sets.mean(sets.items)[sets.owner]
        return sets.with_items(torch.round(centred * _GRID) / _GRID)

    def oracle(self, sets: SetBatch) -> Sequences:
        """By running sums: the end that lies highest above the lowest point before it."""
        found = []
        for items in sets.unpack(sets.items[:, 0].double()):
            total = np.concatenate([[0.0], np.cumsum(to_host(items))])
            lowest = np.minimum.accumulate(total[:-1])
            stop = int(np.argmax(total[1:] - lowest))
            start = int(np.argmin(total[: stop + 1]))
            found.append(torch.arange(start, stop + 1, device=items.device))
        return Sequences.of(found)

    def reward(self, sets: SetBatch, solution: Sequences) -> Float[Tensor, "sets"]:
        """1 less what the sum lacks, in units of the sum of all sizes."""
        lack = self._sum(sets, self.oracle(sets)) - self._sum(sets, solution)
        return (1 - lack / sets.sum(sets.items[:, 0].abs()).clamp(min=1e-30)).float()

    def right(self, sets: SetBatch, solution: Sequences) -> Bool[Tensor, "sets"]:
        """Whether the run has the largest sum."""
        return self._sum(sets, solution) == self._sum(sets, self.oracle(sets))

    def _sum(self, sets: SetBatch, solution: Sequences) -> Float[Tensor, "sets"]:
        values = sets.items[solution.rows(sets), 0].double()
        return segment_sum(values, owner_of(solution.sizes), len(sets))


@dataclass(frozen=True)
class Closest(_Algorithm):
    """The two points of the plane that lie closest to each other."""

    num_features = 2
    answer = "subset"

    def sample(self, num_sets: int, set_size: int, *, rng: torch.Generator) -> SetBatch:
        """Points of several kinds."""
        return drawn(self.kinds, num_sets, set_size, 2, rng)

    def oracle(self, sets: SetBatch) -> Sequences:
        """By a k-d tree."""
        found = [_closest(to_host(items.double())) for items in sets.unpack()]
        return Sequences.of([from_host(pair, sets.items) for pair in found])

    def reward(self, sets: SetBatch, solution: Sequences) -> Float[Tensor, "sets"]:
        """The smallest distance over that found."""
        best, found = (self._square(sets, one) for one in (self.oracle(sets), solution))
        return torch.where(found > best, best / found.clamp(min=1e-300), 1.0).sqrt().float()

    def right(self, sets: SetBatch, solution: Sequences) -> Bool[Tensor, "sets"]:
        """Whether no two are closer."""
        return self._square(sets, solution) == self._square(sets, self.oracle(sets))

    def _square(self, sets: SetBatch, solution: Sequences) -> Float[Tensor, "sets"]:
        square = sets.items.new_full((len(sets),), torch.inf, dtype=torch.float64)
        pairs = solution.sizes == 2
        which = torch.arange(len(sets), device=pairs.device)[pairs]
        rows = solution.take(which).rows(sets.take(which).as_roots()).reshape(-1, 2)
        points = sets.take(which).items.double()
        step = points[rows[:, 0]] - points[rows[:, 1]]
        return square.index_copy(0, which, step.square().sum(1))


def _closest(points: np.ndarray) -> np.ndarray:
    """The indices of two points that are closest."""
    if len(points) < 2:
        return np.arange(0)
    near = np.asarray(cKDTree(points).query(points, k=2)[1])
    own = np.arange(len(points))
    other = np.where(near[:, 1] == own, near[:, 0], near[:, 1])
    square = np.square(points - points[other]).sum(1)
    first = int(square.argmin())
    return np.sort(np.array([first, other[first]]))


@dataclass(frozen=True)
class Skyline(_Algorithm):
    """The points of the plane that no other beats, being lower in one coordinate or both."""

    num_features = 2
    answer = "subset"

    def sample(self, num_sets: int, set_size: int, *, rng: torch.Generator) -> SetBatch:
        """Points of several kinds."""
        return drawn(self.kinds, num_sets, set_size, 2, rng)

    def oracle(self, sets: SetBatch) -> Sequences:
        """By one sort, and the lowest point so far."""
        return Sequences.of(
            [from_host(_front(to_host(items.double())), sets.items) for items in sets.unpack()]
        )

    def reward(self, sets: SetBatch, solution: Sequences) -> Float[Tensor, "sets"]:
        """Points chosen that belong, over points chosen or belonging."""
        found, wanted = (one.mask(sets) for one in (solution, self.oracle(sets)))
        both, some = (sets.sum(x.float()) for x in (found & wanted, found | wanted))
        return both / some.clamp(min=1)

    def right(self, sets: SetBatch, solution: Sequences) -> Bool[Tensor, "sets"]:
        """Whether the points chosen are those that belong."""
        wrong = solution.mask(sets) != self.oracle(sets).mask(sets)
        return sets.sum(wrong.double()) == 0


def _front(points: np.ndarray) -> np.ndarray:
    """The indices of the points that none beats, in order; equal points do not beat each other."""
    order = np.lexsort((points[:, 1], points[:, 0]))
    ranked = points[order]
    before = np.concatenate([[np.inf], np.minimum.accumulate(ranked[:, 1])[:-1]])
    stays = ranked[:, 1] < before
    leader = np.maximum.accumulate(np.where(stays, np.arange(len(points)), 0))
    stays |= (ranked == ranked[leader]).all(1)
    return np.sort(order[stays])


TASKS: dict[str, Any] = {
    "sort": Sort,
    "select": Select,
    "subarray": Subarray,
    "closest": Closest,
    "skyline": Skyline,
}
"""The tasks by the names of their problems."""
