"""Tours by divide and conquer: leaves searched separately, seams repaired on the way up.

A round grows a tree over all cities. Its leaves are searched one by one while the rest of the tour
stays fixed; then each inner node searches the cities along its cut. The next round cuts in other
directions, so that seams move. The tour is cut into strands, paths with fixed ends, which
two threads can search in parallel. There are two strands whatever the number of threads, so
the answer does not depend on it; under a time limit, one thread has the tour in one piece.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, no_type_check

import numpy as np
import torch
from numba import njit

from diconet.core.compiled import KERNEL
from diconet.core.host import available_threads
from diconet.core.sets import SetBatch
from diconet.core.tree import Growth, Level, fold, grow
from diconet.nets.axes import AcrossSplit
from diconet.problems.tsp.search.local import search
from diconet.problems.tsp.search.metric import Metric
from diconet.problems.tsp.search.parts import search_part

LEAF = 5_000
"""Maximum cities per leaf: small enough for the cache, large enough to have few seams."""

WHOLE = 2_000
"""Up to this many cities there is time for so many kicks that the search can start hot."""

_STRANDS = 2
_WALK = 80  # maximum steps of the walk that picks the edges of a kick
_BATCH = 2.0  # kicks per city in a round
_FIRST = 0.1  # the same in the first round, which shows how many kicks there is time for
_SEAM = 5  # a city lies at a cut if one of this many near neighbours is across it
_WIDTH = 5  # edges from a cut to the border of the strip that is searched along it
_MARGIN = 1e-12
_FEW = 500  # up to this many cities there are several starts
_STARTS = 4
_KICKS_PER_START = 25.0  # per city, under a time limit
_HOT = 0.7  # what a kick may cost at first, in units of the edges it removes
_WARM = 0.2  # the same above `WHOLE` cities, with too few kicks per city to cool down from more


@dataclass(frozen=True)
class Budget:
    """The search effort: `kicks` per city or, with a `deadline`, until that time."""

    kicks: float
    deadline: float | None = None
    clock: Callable[[], float] = time.monotonic

    @property
    def left(self) -> float:
        """The seconds left."""
        return math.inf if self.deadline is None else self.deadline - self.clock()

    @property
    def over(self) -> bool:
        """Whether the time is up."""
        return self.left <= 0


def searched(
    metric: Metric,
    near: np.ndarray,
    tour: np.ndarray,
    budget: Budget,
    *,
    seed: int = 0,
    leaf: int = LEAF,
    threads: int | None = None,
    split: torch.nn.Module | None = None,
) -> np.ndarray:
    """The tour after a search, never longer; divided if it has more than `leaf` cities.

    If the budget has a deadline, rounds continue until then.
    """
    tour = np.array(tour, dtype=np.int32)
    if len(tour) < 5:
        return tour
    tiny = _MARGIN * max(metric.length(tour) / metric.unit, 1e-290)
    flat = _Flat(metric, near, seed, tiny)
    if len(tour) <= _FEW and (budget.kicks > 0 or budget.deadline is not None):
        return flat.best_of_starts(tour, budget)
    # In a poor tour, parts would be full of fixed paths outside; this takes little time.
    best = tour = flat.run(tour, True, 0, 0, 0.0, 0.0)
    split = AcrossSplit() if split is None else split
    for number, step in enumerate(_steps(budget, _HOT if len(tour) <= WHOLE else _WARM)):
        if len(tour) <= leaf:
            kicks = int(step.kicks * len(tour))
            tour = flat.run(tour, False, kicks, number, step.warm, step.cool)
        else:
            args = (metric, near, tour, budget, step, seed, number, tiny, threads)
            tour = _Round(*args).run(split, leaf)
        best = min(best, tour, key=metric.length)
    return best


@dataclass(frozen=True)
class _Step:
    """One step of a search: kicks per city, and what a kick may cost at its start and end."""

    kicks: float
    warm: float
    cool: float


def _steps(budget: Budget, heat: float) -> Iterator[_Step]:
    """The steps that fill a budget, cooling down from `heat` to 0 as it runs out.

    With a deadline, the first step is cold: it may turn out that there is no time for another.
    """
    begun, done, total = budget.clock(), 0.0, budget.kicks
    if budget.deadline is not None and not budget.over:
        yield _Step(_FIRST, 0.0, 0.0)
        done = _FIRST
    while not budget.over:
        kicks = min(_BATCH, total - done)
        if budget.deadline is not None:
            used = (budget.clock() - begun) / (budget.deadline - begun)
            total = done / used
            kicks = min(_BATCH, max(total - done, 0.01))
        if kicks <= 0:
            return
        yield _Step(kicks, heat * (1 - done / total), heat * max(1 - (done + kicks) / total, 0.0))
        done += kicks


@dataclass(frozen=True, eq=False)
class _Flat:
    """The search without division."""

    metric: Metric
    near: np.ndarray
    seed: int
    tiny: float

    def run(
        self, tour: np.ndarray, descend: bool, kicks: int, number: int, warm: float, cool: float
    ) -> np.ndarray:
        """The tour after `kicks` kicks, preceded by exchanges if `descend`."""
        tour = tour.copy()
        link = np.full((len(tour), 2), -1, dtype=np.int32)
        core = np.arange(len(tour), dtype=np.int32)
        search(
            self.metric.xy, self.metric.code, self.near, link, tour, core, descend, kicks,
            min(_WALK, len(tour)), self.tiny, _seed(self.seed, number), warm, cool,
        )  # fmt: skip
        return tour

    def best_of_starts(self, tour: np.ndarray, budget: Budget) -> np.ndarray:
        """The shortest of several searches: the first from this tour, the others from random."""
        best, number = tour, 0
        rng = np.random.default_rng(self.seed)
        timed = budget.deadline is not None
        kicks = int((_KICKS_PER_START if timed else budget.kicks / _STARTS) * len(tour))
        while not number or (not budget.over if timed else number < _STARTS):
            start = rng.permutation(len(tour)).astype(np.int32) if number else tour
            found = self.run(start, True, kicks, number, 0.0, 0.0)
            best = min(best, found, key=self.metric.length)
            number += 1
        return best


def _seed(*numbers: int) -> np.uint64:
    """A separate seed for every search, positive as a signed number too."""
    state = np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0]
    return np.uint64((int(state) & (2**63 - 1)) | 1)


class _Round:
    """One round: the state needed to search the leaves and seams of its tree."""

    def __init__(
        self,
        metric: Metric,
        near: np.ndarray,
        tour: np.ndarray,
        budget: Budget,
        step: _Step,
        seed: int,
        number: int,
        tiny: float,
        threads: int | None,
    ) -> None:
        self.metric, self.near, self.budget = metric, near, budget
        self.step, self.tiny, self.threads = step, tiny, threads or usual_threads()
        self.seeds = (seed, number)
        num = len(tour)
        # Strands begin elsewhere in every round, so that their ends move too.
        strands = _STRANDS if budget.deadline is None else self.threads
        start = (number * num) // (2 * _STRANDS) + number * 97
        self.paths = [path.copy() for path in np.array_split(np.roll(tour, -start), strands)]
        self.strand = np.empty(num, dtype=np.int32)
        self.pos = np.empty(num, dtype=np.int32)
        for which, path in enumerate(self.paths):
            self.strand[path] = which
            self.pos[path] = np.arange(len(path), dtype=np.int32)
        self.local = np.full(num, -1, dtype=np.int32)

    def run(self, split: torch.nn.Module, leaf: int) -> np.ndarray:
        """The tour after a search of all leaves and seams."""
        cities = torch.from_numpy(self.metric.xy).float()
        sets = SetBatch.of([cities])
        seeds = torch.tensor([int(_seed(*self.seeds))], device="cpu") if self.seeds[1] else None
        tree = grow(split, sets, Growth(leaf_size=leaf), seeds)
        fold(self, tree)
        return np.concatenate(self.paths)

    def __call__(self, level: Level, below: Any, target: Any) -> None:
        """Searches all parts of a level; threads share the strands."""
        if self.budget.over:
            return
        parts: list[list[tuple[np.ndarray, bool]]] = [[] for _ in self.paths]
        for members, seam in _parts(level, self.near):
            strand = self.strand[members]
            for which in range(len(self.paths)):
                parts[which].append((members[strand == which], seam))

        def work(which: int) -> None:
            for number, (members, seam) in enumerate(parts[which]):
                if self.budget.over:
                    return
                seed = _seed(*self.seeds, level.number, number, which)
                self._search(which, members, seam, seed)

        with ThreadPoolExecutor(self.threads) as pool:
            list(pool.map(work, range(len(self.paths))))

    def _search(self, which: int, members: np.ndarray, seam: bool, seed: np.uint64) -> None:
        """Makes kicks, at a seam after exchanges, since new ones may be possible there."""
        search_part(
            self.metric.xy,
            self.metric.code,
            self.near,
            self.paths[which],
            self.pos,
            self.strand,
            self.local,
            members,
            False,
            seam,
            self.step.kicks,
            _WALK,
            self.tiny,
            seed,
            self.step.warm,
            self.step.cool,
        )


def usual_threads() -> int:
    """One thread per strand, unless torch is limited to fewer, as in Dask's workers."""
    return min(_STRANDS, available_threads())


