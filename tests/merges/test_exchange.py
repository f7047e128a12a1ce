from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from diconet.clusters import cost_of, move_gains
from diconet.merges.exchange import ExchangeMerge, exchanged
from diconet.merges.exchange_kernels import gains, losses
from diconet.sets import SetBatch
from diconet.splits import MedianSplit, RandomSplit
from diconet.splits.graph import GraphSplit
from diconet.tree import Growth, fold, grow


def scattered(*sizes: int, features: int = 2, seed: int = 0) -> SetBatch:
    rng = torch.Generator().manual_seed(seed)
    return SetBatch.of([torch.rand(n, features, generator=rng) for n in sizes])


def labels_in(k: int, num: int, seed: int = 0) -> torch.Tensor:
    """Random labels, none of the k left out."""
    rng = torch.Generator().manual_seed(seed)
    return torch.cat([torch.arange(k), torch.randint(k, (num - k,), generator=rng)])


def groups(points: torch.Tensor, labels: torch.Tensor) -> set[tuple[float, ...]]:
    return {tuple(sorted(points[labels == c].flatten().tolist())) for c in labels.unique()}


def test_two_halves_that_have_a_wrong_count_each_are_put_right() -> None:
    """One cluster on the left, three on the right, and a tree that gives two leaves to each."""
    points = torch.tensor([[0.0], [0.1], [0.2], [0.3], [7.0], [7.1], [8.0], [8.1], [9.0], [9.1]])
    sets = SetBatch.of([points])
    labels = torch.tensor([0, 0, 1, 1, 2, 2, 3, 3, 3, 3])
    four = torch.tensor([4])
    assert groups(points, exchanged(sets, labels, four, passes=2, tries=0)) == groups(
        points, labels
    ), "moving points alone cannot change a count"
    truth = torch.tensor([0, 0, 0, 0, 1, 1, 2, 2, 3, 3])
    assert groups(points, exchanged(sets, labels, four, 2, 4)) == groups(points, truth)


def test_where_it_stops_no_point_gains_by_moving() -> None:
    sets = scattered(60, 9, 33)
    labels = torch.cat([labels_in(5, n, seed=n) for n in (60, 9, 33)])
    settled = exchanged(sets, labels, torch.tensor([5, 5, 5]), passes=1000, tries=0)
    assert move_gains(sets, labels).max() > 0.01
    assert move_gains(sets, settled)[:, :-1].max() < 1e-5


def test_what_losing_a_cluster_costs_bounds_what_it_does_cost() -> None:
    """From above: its points scatter, or join one neighbour (that by Ward's formula)."""
    sets = scattered(40, features=3)
    labels = exchanged(sets, labels_in(6, 40), torch.tensor([6]), 100, 0)
    x = sets.items.numpy()
    count = np.bincount(labels, minlength=6)
    sums = np.stack([x[labels == c].sum(0) for c in range(6)]).astype(np.float64)
    loss, elsewhere = np.empty(6), np.empty(40, np.int64)
    losses(x, labels.numpy(), sums, count, loss, elsewhere)
    before = cost_of(sets, labels)
    for c in range(6):
        gone = torch.where(labels == c, torch.from_numpy(elsewhere), labels)
        whole = [torch.where(labels == c, other, labels) for other in range(6) if other != c]
        costs = [(cost_of(sets, new) - before).item() for new in (gone, *whole)]
        assert c not in gone
        assert min(costs) - 1e-4 <= loss[c] <= min(costs[1:]) + 1e-4


def test_what_cutting_a_cluster_gains_is_what_its_halves_save() -> None:
    sets = scattered(50, features=3)
    labels = labels_in(4, 50)
    gain, half = np.zeros(4), np.zeros(50, np.bool_)
    gains(sets.items.numpy(), labels.numpy(), np.ones(4, np.bool_), gain, half)
    for c in range(4):
        mine = torch.from_numpy(half) & (labels == c)
        saved = cost_of(sets, labels) - cost_of(sets, torch.where(mine, 4, labels))
        assert gain[c] == pytest.approx(saved.item(), rel=1e-3)


def test_the_halves_of_a_cluster_on_a_line_are_the_best_there_are() -> None:
    line = torch.rand(30, 1, generator=torch.Generator().manual_seed(2)).sort(0).values
    sets = SetBatch.of([line])
    gain, half = np.zeros(1), np.zeros(30, np.bool_)
    gains(line.numpy(), np.zeros(30, np.int64), np.ones(1, np.bool_), gain, half)
    every = torch.stack([cost_of(sets, (torch.arange(30) >= c).long())[0] for c in range(1, 30)])
    assert cost_of(sets, torch.from_numpy(half).long()).item() == pytest.approx(every.min().item())


@settings(max_examples=40, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 14), min_size=1, max_size=3),
    decimals=st.integers(0, 2),
    tries=st.integers(0, 6),
    data=st.data(),
)
def test_never_costs_more_and_never_empties_a_cluster(
    sizes: list[int], decimals: int, tries: int, data: st.DataObject
) -> None:
    sets = scattered(*sizes, seed=sum(sizes))
    sets = sets.with_items(sets.items.round(decimals=decimals))
    counts = [data.draw(st.integers(1, n)) for n in sizes]
    labels = torch.cat([labels_in(k, n, seed=n) for k, n in zip(counts, sizes, strict=True)])
    better = exchanged(sets, labels, torch.tensor(counts), passes=3, tries=tries)
    assert (cost_of(sets, better) <= cost_of(sets, labels) + 1e-5).all()
    for k, found in zip(counts, sets.unpack(better), strict=True):
        assert found.unique().tolist() == list(range(k))


def test_a_set_is_merged_the_same_alone_or_in_a_batch() -> None:
    sets = scattered(40, 25, 64)
    tree = grow(RandomSplit(), sets, Growth(depth=3), torch.tensor([1, 2, 3]))
    together = fold(ExchangeMerge(), tree)
    alone = grow(RandomSplit(), scattered(40, 25), Growth(depth=3), torch.tensor([1, 2]))
    second = sets.unpack(together.leaves)[1]
    assert second.tolist() == fold(ExchangeMerge(), alone).leaves[40:].tolist()
    assert together.counts.tolist() == [8, 8, 8]


def test_every_level_only_touches_its_own_nodes() -> None:
    """Two far-apart halves: whatever is exchanged, no cluster has points of both."""
    points = torch.cat([torch.rand(30, 2), torch.rand(30, 2) + 1000])
    sets = SetBatch.of([points])
    tree = grow(MedianSplit(), sets, Growth(depth=3))
    merged = fold(ExchangeMerge(), tree)
    left, right = merged.leaves[:30].unique().tolist(), merged.leaves[30:].unique().tolist()
    assert not set(left) & set(right)
    assert cost_of(sets, merged.leaves) < cost_of(sets, tree.leaves)


def test_a_leaf_that_got_no_points_becomes_a_cluster() -> None:
    """Everything to one side, twice: of three leaves two are empty, and filled in the end."""
    sets = scattered(24)
    split = GraphSplit(2, width=4, num_layers=1)
    split.net.head.weight.data.zero_()
    split.net.head.bias.data.fill_(9.0)
    tree = grow(split, sets, Growth(depth=2))
    assert tree.leaves.unique().tolist() == [0]
    assert fold(ExchangeMerge(), tree).leaves.unique().tolist() == [0, 1, 2]


def test_refuses_fewer_than_no_tries() -> None:
    with pytest.raises(ValueError, match="tries must be at least 0; got -1"):
        ExchangeMerge(tries=-1)
    ExchangeMerge(passes=0, tries=0)
