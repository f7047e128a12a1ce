"""Tours by crossing many: each has its own start, then they are crossed until none gets shorter.

Kicks look for improvements near by. Two tours found from different starts also differ in long
chains of edges, and crossing them finds out which parts of each are better.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from diconet.problems.tsp.search.crossover import evolve
from diconet.problems.tsp.search.local import search
from diconet.problems.tsp.search.metric import Metric

Start = Callable[[np.random.Generator], np.ndarray]
"""Draws a tour to start from."""

FEWEST, MOST = 20, 200
"""With fewer tours there is too little to choose from; more gain nothing."""

_WORK = 2e-5  # seconds per tour and city, at a thousand cities; grows with the root of that number
_ANYWHERE = 0.3  # share of tours that start in random order, which leads between far clusters
_STEP = 5  # generations between two looks at the clock
_PATIENCE = 10  # generations in which no tour gets shorter before the search ends


def affordable(cities: int, seconds: float) -> int:
    """How many tours can be found and crossed in that time on one core; 0 if too few."""
    many = int(min(seconds / (_WORK * cities * (cities / 1_000) ** 0.5), MOST))
    return many if many >= FEWEST else 0


@dataclass(frozen=True, eq=False)
class Population:
    """What the tours of a population share."""

    metric: Metric
    near: np.ndarray
    start: Start
    tiny: float
    threads: int

    def best(self, many: int, seed: int, is_over: Callable[[], bool]) -> np.ndarray:
        """The shortest of `many` tours after crossing them, unless the time is over before."""
        tours = self._found(many, seed, is_over)
        edges_free = self._free()
        idle, number = 0, 0
        while idle < _PATIENCE and not is_over():
            idle = evolve(
                self.metric.xy, self.metric.code, self.near, edges_free, tours, _STEP, idle,
                np.uint64(2 * (1_000_003 * seed + number) + 1), self.tiny,
            )  # fmt: skip
            number += 1
        return min(tours, key=self.metric.length)

    def _found(self, many: int, seed: int, is_over: Callable[[], bool]) -> np.ndarray:
        """Tours that no exchange shortens, as many as there is time for, but at least one."""
        cities = np.arange(len(self.metric), dtype=np.int32)
        edges_free = self._free()

        def one(number: int) -> np.ndarray | None:
            if number and is_over():
                return None
            rng = np.random.default_rng([seed, number])
            is_random = number > (1 - _ANYWHERE) * many
            tour = rng.permutation(cities) if is_random else self.start(rng).astype(np.int32)
            search(
                self.metric.xy, self.metric.code, self.near, edges_free, tour, cities, True, 0, 1,
                self.tiny, np.uint64(1), 0.0, 0.0,
            )  # fmt: skip
            return tour

        with ThreadPoolExecutor(self.threads) as pool:
            return np.stack([tour for tour in pool.map(one, range(many)) if tour is not None])

    def _free(self) -> np.ndarray:
        """No edge is fixed."""
        return np.full((len(self.metric), 2), -1, dtype=np.int32)
