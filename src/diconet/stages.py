"""An answer step by step: what the picture of every level, the animation and the page draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from diconet.segments import index_of
from diconet.solve.hull import Hull, convex_hull
from diconet.solve.kmeans import Clusters
from diconet.solve.knapsack import Packing
from diconet.solve.solution import Labels, Model, Solution
from diconet.solve.tsp import Tour, tsp
from diconet.tree import PartitionTree

LEFT = -1
"""The part of items that belong to none (yet)."""


@dataclass(frozen=True, eq=False)
class Stage:
    """One step: the part of every item, closed lines through items, and marks at places.

    Parts keep their number from one step to the next where they can. A line has the number of the
    part it goes through.
    """

    title: str
    parts: np.ndarray
    cycles: list[tuple[int, np.ndarray]] = field(default_factory=list)
    marks: np.ndarray | None = None


def stages_of(solution: Solution, *, model: Model = None, most: int = 6) -> list[Stage]:
    """The steps from the whole to the parts and back; of a deep tree, only so many levels.

    A part's own answer is what the same network (or `model`) says of its points alone.
    """
    if isinstance(solution, Packing):
        return _packing(solution)
    levels = chosen_levels(solution.tree, most)
    down = [Stage(name, parts) for name, parts in levels]
    if isinstance(solution, Clusters):
        last = down[-1].parts
        final = Stage("answer", _like(solution.labels, last), marks=solution.centers)
        return [*down, final]
    up = [
        Stage(name, parts, _cycles(solution, parts, solution.model if model is None else model))
        for name, parts in reversed(levels)
    ]
    return [*down[1:], *up] if len(down) > 1 else up


def conquer_stages(solution: Solution, *, model: Model = None) -> list[Stage]:
    """Only the steps that build an answer: the way back up, or all of them where nothing merges."""
    stages = stages_of(solution, model=model, most=5)
    built = [stage for stage in stages if stage.cycles]
    return built or stages


def hull_stages(tree: PartitionTree, answers: Sequence[Any]) -> list[Stage]:
    """The steps of a network's own tree on one set, leaves first, with its partial hulls."""
    labels = [tree.nodes_at(depth).numpy() for depth in range(tree.depth + 1)]
    parts = stable_parts(labels)
    stages = []
    for depth in range(tree.depth, -1, -1):
        done = [answers[depth].sets]  # and what ended in a leaf further up
        done += [
            answers[level.number].sets.take(index_of(level.is_leaf))
            for level in tree.levels[:depth]
        ]
        cycles = [
            (int(parts[depth][index[0]]), index.numpy())
            for answer in done
            for index in answer.unpack(answer.index)
            if len(index)
        ]
        stages.append(Stage(level_name(depth, tree.depth), parts[depth], cycles))
    return stages


def level_name(depth: int, deepest: int) -> str:
    """What a level is called."""
    if depth == 0:
        return "root"
    return "leaves" if depth == deepest else f"level {depth}"


def chosen_levels(tree: Sequence[Labels], most: int) -> list[tuple[str, np.ndarray]]:
    """Root, leaves and some levels between, each with its name and parts, from the root down."""
    deepest = len(tree) - 1
    keep = np.unique(np.linspace(0, deepest, min(most, deepest + 1)).round().astype(int))
    parts = stable_parts([tree[depth] for depth in keep.tolist()])
    names = [level_name(depth, deepest) for depth in keep.tolist()]
    return list(zip(names, parts, strict=True))


def stable_parts(levels: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Partitions, each finer than the last, renumbered: one child goes by its parent's number."""
    current = np.zeros(len(levels[0]), dtype=np.int64)
    unused = 1
    found = []
    for labels in levels:
        renamed = np.empty_like(current)
        heirs: set[int] = set()
        for label in np.unique(labels).tolist():
            members = labels == label
            parent = int(current[members][0])
            number = parent
            if parent in heirs:
                number, unused = unused, unused + 1
            heirs.add(parent)
            renamed[members] = number
        found.append(renamed)
        current = renamed
    return found


def _like(labels: np.ndarray, parts: np.ndarray) -> np.ndarray:
    """Labels under the numbers of the parts that they share most items with."""
    taken: set[int] = set()
    renamed = np.empty_like(parts)
    for label in np.unique(labels).tolist():
        members = labels == label
        numbers, counts = np.unique(parts[members], return_counts=True)
        best = next((n for n in numbers[np.argsort(-counts)].tolist() if n not in taken), None)
        number = max([*taken, int(parts.max())]) + 1 if best is None else best
        taken.add(number)
        renamed[members] = number
    return renamed


def _cycles(solution: Solution, parts: np.ndarray, model: Model) -> list[tuple[int, np.ndarray]]:
    """The answer of every part on its own; of the whole, the answer itself."""
    numbers = np.unique(parts).tolist()
    members = [np.flatnonzero(parts == number) for number in numbers]
    if isinstance(solution, Hull):
        if len(numbers) == 1:
            return [(0, solution.indices)]
        hulls = convex_hull([solution.points[rows] for rows in members], model=model)
        assert isinstance(hulls, list)
        ways = [hull.indices for hull in hulls]
    else:
        assert isinstance(solution, Tour)
        if len(numbers) == 1:
            return [(0, solution.tour)]
        cities = [solution.cities[rows] for rows in members]
        tours = tsp(cities, metric=solution.kind, model=model)
        assert isinstance(tours, list)
        ways = [tour.tour for tour in tours]
    return [(n, rows[way]) for n, rows, way in zip(numbers, members, ways, strict=True)]


def _packing(solution: Packing) -> list[Stage]:
    """One step a call: the items it took (part 1), those taken before (0) and those left."""
    taken_at = call_of(solution)
    stages = []
    names = ("surely in", "network", "greedy")
    calls = len(solution.tree) - 1
    for call in range(1, calls + 1):
        parts = np.full(len(taken_at), LEFT)
        parts[(taken_at > 0) & (taken_at < call)] = 0
        parts[taken_at == call] = 1
        rows = parts >= 0
        full = solution.weights[rows].sum() / solution.capacity if solution.capacity else 1.0
        name = names[call - 1] if calls == len(names) else f"call {call}"
        count = int((parts == 1).sum())
        if count or call == calls:
            stages.append(Stage(f"{name}: +{count}, {100 * full:.1f}% full", parts))
    return stages


def call_of(solution: Packing) -> np.ndarray:
    """The call, from 1, at which each item was taken; 0 where it was left."""
    chosen = np.zeros(len(solution.values), dtype=bool)
    chosen[solution.chosen] = True
    call = np.zeros(len(chosen), dtype=np.int64)
    for depth in range(1, len(solution.tree)):
        labels = solution.tree[depth]
        for label in np.unique(labels).tolist():
            members = labels == label
            if chosen[members].all():
                call[members & (call == 0)] = depth
    call[chosen & (call == 0)] = len(solution.tree) - 1
    return call
