"""Tours by crossing many, through a tree: in the leaves first, then along the cuts.

Kicks look for improvements near by. Tours found from different starts also differ in long
chains of edges, and crossing them finds out which parts of each are better. Each crossing changes
one place, at a cost that grows with the number of cities; so all tours are crossed within one leaf
after the other, where the rest of each stays as it is. Then the two sides of a cut are crossed
together, and what is left to do lies along the cut.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from diconet.core.sets import SetBatch
from diconet.core.tree import Growth, Level, fold, grow
from diconet.nets.axes import AcrossSplit
from diconet.problems.tsp.divide import Budget, available_threads
from diconet.problems.tsp.search.crossover import Room, Tours, cross_all
from diconet.problems.tsp.search.decode import greedy_tour
from diconet.problems.tsp.search.local import search
from diconet.problems.tsp.search.metric import Metric
from diconet.problems.tsp.search.parts import (
    all_positions,
    disputed,
    lists_within,
    put_back,
    restricted,
)

Start = Callable[[np.random.Generator], np.ndarray]
"""Draws a tour to start from."""

Run = Callable[..., Iterable[Any]]
"""`map`, or that of a pool of threads."""

Conquer = Callable[["Crowd"], None]
"""Crosses the tours of a node's cities."""

CELL = 1_250
"""Maximum cities per leaf in which tours are crossed."""

_SMALLEST = 501  # cities: fewer are soon kicked to the optimum
_FEWEST = 10  # tours: of fewer there is too little to choose from
_USUAL, _MOST = 30, 300  # tours without a time limit, at least and at most; more gain little
_TOURS = 400_000  # between these, this many over the number of cities
_WORK = 2.5e-5  # processor seconds per tour and city
_CROSSING = 0.8  # time to cross tours over that to find them, for a leaf of a thousand cities
_GROWTH = 0.6  # power of the size of leaves with which that ratio grows
_CUTS = 1.6  # by how much cuts add to it
_LEAVES = 2.5  # time per city to cross tours in a leaf, over that along a cut
_HURRY = 0.5  # share of the time for crossing after which the shortest child is taken
_PATIENCE = 5  # generations without a gain before the search ends
_BATCH = 20  # generations until cities on which all tours agree are left out again
_SHARES = 2  # of a generation, for as many threads
_FEW = 8  # disputed cities that are not worth crossing
_MARGIN = 1e-12
_NOISE = 0.7  # of the spread of the scores, for starts to differ
_EDGES = 8  # per city, among which starts differ


def is_crossed(cities: int, budget: Budget, threads: int | None = None) -> bool:
    """Whether to cross tours of this many cities: if there is time for a few of them."""
    work = _WORK * _FEWEST * cities / (threads or available_threads())
    return cities >= _SMALLEST and _left(budget) >= work


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
    threads = threads or available_threads()
    ratio = _ratio(len(best), leaf) / threads
    number = 0
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


def _left(budget: Budget) -> float:
    """The seconds left."""
    return math.inf if budget.deadline is None else budget.deadline - budget.clock()


