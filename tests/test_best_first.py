from __future__ import annotations

import heapq

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from diconet.best_first import grow_best_first, without_empty_side
from diconet.clusters import node_cost
from diconet.sets import SetBatch
from diconet.splits import MedianSplit, RandomSplit
from diconet.tree import Cut, children


def one_at_a_time(points: torch.Tensor, num_leaves: int) -> list[list[int]]:
    """The textbook: a heap of leaves, the costliest cut by its median, until there are enough."""
    whole = SetBatch.of([points])
    heap = [(-node_cost(whole).item(), 0, list(range(len(points))), node_cost(whole).item())]
    count = 1
    done: list[list[int]] = []
    while len(heap) + len(done) < num_leaves:
        _, _, rows, cost = heapq.heappop(heap)
        if len(rows) == 1:
            done.append(rows)
            continue
        some = SetBatch.of([points[rows]])
        sides = children(some, MedianSplit()(some, None))
        for number in range(2):
            side = sides.take(torch.tensor([number]))
            bounded = min(cost, node_cost(side).item())
            heapq.heappush(heap, (-bounded, count, [rows[i] for i in side.index], bounded))
            count += 1
    return sorted(sorted(rows) for _, _, rows, _ in heap) + sorted(done)


@pytest.mark.parametrize("num_leaves", [1, 2, 3, 5, 8, 13, 21])
def test_same_leaves_as_a_heap_one_at_a_time(num_leaves: int) -> None:
    points = torch.rand(40, 2, generator=torch.Generator().manual_seed(num_leaves)) ** 3
    other = torch.rand(9, 2, generator=torch.Generator().manual_seed(0))
    sets = SetBatch.of([other, points])
    tree = grow_best_first(MedianSplit(), sets, torch.tensor([2, num_leaves]), node_cost)
    leaves = sets.unpack(tree.leaves)
    found = sorted((leaves[1] == c).nonzero().squeeze(1).tolist() for c in range(num_leaves))
    assert found == sorted(one_at_a_time(points, num_leaves))
    assert len(leaves[0].unique()) == 2


@settings(max_examples=40, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    wanted=st.integers(1, 12),
    seed=st.integers(0, 99),
)
def test_as_many_leaves_as_asked_for_and_none_empty(
    sizes: list[int], wanted: int, seed: int
) -> None:
    rng = torch.Generator().manual_seed(seed)
    # rounded, so that there are duplicates
    sets = SetBatch.of([torch.rand(n, 1, generator=rng).round() for n in sizes])
    tree = grow_best_first(RandomSplit(), sets, torch.full((len(sets),), wanted), node_cost)
    for size, leaves in zip(sizes, sets.unpack(tree.leaves), strict=True):
        assert leaves.unique().tolist() == list(range(min(size, wanted)))


def test_log_prob_counts_only_the_cuts_that_stay() -> None:
    """A fair coin an item: log 1/2 for each item of each node that was cut."""
    sets = SetBatch.of([torch.rand(16, 1, generator=torch.Generator().manual_seed(1))])
    tree = grow_best_first(RandomSplit(), sets, torch.tensor([4]), node_cost, torch.tensor([5]))
    flips = sum(int(level.sets.sizes[level.inner].sum()) for level in tree.levels)
    assert sum(len(level.inner) for level in tree.levels) == 3
    assert tree.log_prob.item() == pytest.approx(flips * torch.tensor(0.5).log().item())


def test_bare_side_gets_the_item_that_leans_there_most() -> None:
    sets = SetBatch.of([torch.zeros(3, 1), torch.zeros(2, 1), torch.zeros(1, 1)])
    side = torch.tensor([False, False, False, True, True, True])
    prob = torch.tensor([0.1, 0.4, 0.2, 0.9, 0.6, 0.8])
    cut = without_empty_side(sets, Cut(side, torch.zeros(3), prob))
    assert cut.side.tolist() == [False, True, False, True, False, True]


def test_refuses_no_leaves() -> None:
    sets = SetBatch.of([torch.zeros(3, 1)])
    with pytest.raises(ValueError, match="num_leaves must be at least 1; got 0"):
        grow_best_first(MedianSplit(), sets, torch.tensor([0]), node_cost)
