from __future__ import annotations

import numpy as np
import torch

import diconet
from diconet.core.coin import RandomSplit
from diconet.core.noise import seeds_from
from diconet.core.sets import SetBatch
from diconet.core.tree import Growth, grow
from diconet.problems.solution import Partitions, labels_of


def test_partitions_are_those_of_the_tree(rng: torch.Generator) -> None:
    sets = SetBatch.of([torch.rand(n, 2, generator=rng) for n in (1, 9, 30)])
    tree = grow(RandomSplit(), sets, Growth(leaf_size=2), seeds_from(rng, 3))
    found = labels_of(tree)
    assert [len(example) for example in found] == [tree.depth + 1] * 3
    for depth in range(tree.depth + 1):
        expected = tree.nodes_at(depth).split(sets.sizes.tolist())
        for example, labels in zip(found, expected, strict=True):
            np.testing.assert_array_equal(example[depth], labels.numpy())


def test_partitions_count_from_the_end_and_slice_like_a_list() -> None:
    tree = Partitions(np.array([[0, 0, 1], [0, 1, 0]], dtype=bool))
    assert [labels.tolist() for labels in tree] == [[0, 0, 0], [0, 0, 1], [0, 1, 2]]
    np.testing.assert_array_equal(tree[-1], tree[2])
    assert len(tree[1:]) == 2


def test_very_deep_trees_do_not_overflow() -> None:
    """Item i leaves the long branch at cut i: 101 leaves, the last two at the very bottom."""
    sides = np.tri(101, 100, k=-1, dtype=bool).T
    assert sorted(Partitions(sides)[-1].tolist()) == list(range(101))


def test_items_may_share_the_way_down() -> None:
    tree = Partitions(np.array([[0, 1]], dtype=bool)).of_items(np.array([1, 1, 0]))
    assert tree[1].tolist() == [1, 1, 0]


def test_a_tree_shows_the_sizes_of_its_parts() -> None:
    tree = Partitions(np.array([[0, 0, 1], [0, 1, 0]], dtype=bool))
    assert repr(tree).splitlines() == [
        "root     1 part: 3",
        "level 1  2 parts: 2 1",
        "leaves   3 parts: 1 1 1",
    ]
    deep = Partitions(np.tri(101, 100, k=-1, dtype=bool).T)
    lines = repr(deep).splitlines()
    assert len(lines) == 9
    assert lines[-2] == "..."
    assert lines[-1] == f"leaves   101 parts: {' '.join(['1'] * 12)} ..."


def test_a_notebook_sees_picture_and_quality() -> None:
    for found in (
        diconet.convex_hull([[0, 0], [4, 0], [0, 4]]),
        diconet.knapsack([4, 5], [2, 3], 3),
        diconet.kmeans([[0, 0, 1], [4, 0, 1], [0, 4, 9]], 2),
    ):
        text = found._repr_html_()
        assert "data:image/png;base64,iVBOR" in text
        assert found.quality() in text