def _limit(cities: int, budget: Budget) -> int:
    """The maximum number of tours to cross."""
    return _MOST if budget.deadline is not None else max(_USUAL, min(_MOST, _TOURS // cities))


def _ratio(cities: int, leaf: int) -> float:
    """The processor time to cross tours over that to find them."""
    within = _CROSSING * (min(cities, leaf) / 1_000) ** _GROWTH
    return within if cities <= leaf else _CUTS * within


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

        `ratio` is the time to cross them over that to find them.
        """
        cities = np.arange(len(self.metric), dtype=np.int32)
        no_edge = np.full((len(cities), 2), -1, dtype=np.int32)
        work: list[float] = []

        def one(number: int) -> np.ndarray | None:
            begun = self.budget.clock()
            if number > 1 and _left(self.budget) < ratio * sum(work):
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
        (conquer,) = fold(_Crossing(self.budget, self.seeds, self.tiny, self.run), tree)
        conquer(Crowd.of(self.metric, self.near, tours))


@dataclass(frozen=True, eq=False)
class Crowd:
    """Many tours of the same cities, changed in place.

    In a part of a map, `links` are the edges that stand for each tour's ways outside.
    """

    xy: np.ndarray
    code: int
    near: np.ndarray
    tours: np.ndarray
    links: np.ndarray
    places: np.ndarray

    @classmethod
    def of(cls, metric: Metric, near: np.ndarray, tours: np.ndarray) -> Crowd:
        """Tours of the whole map."""
        links = np.full((*tours.shape, 2), -1, dtype=np.int32)
        return cls(metric.xy, metric.code, near, tours, links, all_positions(tours))

    def part(self, members: np.ndarray) -> Crowd:
        """The tours within some cities."""
        tours, links = restricted(self.tours, self.places, self.links, members)
        near = lists_within(self.near, members)
        return Crowd(self.xy[members], self.code, near, tours, links, all_positions(tours))

    def take(self, members: np.ndarray, part: Crowd) -> None:
        """Takes over the tours within some cities."""
        put_back(self.tours, self.places, members, part.tours)


@dataclass(eq=False)
class _Crossing:
    """A merge that answers each node by a function: it crosses the tours of the node's cities.

    `work` is what is still to do, for sharing out the time.
    """

    budget: Budget
    seeds: tuple[int, int]
    tiny: float
    run: Run
    work: float = 0.0

    def __call__(self, level: Level, below: Any, target: Any) -> list[Conquer]:
        """The functions of all nodes of a level, which call those of the level below."""
        children: dict[int, list[tuple[np.ndarray, Conquer]]] = {}
        if level.cut is not None:
            ends = level.sets.take(level.inner).offsets[1:-1].numpy()
            sides = np.split(level.cut.side.numpy(), ends)
            for at, (node, side) in enumerate(zip(level.inner.tolist(), sides, strict=True)):
                members = [np.flatnonzero(part).astype(np.int32) for part in (~side, side)]
                children[node] = list(zip(members, below[2 * at : 2 * at + 2], strict=True))
        return [
            self._conquer(level.number, node, size, children.get(node, []))
            for node, size in enumerate(level.sets.sizes.tolist())
        ]

    def _conquer(
        self, level: int, node: int, size: int, children: list[tuple[np.ndarray, Conquer]]
    ) -> Conquer:
        work = float(size) if children else _LEAVES * size
        self.work += work

        def conquer(crowd: Crowd) -> None:
            for members, child in children:
                part = crowd.part(members)
                child(part)
                crowd.take(members, part)
            budget = self.budget
            if budget.deadline is not None:
                share = work / self.work * _left(budget)
                budget = replace(budget, deadline=budget.clock() + share)
            self.work -= work
            self._cross(crowd, budget, 1 if level else _PATIENCE, (*self.seeds, level, node))

        return conquer

    def _cross(self, crowd: Crowd, budget: Budget, patience: int, seeds: tuple[int, ...]) -> None:
        """Crosses tours until none gets shorter, or time is up.

        Cities on which all tours agree are left out.
        """
        late = (1 - _HURRY) * _left(budget) if budget.deadline is not None else 0.0
        rng = np.random.default_rng(seeds)
        idle = 0
        while idle < patience and not budget.over:
            members = disputed(crowd.tours, crowd.places)
            if len(members) < _FEW:
                return
            part = crowd.part(members)
            many = Tours.of(part.tours, part.links)
            rooms = [Room.of(len(members), int(rng.integers(1, 2**62))) for _ in range(_SHARES)]
            for _ in range(_BATCH):
                greedy = _left(budget) < late
                gain = cross_all(
                    part.xy, part.code, part.near, many, rooms, self.tiny, greedy, self.run
                )
                idle = 0 if gain > 0 else idle + 1
                if idle >= patience or budget.over:
                    break
            crowd.take(members, part)
