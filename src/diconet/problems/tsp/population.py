"""Tours by crossing many: each has its own start, then they are crossed until none gets shorter.

Kicks look for improvements near by. Two tours found from different starts also differ in long
chains of edges, and crossing them finds out which parts of each are better.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from diconet.problems.tsp.divide import Budget, available_threads
from diconet.problems.tsp.search.crossover import Room, Tours, cross_all
from diconet.problems.tsp.search.local import search
from diconet.problems.tsp.search.metric import Metric

Start = Callable[[np.random.Generator], np.ndarray]
"""Draws a tour to start from."""

_SMALLEST, _LARGEST = 501, 12_000  # cities: fewer are soon kicked to the optimum
_FEWEST, _MOST = 10, 300  # tours: of fewer there is too little to choose from, more gain little
_TOURS = 400_000  # by default, this many over the number of cities
_WORK = 2e-5  # seconds per tour and city, at a thousand cities; grows with the root of that number
_CROSSING = 0.8  # time to cross tours over that to find them, at a thousand cities
_GROWTH = 0.6  # power of the number of cities with which that ratio grows
_HURRY = 0.5  # share of the time for crossing after which the shortest child is taken
_PATIENCE = 5  # generations without a gain before the search ends
_MARGIN = 1e-12


def is_crossed(cities: int, budget: Budget) -> bool:
    """Whether to cross tours of this many cities: if there is time for a few of them."""
    work = _WORK * _FEWEST * cities * (cities / 1_000) ** 0.5
    return _SMALLEST <= cities <= _LARGEST and _left(budget) >= work


def crossed(
    metric: Metric,
    near: np.ndarray,
    tour: np.ndarray,
    start: Start,
    budget: Budget,
    *,
    seed: int = 0,
    threads: int | None = None,
) -> np.ndarray:
    """The shortest tour of a population, or under a time limit of several; never longer.

    The first tour of each population begins as the given one, others as `start` draws them. The
    answer does not depend on the number of threads, unless there is a time limit.
    """
    best = np.array(tour, dtype=np.int32)
    tiny = _MARGIN * max(metric.length(best) / metric.unit, 1e-290)
    population = Population(metric, near, best, start, tiny, threads or available_threads())
    number = 0
    while not number or (budget.deadline is not None and is_crossed(len(best), budget)):
        tours = population.found(_limit(len(best)), budget, (seed, number))
        found = population.crossed(tours, budget, (seed, number))
        best = min(best, found, key=metric.length)
        number += 1
    return best


def _left(budget: Budget) -> float:
    """The seconds left."""
    return math.inf if budget.deadline is None else budget.deadline - budget.clock()


def _limit(cities: int) -> int:
    """The maximum number of tours to cross."""
    return max(_FEWEST, min(_MOST, _TOURS // cities))


@dataclass(frozen=True, eq=False)
class Population:
    """What the tours of a population share."""

    metric: Metric
    near: np.ndarray
    tour: np.ndarray
    start: Start
    tiny: float
    threads: int

    def found(self, limit: int, budget: Budget, seeds: tuple[int, int]) -> np.ndarray:
        """Tours that no exchange shortens: `limit`, or as many as there is time to cross."""
        cities = np.arange(len(self.metric), dtype=np.int32)
        no_edge = np.full((len(cities), 2), -1, dtype=np.int32)
        ratio = _CROSSING * (len(cities) / 1_000) ** _GROWTH
        work: list[float] = []

        def one(number: int) -> np.ndarray | None:
            begun = budget.clock()
            if number > 1 and _left(budget) < ratio * sum(work):
                return None
            rng = np.random.default_rng([*seeds, number])
            tour = self.tour if number + seeds[1] == 0 else self.start(rng)
            tour = np.array(tour, dtype=np.int32)
            search(
                self.metric.xy, self.metric.code, self.near, no_edge, tour, cities, True, 0, 1,
                self.tiny, np.uint64(1), 0.0, 0.0,
            )  # fmt: skip
            work.append(budget.clock() - begun)
            return tour

        with ThreadPoolExecutor(self.threads) as pool:
            return np.stack([tour for tour in pool.map(one, range(limit)) if tour is not None])

    def crossed(self, tours: np.ndarray, budget: Budget, seeds: tuple[int, int]) -> np.ndarray:
        """The shortest tour after crossing them until none gets shorter, or time is up."""
        many, room = Tours.of(tours), Room.of(tours.shape[1])
        state = np.random.default_rng(seeds).integers(1, 2**63, 1, dtype=np.uint64)
        late = (1 - _HURRY) * _left(budget) if budget.deadline is not None else 0.0
        idle = 0
        while idle < _PATIENCE and not budget.over:
            greedy = _left(budget) < late
            gain = cross_all(
                self.metric.xy, self.metric.code, self.near, many, room, state, self.tiny, greedy
            )
            idle = 0 if gain > 0 else idle + 1
        return min(tours, key=self.metric.length)
