from __future__ import annotations

import numpy as np
import torch

from diconet.core.coin import RandomSplit
from diconet.core.noise import seeds_from
from diconet.core.sets import SetBatch
from diconet.core.tree import Growth, grow
from diconet.plot.stages import chosen_levels, stable_parts
from diconet.problems.solution import Partitions


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