def _parts(level: Level, near: np.ndarray) -> Iterator[tuple[np.ndarray, bool]]:
    """The cities to search at each node of a level, and whether they lie along a cut."""
    sets = level.sets
    index = sets.index.numpy().astype(np.int32)
    offsets = sets.offsets.tolist()
    if level.cut is not None:
        inside = sets.take(level.inner)
        rows = inside.index.numpy()
        node = np.full(level.roots.num_items, -1, dtype=np.int64)
        side = np.zeros(level.roots.num_items, dtype=bool)
        node[rows], side[rows] = inside.owner.numpy(), level.cut.side.numpy()
        at_cut = _at_cut(near[:, :_SEAM], node, side, _WIDTH)
    leaf = level.is_leaf.tolist()
    for number, (start, stop) in enumerate(pairwise(offsets)):
        members = index[start:stop]
        if leaf[number]:
            yield members, False
            continue
        members = members[at_cut[members]]
        places = level.roots.items.numpy()[members]
        along = int(np.ptp(places, axis=0).argmax()) if len(places) else 0
        order = np.argsort(places[:, along], kind="stable")
        for some in np.array_split(members[order], max(1, -(-len(members) // LEAF))):
            yield some, True


@njit(**KERNEL)
@no_type_check
def _at_cut(near, node, side, width):
    """Cities with a near neighbour across their node's cut, and those up to `width` edges away."""
    n = len(node)
    found = np.zeros(n, dtype=np.bool_)
    queue = np.empty(n, dtype=np.int32)
    count = 0
    for i in range(n):
        for other in near[i] if node[i] >= 0 else near[i, :0]:
            if other >= 0 and node[other] == node[i] and side[other] != side[i] and not found[i]:
                found[i] = True
                queue[count] = i
                count += 1
    start = 0
    for _ in range(width):
        stop = count
        for at in range(start, stop):
            for other in near[queue[at]]:
                if other >= 0 and node[other] == node[queue[at]] and not found[other]:
                    found[other] = True
                    queue[count] = other
                    count += 1
        start = stop
    return found
