"""Crossing through a tree: many tours in one leaf after the other, then along the cuts.

Each crossing changes a tour in one place, in a time that grows with the number of cities. So all
tours are crossed within small parts, while the rest of each stays as it is. Then the two sides of a
cut are crossed together; what is left to do there lies mostly along the cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from diconet.core.tree import Level
from diconet.problems.tsp.divide import Budget
from diconet.problems.tsp.search.crossover import Room, Tours, cross_all
from diconet.problems.tsp.search.metric import Metric
from diconet.problems.tsp.search.parts import (
    all_positions,
    disputed,
    lists_within,
    put_back,
    restricted,
)

Run = Callable[..., Iterable[Any]]
"""`map`, or that of a pool of threads."""

Conquer = Callable[["Crowd"], None]
"""Crosses the tours of a node's cities."""

_LEAVES = 2.5  # time per city to cross tours in a leaf, over that along a cut
_HURRY = 0.5  # share of the time for crossing after which the shortest child is taken
_PATIENCE = 5  # generations without a gain before the search ends
_BATCH = 20  # generations until cities on which all tours agree are left out again
_SHARES = 2  # of a generation, for as many threads
_FEW = 8  # cities: fewer are not worth crossing


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
class Crossing:
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
        """The function of one node."""
        work = size * (1.0 if children else _LEAVES)
        self.work += work

        def conquer(crowd: Crowd) -> None:
            if self.budget.over:
                return
            for members, child in children:
                if len(members) < _FEW:
                    continue
                part = crowd.part(members)
                child(part)
                crowd.take(members, part)
            budget = self.budget
            if budget.deadline is not None:
                share = work / self.work * budget.left
                budget = replace(budget, deadline=budget.clock() + share)
            self.work -= work
            self._cross(crowd, budget, 1 if level else _PATIENCE, (*self.seeds, level, node))

        return conquer

    def _cross(self, crowd: Crowd, budget: Budget, patience: int, seeds: tuple[int, ...]) -> None:
        """Crosses tours until none gets shorter, or time is up.

        Cities on which all tours agree are left out.
        """
        late = (1 - _HURRY) * budget.left if budget.deadline is not None else 0.0
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
                greedy = budget.left < late
                gain = cross_all(
                    part.xy, part.code, part.near, many, rooms, self.tiny, greedy, self.run
                )
                idle = 0 if gain > 0 else idle + 1
                if idle >= patience or budget.over:
                    break
            crowd.take(members, part)
