from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from diconet.core.coin import RandomSplit
from diconet.core.sets import SetBatch
from diconet.core.tree import Cut, Growth, grow
from diconet.nets.classic import MedianSplit
from diconet.problems.kmeans.budget import SharedBudget, without_empty_side


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
    sets = SetBatch.of(
        [torch.rand(n, 1, generator=rng).round() for n in sizes],
        torch.full((len(sizes), 1), float(wanted)),
    )
    tree = grow(SharedBudget(RandomSplit()), sets, Growth(), closed=sets.context[:, 0] <= 1)
    for size, leaves in zip(sizes, sets.unpack(tree.leaves), strict=True):
        assert leaves.unique().tolist() == list(range(min(size, wanted)))


def test_leaves_go_in_proportion_to_the_points() -> None:
    sets = SetBatch.of([torch.arange(12.0)[:, None]], torch.tensor([[6.0]]))
    cut = SharedBudget(MedianSplit())(sets, None)
    assert cut.contexts is not None
    assert cut.contexts[0, :, 0].tolist() == [3, 3]
    few = Cut(torch.arange(12) >= 10, torch.zeros(1))
    cut = SharedBudget(lambda sets, seeds: few)(sets, None)
    assert cut.contexts is not None
    assert cut.contexts[0, :, 0].tolist() == [5, 1]
    assert cut.closed is not None
    assert cut.closed.tolist() == [[False, True]]


def test_bare_side_gets_the_item_likeliest_to_be_there() -> None:
    sets = SetBatch.of([torch.zeros(3, 1), torch.zeros(2, 1), torch.zeros(1, 1)])
    side = torch.tensor([False, False, False, True, True, True])
    prob = torch.tensor([0.1, 0.4, 0.2, 0.9, 0.6, 0.8])
    cut = without_empty_side(sets, Cut(side, torch.zeros(3), prob))
    assert cut.side.tolist() == [False, True, False, True, False, True]
