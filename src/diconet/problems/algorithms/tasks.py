"""Five textbook divide-and-conquer problems: inputs, right answers, rewards.

Each has an `oracle`, a reward of at most 1, and `right`, which says whether a whole answer is
right: another answer that is as good, such as equal numbers in another order, also counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import torch
from jaxtyping import Bool, Float
from scipy.spatial import cKDTree
from torch import Tensor

from diconet.core.answers import Sequences
from diconet.core.segments import index_of, owner_of, segment_sort, segment_sum
from diconet.core.sets import SetBatch

Kind = Literal["uniform", "normal", "clustered", "nearly sorted", "duplicates", "heavy tails"]

TEST_KINDS: tuple[Kind, ...] = (
    "uniform",
    "clustered",
    "nearly sorted",
    "duplicates",
    "heavy tails",
)
"""The kinds of inputs that answers are measured on, in turn."""

TRAIN_KINDS: tuple[Kind, ...] = ("uniform", "normal")
"""The kinds of inputs that networks learn from: no clusters, order, ties or outliers."""


def _drawn(
    kinds: tuple[Kind, ...], num_sets: int, set_size: int, features: int, rng: torch.Generator
) -> SetBatch:
    """Sets of the kinds in turn, each shifted and scaled at random; equal numbers stay equal."""
    sets = [_one(kinds[n % len(kinds)], set_size, features, rng) for n in range(num_sets)]
    for number, items in enumerate(sets):
        shift = torch.randn((1, features), generator=rng, dtype=torch.float64)
        scale = 0.5 + 1.5 * torch.rand(1, generator=rng, dtype=torch.float64)
        sets[number] = items * scale + shift
    return SetBatch.of(sets)


def _one(
    kind: Kind, size: int, features: int, rng: torch.Generator
) -> Float[Tensor, "items features"]:
    shape = (size, features)
    if kind == "normal":
        return torch.randn(shape, generator=rng, dtype=torch.float64)
    even = torch.rand(shape, generator=rng, dtype=torch.float64)
    if kind == "clustered":
        heaps = max(2, math.isqrt(size) // 4)
        centre = torch.rand((heaps, features), generator=rng, dtype=torch.float64)
        which = torch.randint(heaps, (size,), generator=rng)
        width = 10.0 ** -torch.randint(2, 5, (heaps, 1), generator=rng).double()
        spread = torch.randn(shape, generator=rng, dtype=torch.float64)
        return centre[which] + width[which] * spread
    if kind == "nearly sorted":
        place = torch.arange(size, dtype=torch.float64)[:, None] / size
        return place + 2 * (even - 0.5) / math.sqrt(size)
    if kind == "duplicates":
        return torch.floor(even * max(2, size // 8))
    if kind == "heavy tails":
        return torch.tan(math.pi * (even - 0.5)).clamp(-1e6, 1e6)
    return even


_GRID = 2.0**20
"""Numbers to be summed are multiples of one over this, so that sums in doubles are exact."""


@dataclass(frozen=True)
class _Algorithm:
    """The common part of the five tasks; `kinds` are the kinds of inputs drawn, in turn."""

    kinds: tuple[Kind, ...] = TEST_KINDS

    num_features = 1
    answer = "subset"
    precise = True
    """Whether networks see the items in double precision."""

    def __post_init__(self) -> None:
        unknown = [kind for kind in self.kinds if kind not in get_args(Kind)]
        if unknown or not self.kinds:
            known = ", ".join(get_args(Kind))
            raise ValueError(f"kinds must be some of {known}; got {self.kinds}.")

    def sample(self, num_sets: int, set_size: int, *, rng: torch.Generator) -> SetBatch:
        """Items of several kinds."""
        return _drawn(self.kinds, num_sets, set_size, self.num_features, rng)

    def oracle(self, sets: SetBatch) -> Sequences:
        """The right answers."""
        raise NotImplementedError

    def worth(self, sets: SetBatch, solution: Sequences) -> Float[Tensor, "sets"]:
        """The value of answers, in double precision, equal for all right ones."""
        raise NotImplementedError

    def reward(self, sets: SetBatch, solution: Sequences) -> Float[Tensor, "sets"]:
        """The reward of an answer, at most 1."""
        return self.worth(sets, solution).float()

    def right(self, sets: SetBatch, solution: Sequences) -> Bool[Tensor, "sets"]:
        """Whether whole answers are as good as the oracle's."""
        return self.worth(sets, solution) == self.worth(sets, self.oracle(sets))


@dataclass(frozen=True)
class Sort(_Algorithm):
    """Numbers in ascending order."""

    answer = "order"

    def oracle(self, sets: SetBatch) -> Sequences:
        """The right order, by a library's sort."""
        return Sequences(sets.position[segment_sort(sets.items[:, 0], sets.owner)], sets.sizes)

    def worth(self, sets: SetBatch, solution: Sequences) -> Float[Tensor, "sets"]:
        """The share of positions that hold the right number."""
        found, wanted = (one.rows(sets) for one in (solution, self.oracle(sets)))
        return sets.mean((sets.items[found, 0] == sets.items[wanted, 0]).double())


