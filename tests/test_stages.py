from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from diconet.merges import TripleMerge
from diconet.merges.length import LengthMerge
from diconet.model import DiCoNet
from diconet.noise import seeds_from
from diconet.sets import SetBatch
from diconet.solve.hull import Hull, convex_hull
from diconet.solve.knapsack import Packing
from diconet.solve.solution import Partitions
from diconet.solve.tsp import Tour, tsp
from diconet.splits import RandomSplit
from diconet.splits.across import AcrossSplit
from diconet.stages import LEFT, call_of, chosen_levels, hull_stages, stable_parts, stages_of
from diconet.tree import Growth, fold_levels, grow
from tests.tiny import hull_network


def test_one_child_goes_by_its_parents_number() -> None:
    """0 | 0 1 | the first part in two: the new one gets a number that nobody had."""
    levels = [np.array([0, 0, 0]), np.array([0, 0, 1]), np.array([0, 1, 2])]
    assert [parts.tolist() for parts in stable_parts(levels)] == [[0, 0, 0], [0, 0, 1], [0, 2, 1]]


def test_parts_stay_the_same_partition(rng: torch.Generator) -> None:
    sets = SetBatch.of([torch.rand(40, 2, generator=rng)])
    tree = grow(RandomSplit(), sets, Growth(leaf_size=3), seeds_from(rng, 1))
    levels = [tree.nodes_at(depth).numpy() for depth in range(tree.depth + 1)]
    for labels, parts in zip(levels, stable_parts(levels), strict=True):
        pairs = set(zip(labels.tolist(), parts.tolist(), strict=True))
        assert len(pairs) == len(set(labels.tolist())) == len(set(parts.tolist()))


def test_of_a_deep_tree_some_levels_are_shown() -> None:
    tree = Partitions(np.tri(31, 30, k=-1, dtype=bool).T)
    names = [name for name, _ in chosen_levels(tree, most=4)]
    assert names == ["root", "level 10", "level 20", "leaves"]


def test_every_part_has_its_hull_at_every_level(rng: torch.Generator) -> None:
    """Also those that ended in a leaf further up."""
    sets = SetBatch.of([torch.rand(30, 2, generator=rng, dtype=torch.float64)])
    tree = grow(RandomSplit(), sets, Growth(leaf_size=6), seeds_from(rng, 1))
    assert any(bool(level.is_leaf.any()) for level in tree.levels[:-1])
    with torch.no_grad():
        stages = hull_stages(tree, fold_levels(TripleMerge(), tree))
    assert [stage.title for stage in stages][::-1][:2] == ["root", "level 1"]
    for stage in stages:
        assert sorted(part for part, _ in stage.cycles) == sorted(set(stage.parts.tolist()))
        for part, rows in stage.cycles:
            assert set(stage.parts[rows].tolist()) == {part}


def packing() -> Packing:
    """Four items: the first is taken by the first cut, the third by the second, two are left."""
    at = np.array([0, 3, 1, 3])
    tree = Partitions(at[None] > np.arange(3)[:, None])
    values = weights = np.array([1.0, 9.0, 2.0, 9.0])
    return Packing(3.0, tree, values, weights, 4.0, np.array([0, 2]), 3.0, 3.0)


def test_which_call_took_an_item() -> None:
    assert call_of(packing()).tolist() == [1, 0, 2, 0]


def test_a_knapsack_fills_call_by_call() -> None:
    stages = stages_of(packing())
    assert [stage.title for stage in stages] == [
        "surely in: +1, 25.0% full",
        "network: +1, 75.0% full",
        "greedy: +0, 75.0% full",
    ]
    assert stages[0].parts.tolist() == [1, LEFT, LEFT, LEFT]
    assert stages[1].parts.tolist() == [0, LEFT, 1, LEFT]


def test_parts_are_answered_by_the_network_that_answered_the_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    points = np.random.default_rng(0).random((30, 2))
    asked: list[object] = []

    def spied(*arguments: Any, **options: Any) -> Any:
        asked.append(options["model"])
        return convex_hull(*arguments, **options)

    monkeypatch.setattr("diconet.stages.convex_hull", spied)
    first, second = hull_network(), hull_network()
    hull = convex_hull(points, model=first)
    assert isinstance(hull, Hull)
    hull.plot_levels()
    assert asked
    assert all(model is first for model in asked)
    asked.clear()
    stages_of(hull, model=second)
    assert all(model is second for model in asked)


def test_parts_of_a_tour_are_measured_as_the_tour_is() -> None:
    """Two parts; in GEO a degree of latitude is worth more than one of longitude this far north."""
    rng = np.random.default_rng(0)
    cities = rng.random((24, 2)) * [3.0, 60.0] + [80.0, 0.0]
    tree = Partitions((np.arange(24) % 2 == 1)[None])
    plain = DiCoNet(AcrossSplit(), LengthMerge(), depth=0)
    whole = Tour(1.0, tree, cities, np.arange(24), None, "GEO", model=plain)
    (leaves,) = [stage for stage in stages_of(whole) if len(stage.cycles) == 2]
    for _, rows in leaves.cycles:
        own = tsp(cities[np.sort(rows)], metric="GEO", model=plain)
        assert isinstance(own, Tour)
        assert np.array_equal(np.sort(rows)[own.tour], rows)
        flat = tsp(cities[np.sort(rows)], model=plain)
        assert isinstance(flat, Tour)
        assert not np.array_equal(flat.tour, own.tour)
