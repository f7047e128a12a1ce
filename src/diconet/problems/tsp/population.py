"""Tours by crossing many: each has its own start, then they are crossed through a tree.

Kicks look for improvements near by. Tours found from different starts also differ in long
chains of edges, and crossing them finds out which parts of each are better.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import torch

from diconet.core.sets import SetBatch
from diconet.core.tree import Growth, fold, grow
from diconet.nets.axes import AcrossSplit
from diconet.problems.tsp.crossing import Crossing, Crowd, Run
from diconet.problems.tsp.divide import Budget, usual_threads
from diconet.problems.tsp.search.decode import greedy_tour
from diconet.problems.tsp.search.local import search
from diconet.problems.tsp.search.metric import Metric

Start = Callable[[np.random.Generator], np.ndarray]
"""Draws a tour to start from."""

CELL = 1_250
"""Maximum cities per leaf in which tours are crossed."""

MANY = 50_000
"""Cities: more are crossed only under a time limit, and only through a tree."""

_SMALLEST = 100  # cities: fewer are soon kicked to the optimum
_FEWEST = 5  # tours: of fewer there is too little to choose from
_FEWEST_OF_MANY = 8  # the same for so many cities, as then kicks are level
_USUAL, _MOST = 30, 300  # tours without a time limit, at least and at most; more gain little
_TOURS = 400_000  # of many cities: this many over their number
_FEW, _PER_CITY = 100, 0.4  # of few cities: at least, and per city
_WORK = 2.5e-5  # processor seconds per tour and city
_CROSSING = 0.8  # time to cross 30 tours over that to find them, for a leaf of a thousand cities
_GROWTH = 0.6  # power of the size of leaves with which that ratio grows
_FEWER = 0.35  # power of the number of tours, if they are fewer
_CUTS = 1.6  # by how much cuts add to it, at least
_LEVELS = 0.23  # power of the number of leaves with which that grows
_KICKED = 0.1  # share of the time that is left to kicks
_MARGIN = 1e-12
_NOISE = 0.7  # of the spread of the scores, for starts to differ
_EDGES = 8  # per city, among which starts differ


def is_crossed(cities: int, budget: Budget, threads: int | None = None) -> bool:
    """Whether to cross tours of this many cities: if there is time for a few of them."""
    if cities > MANY and budget.deadline is None:
        return False
    fewest = _FEWEST if cities <= MANY else _FEWEST_OF_MANY
    work = _WORK * fewest * cities / (threads or usual_threads())
    return cities >= _SMALLEST and budget.left >= work


def noisy_starts(cities: np.ndarray, edges: np.ndarray, scores: np.ndarray) -> Start:
    """Tours that differ: greedy ones by scores of edges, to which noise is added."""
    best = np.argsort(-scores, kind="stable")[: _EDGES * len(cities)]
    edges, scores = edges[best], scores[best]
    spread = _NOISE * (float(scores.std()) or 1.0)

    def start(rng: np.random.Generator) -> np.ndarray:
        noise = spread * rng.standard_normal(len(scores))
        return greedy_tour(Metric.of(cities), edges, scores + noise)

    return start


def crossed(
    metric: Metric,
    near: np.ndarray,
    tour: np.ndarray,
    start: Start,
    budget: Budget,
    *,
    seed: int = 0,
    leaf: int = CELL,
    threads: int | None = None,
    split: torch.nn.Module | None = None,
) -> np.ndarray:
    """The shortest tour of a population, or under a time limit of several; never longer.

    The first tour of a population begins as the shortest so far, others as `start` draws them. The
    answer does not depend on the number of threads, unless there is a time limit.
    """
    best = np.array(tour, dtype=np.int32)
    tiny = _MARGIN * max(metric.length(best) / metric.unit, 1e-290)
    threads = threads or usual_threads()
    ratio = _ratio(len(best), leaf) / threads
    number = 0
    if budget.deadline is not None:
        budget = replace(budget, deadline=budget.deadline - _KICKED * budget.left)
    with _running(threads) as run:
        while not number or (
            budget.deadline is not None and is_crossed(len(best), budget, threads)
        ):
            population = Population(metric, near, budget, (seed, number), tiny, run)
            tours = population.found(best, start, _limit(len(best), budget), ratio)
            population.cross(tours, AcrossSplit() if split is None else split, leaf)
            best = min(best, *tours, key=metric.length)
            number += 1
    return best


@contextmanager
def _running(threads: int) -> Iterator[Run]:
    """A `map` that uses so many threads."""
    if threads == 1:
        yield map
        return
    with ThreadPoolExecutor(threads) as pool:
        yield pool.map


def _limit(cities: int, budget: Budget) -> int:
    """The maximum number of tours to cross."""
    if budget.deadline is not None:
        return _MOST
    return min(_MOST, max(_FEW, int(_PER_CITY * cities)), max(_USUAL, _TOURS // cities))


def _ratio(cities: int, leaf: int) -> float:
    """The processor time to cross tours over that to find them."""
    within = _CROSSING * (min(cities, leaf) / 1_000) ** _GROWTH
    return within if cities <= leaf else within * max(_CUTS, (cities / leaf) ** _LEVELS)


@dataclass(frozen=True, eq=False)
class Population:
    """What the tours of a population share."""

    metric: Metric
    near: np.ndarray
    budget: Budget
    seeds: tuple[int, int]
    tiny: float
    run: Run = map

    def found(self, first: np.ndarray, start: Start, limit: int, ratio: float = 1.0) -> np.ndarray:
        """Tours that no exchange shortens: `limit`, or as many as there is time to cross.

        `ratio` is the time to cross many over that to find them.
        """
        cities = np.arange(len(self.metric), dtype=np.int32)
        no_edge = np.full((len(cities), 2), -1, dtype=np.int32)
        work: list[float] = []

        def one(number: int) -> np.ndarray | None:
            begun = self.budget.clock()
            few = min(1.0, number / _USUAL) ** _FEWER
            if number > 1 and self.budget.left < few * ratio * sum(work):
                return None
            tour = start(np.random.default_rng([*self.seeds, number])) if number else first
            tour = np.array(tour, dtype=np.int32)
            search(
                self.metric.xy, self.metric.code, self.near, no_edge, tour, cities, True, 0, 1,
                self.tiny, np.uint64(1), 0.0, 0.0,
            )  # fmt: skip
            work.append(self.budget.clock() - begun)
            return tour

        return np.stack([tour for tour in self.run(one, range(limit)) if tour is not None])

    def cross(self, tours: np.ndarray, split: torch.nn.Module, leaf: int) -> None:
        """Crosses tours in place, in all leaves of a tree and along all cuts."""
        sets = SetBatch.of([torch.from_numpy(self.metric.xy).float()])
        drawn = torch.from_numpy(np.random.default_rng(self.seeds).integers(2**62, size=1))
        tree = grow(split, sets, Growth(leaf_size=leaf), drawn if self.seeds[1] else None)
        (conquer,) = fold(Crossing(self.budget, self.seeds, self.tiny, self.run), tree)
        conquer(Crowd.of(self.metric, self.near, tours))