@dataclass(frozen=True)
class Select(_Algorithm):
    """The k-th smallest of numbers, counted from 1; k is the context of the set."""

    def sample(self, num_sets: int, set_size: int, *, rng: torch.Generator) -> SetBatch:
        """Numbers of several kinds, and any k."""
        sets = super().sample(num_sets, set_size, rng=rng)
        k = torch.randint(1, set_size + 1, (num_sets, 1), generator=rng).double()
        return SetBatch.pack(sets.items, sets.sizes, k)

    def oracle(self, sets: SetBatch) -> Sequences:
        """The right item, by a library's sort."""
        order = segment_sort(sets.items[:, 0], sets.owner)
        k = sets.context[:, 0].round().long() - 1
        k = torch.minimum(k.clamp(min=0), sets.sizes - 1)
        return Sequences(sets.position[order[sets.offsets[:-1] + k]], torch.ones_like(sets.sizes))

    def worth(self, sets: SetBatch, solution: Sequences) -> Float[Tensor, "sets"]:
        """The number itself."""
        values = sets.items.new_full((len(sets),), -torch.inf)
        rows = solution.rows(sets)
        return values.index_copy(0, owner_of(solution.sizes), sets.items[rows, 0])

    def reward(self, sets: SetBatch, solution: Sequences) -> Float[Tensor, "sets"]:
        """1 minus the share of items between the one found and the right one."""
        found, wanted = (self.worth(sets, one) for one in (solution, self.oracle(sets)))
        low, high = (end(found, wanted)[sets.owner] for end in (torch.minimum, torch.maximum))
        value = sets.items[:, 0]
        off = sets.sum(((value >= low) & (value < high)).float())
        return 1 - off / sets.sizes


@dataclass(frozen=True)
class Subarray(_Algorithm):
    """The contiguous run, of at least one number, with the largest sum."""

    ordered = True

    def sample(self, num_sets: int, set_size: int, *, rng: torch.Generator) -> SetBatch:
        """Numbers of several kinds around 0, whose sums are exact in doubles."""
        sets = super().sample(num_sets, set_size, rng=rng)
        centred = sets.items - sets.mean(sets.items)[sets.owner]
        return sets.with_items(torch.round(centred * _GRID) / _GRID)

    def oracle(self, sets: SetBatch) -> Sequences:
        """The best run, by running sums: the end highest above the lowest point before it."""
        return Sequences.each(sets, _best_run)

    def worth(self, sets: SetBatch, solution: Sequences) -> Float[Tensor, "sets"]:
        """The sum of the run."""
        values = sets.items[solution.rows(sets), 0].double()
        return segment_sum(values, owner_of(solution.sizes), len(sets))

    def reward(self, sets: SetBatch, solution: Sequences) -> Float[Tensor, "sets"]:
        """1 minus the shortfall of the sum, in units of the sum of absolute values."""
        lack = self.worth(sets, self.oracle(sets)) - self.worth(sets, solution)
        return (1 - lack / sets.sum(sets.items[:, 0].abs()).clamp(min=1e-30)).float()


def _best_run(numbers: np.ndarray) -> np.ndarray:
    """The indices of the run whose sum is largest."""
    total = np.concatenate([[0.0], np.cumsum(numbers)])
    lowest = np.minimum.accumulate(total[:-1])
    stop = int(np.argmax(total[1:] - lowest))
    return np.arange(int(np.argmin(total[: stop + 1])), stop + 1)


@dataclass(frozen=True)
class Closest(_Algorithm):
    """The two closest points in the plane."""

    num_features = 2

    def oracle(self, sets: SetBatch) -> Sequences:
        """The closest pair, by a k-d tree."""
        return Sequences.each(sets, _closest)

    def worth(self, sets: SetBatch, solution: Sequences) -> Float[Tensor, "sets"]:
        """The squared distance; infinite if there are fewer than two points."""
        square = sets.items.new_full((len(sets),), torch.inf, dtype=torch.float64)
        which = index_of(solution.sizes == 2)
        rows = solution.take(which).rows(sets.take(which).as_roots()).reshape(-1, 2)
        points = sets.take(which).items.double()
        step = points[rows[:, 0]] - points[rows[:, 1]]
        return square.index_copy(0, which, step.square().sum(1))

    def reward(self, sets: SetBatch, solution: Sequences) -> Float[Tensor, "sets"]:
        """The smallest distance divided by that found."""
        best, found = (self.worth(sets, one) for one in (self.oracle(sets), solution))
        return torch.where(found > best, best / found.clamp(min=1e-300), 1.0).sqrt().float()


def _closest(points: np.ndarray) -> np.ndarray:
    """The indices of two closest points."""
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
    """The points in the plane that no other beats by being lower in one coordinate or both."""

    num_features = 2

    def oracle(self, sets: SetBatch) -> Sequences:
        """The front, by one sort and the lowest point so far."""
        return Sequences.each(sets, _front)

    def worth(self, sets: SetBatch, solution: Sequences) -> Float[Tensor, "sets"]:
        """Intersection over union of the chosen points and the right ones."""
        found, wanted = (one.mask(sets) for one in (solution, self.oracle(sets)))
        both, some = (sets.sum(x.double()) for x in (found & wanted, found | wanted))
        return both / some.clamp(min=1)


def _front(points: np.ndarray) -> np.ndarray:
    """The indices of the unbeaten points, in order; equal points do not beat each other."""
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
"""The tasks by problem name."""
