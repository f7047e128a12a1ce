from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from diconet.core.coin import RandomSplit
from diconet.core.sets import SetBatch
from diconet.core.tree import Growth, fold, grow
from diconet.nets.classic import MedianSplit
from diconet.nets.graph_split import GraphSplit
from diconet.problems.kmeans import exchange, exchange_kernels, exchange_search
from diconet.problems.kmeans.budget import SharedBudget
from diconet.problems.kmeans.distances import find_near
from diconet.problems.kmeans.exchange import ExchangeMerge, arrays_of, exchanged
from diconet.problems.kmeans.exchange_kernels import COST, GAIN, HALF, LABEL, LOSS
from diconet.problems.kmeans.task import cost_of
from tests.compiled import from_python

add_up, sort_points = (
    from_python(exchange_kernels.add_up),
    from_python(exchange_kernels.sort_points),
)
cut_in_two, look = from_python(exchange_kernels.cut_in_two), from_python(exchange_kernels.look)
try_exchange = from_python(exchange_search.try_exchange)


def scattered(*sizes: int, features: int = 2, seed: int = 0) -> SetBatch:
    rng = torch.Generator().manual_seed(seed)
    return SetBatch.of([torch.rand(n, features, generator=rng) for n in sizes])


def labels_in(k: int, num: int, seed: int = 0) -> torch.Tensor:
    """Random labels, none of the k left out."""
    rng = torch.Generator().manual_seed(seed)
    return torch.cat([torch.arange(k), torch.randint(k, (num - k,), generator=rng)])


def groups(points: torch.Tensor, labels: torch.Tensor) -> set[tuple[float, ...]]:
    return {tuple(sorted(points[labels == c].flatten().tolist())) for c in labels.unique()}


def repaired(
    sets: SetBatch, labels: torch.Tensor, counts: list[int], **options: float
) -> torch.Tensor:
    ones = torch.ones(sets.num_items)
    merge = ExchangeMerge(**options)  # type: ignore[arg-type]
    return exchanged(sets.items, ones, sets.sizes, labels, torch.tensor(counts), merge)


def known_of(x: np.ndarray, labels: np.ndarray, k: int) -> tuple[np.ndarray, ...]:
    """What the loops know of points in clusters before they look: all clusters are near."""
    known = arrays_of(x, labels, k)
    at, start, sums, means, near, gap, *_ = known
    sort_points(at, start)
    add_up(x, np.ones(len(x), np.float32), at, start, sums, means)
    find_near(means, np.arange(k), k, near, gap)
    return known


def test_two_halves_that_have_a_wrong_count_each_are_put_right() -> None:
    """One cluster on the left, three on the right, and a tree that gives two leaves to each."""
    points = torch.tensor([[0.0], [0.1], [0.2], [0.3], [7.0], [7.1], [8.0], [8.1], [9.0], [9.1]])
    sets = SetBatch.of([points])
    labels = torch.tensor([0, 0, 1, 1, 2, 2, 3, 3, 3, 3])
    assert groups(points, repaired(sets, labels, [4], tries=0)) == groups(points, labels), (
        "moving points alone cannot change a count"
    )
    truth = torch.tensor([0, 0, 0, 0, 1, 1, 2, 2, 3, 3])
    assert groups(points, repaired(sets, labels, [4])) == groups(points, truth)


def test_weights_decide_where_a_cluster_is_worth_it() -> None:
    """Three pairs and two clusters to share out among the first two: the heavy pair is parted."""
    points = torch.tensor([[0.0], [1.0], [10.0], [11.0], [20.0], [20.0]])
    labels = torch.tensor([0, 0, 1, 2, 3, 3])
    for heavy, parted in ((0, (0, 1)), (2, (2, 3))):
        weights = torch.ones(6)
        weights[heavy : heavy + 2] = 50.0
        found = exchanged(
            points, weights, torch.tensor([6]), labels, torch.tensor([4]), ExchangeMerge()
        )
        assert found[parted[0]] != found[parted[1]]
        assert len(found.unique()) == 4


def test_what_losing_a_cluster_costs_is_what_its_points_pay_elsewhere() -> None:
    """Points that would rather be elsewhere lose nothing; they cost what the nearest mean says."""
    x = scattered(40, features=3).items.numpy()
    labels, w = labels_in(6, 40).numpy(), np.ones(40, np.float32)
    at, start, sums, means, near, _, seen, *_ = known_of(x, labels, 6)
    for c in range(6):
        look(x, w, at, start, means, near, seen, c)
        far = np.square(x[labels == c][:, None] - sums[:6, :3] / sums[:6, 3:]).sum(2)
        own, others = far[:, c], np.delete(far, c, 1).min(1)
        assert seen[COST, c] == pytest.approx(np.minimum(own, others).sum(), rel=1e-4)
        lost = np.maximum(others - own, 0).sum()
        assert seen[LOSS, c] == pytest.approx(lost, rel=1e-4, abs=1e-5)


def test_what_cutting_a_cluster_gains_is_what_its_halves_save() -> None:
    sets = scattered(50, features=3)
    labels, w = labels_in(4, 50), np.ones(50, np.float32)
    x = sets.items.numpy()
    at, start, sums, _, _, _, seen, _, y = known_of(x, labels.numpy(), 4)
    for c in range(4):
        cut_in_two(x, w, at, start, sums, seen, y, c)
        mine = torch.from_numpy(at[HALF] > 0) & (labels == c)
        saved = cost_of(sets, labels) - cost_of(sets, torch.where(mine, 4, labels))
        assert seen[GAIN, c] == pytest.approx(saved.item(), rel=1e-3)
        assert 0 < mine.sum() < (labels == c).sum()


def test_the_halves_of_two_far_heaps_are_the_heaps() -> None:
    """Of 5 and 25 points, four apart: the cut moves from their mean to where they part."""
    rng = torch.Generator().manual_seed(2)
    points = torch.rand(30, 2, generator=rng) + torch.where(torch.arange(30) < 5, 4.0, 0)[:, None]
    x = points.numpy()
    labels = np.zeros(30, np.int64)
    labels[0] = 1  # two clusters at least
    at, start, sums, _, _, _, seen, _, y = known_of(x, labels, 2)
    cut_in_two(x, np.ones(30, np.float32), at, start, sums, seen, y, 0)
    halves = at[HALF][1:] > 0
    assert len(set(halves[:4])) == len(set(halves[4:])) == 1
    assert halves[0] != halves[-1]


@pytest.mark.parametrize(("a", "b"), [(1, 3), (-1, 2), (4, -1)])
def test_what_a_try_says_is_what_it_does(a: int, b: int) -> None:
    """With everything in the region, the gain of an exchange that is made is the cost it saves."""
    sets = scattered(60, features=2)
    settled = repaired(sets, labels_in(6, 60), [6], tries=0, rounds=100)
    x, w = sets.items.numpy(), np.ones(60, np.float32)
    at, start, sums, means, near, _, seen, spare, y = known_of(x, settled.numpy(), 6)
    if b >= 0:
        cut_in_two(x, w, at, start, sums, seen, y, b)
    before = cost_of(sets, settled)
    ids, mark = spare[0], spare[1]
    least = -np.inf if a >= 0 and b >= 0 else np.inf
    how = (x, w, at, start, sums, means, near, a, b, least, ids, mark)
    gained, touched = try_exchange(*how)
    assert sorted(ids[:touched]) == list(range(6))
    after = torch.from_numpy(at[LABEL].copy())
    if least < 0:
        saved = (before - cost_of(sets, after)).item()
        assert gained == pytest.approx(saved, abs=1e-4)
        by_hand = np.stack([x[after == c].sum(0) for c in range(6)])
        assert sums[:6, :2] == pytest.approx(by_hand, abs=1e-4)
    else:
        assert (gained > 0) == (b >= 0)
        assert torch.equal(after, settled), "nothing was to be made"


def weighted_cost(x: np.ndarray, w: np.ndarray, labels: np.ndarray) -> float:
    total = 0.0
    for c in np.unique(labels):
        mine = labels == c
        mean = np.average(x[mine], axis=0, weights=w[mine]) if w[mine].sum() else 0.0
        total += float((w[mine, None] * np.square(x[mine] - mean)).sum())
    return total


@settings(max_examples=40, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 14), min_size=1, max_size=3),
    decimals=st.integers(0, 2),
    tries=st.integers(0, 6),
    heaviest=st.integers(1, 3),
    data=st.data(),
)
def test_never_costs_more_and_never_empties_a_cluster(
    sizes: list[int], decimals: int, tries: int, heaviest: int, data: st.DataObject
) -> None:
    """Weights are whole numbers from 1 on, or from 0 on where some are 3."""
    sets = scattered(*sizes, seed=sum(sizes))
    sets = sets.with_items(sets.items.round(decimals=decimals))
    counts = [data.draw(st.integers(1, n)) for n in sizes]
    labels = torch.cat([labels_in(k, n, seed=n) for k, n in zip(counts, sizes, strict=True)])
    weights = torch.arange(sets.num_items) % heaviest + (heaviest < 3)
    merge, number = ExchangeMerge(tries=tries), torch.tensor(counts)
    better = exchanged(sets.items, weights.float(), sets.sizes, labels, number, merge)
    parts = (sets.unpack(part) for part in (sets.items, weights, labels, better))
    for k, one in zip(counts, zip(*parts, strict=True), strict=True):
        x, w, before, after = (part.double().numpy() for part in one)
        assert weighted_cost(x, w, after) <= weighted_cost(x, w, before) + 1e-5
        assert np.unique(after).tolist() == list(range(k))


def test_points_settle_where_lloyd_would_leave_them() -> None:
    """Of 0, 0, 3.8 and 6, 7, the third is nearer to its own mean, and cheaper with the others.

    It is 2.53 from 1.27 and 2.7 from 6.5. Leaving saves 2.53^2 * 3/2 = 9.6, and joining the two
    costs 2.7^2 * 2/3 = 4.9. At 3, leaving would save 2^2 * 3/2 = 6 and joining cost 8.2.
    """
    sets = SetBatch.of([torch.tensor([[0.0], [0.0], [3.8], [6.0], [7.0]])])
    labels = torch.tensor([0, 0, 0, 1, 1])
    assert repaired(sets, labels, [2], tries=0).tolist() == [0, 0, 1, 1, 1]
    near = sets.with_items(torch.tensor([[0.0], [0.0], [3.0], [6.0], [7.0]]))
    assert repaired(near, labels, [2], tries=0).tolist() == labels.tolist()


@pytest.mark.parametrize("decimals", [1, 4])
def test_what_kicks_make_worse_is_not_kept(decimals: int) -> None:
    sets = scattered(*[200] * 6, seed=4)
    sets = sets.with_items(sets.items.round(decimals=decimals))
    labels, counts = labels_in(20, 200).repeat(6), torch.full((6,), 20)
    how = (sets.items, torch.ones(1_200), sets.sizes, labels, counts, ExchangeMerge())
    plain, kicked = (exchanged(*how, kicks=kicks) for kicks in (False, True))
    assert (cost_of(sets, kicked) <= cost_of(sets, plain) + 1e-5).all()
    assert cost_of(sets, kicked).sum() < 0.999 * cost_of(sets, plain).sum()
    assert torch.equal(exchanged(*how, kicks=True), kicked)
    for found in sets.unpack(kicked):
        assert found.unique().tolist() == list(range(20))


def test_kicks_go_on_for_as_long_as_they_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two where they save nothing; in space, 25 clusters of 25 points may have one more."""
    sizes, plain = [], exchange.kicked

    def counted(known: tuple[np.ndarray, ...], number: int) -> np.ndarray:
        sizes.append(number)
        return plain(known, number)

    monkeypatch.setattr(exchange, "kicked", counted)
    rng = torch.Generator().manual_seed(0)
    labels = torch.arange(25).repeat_interleave(25)
    far = 100.0 * labels[:, None] + torch.rand(625, 8, generator=rng)
    how = (torch.ones(625), torch.tensor([625]), labels, torch.tensor([25]), ExchangeMerge())
    exchanged(far, *how, kicks=True)
    assert sizes == [5, 2]
    sizes.clear()
    exchanged(torch.rand(625, 8, generator=rng), *how, kicks=True)
    assert sizes == [5, 5, 5]


@pytest.mark.parametrize("per_cluster", [3, 1_000])
def test_a_sample_serves_where_clusters_are_plain(
    per_cluster: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "_AT_LEAST", 1)
    rng = torch.Generator().manual_seed(0)
    centres = 10 * torch.arange(6.0)[:, None]
    points = (centres.repeat_interleave(50, 0) + torch.rand(300, 1, generator=rng))[
        torch.randperm(300, generator=rng)
    ]
    sets = SetBatch.of([points], torch.tensor([[6.0]]))
    tree = grow(SharedBudget(RandomSplit()), sets, Growth(), torch.tensor([1]))
    merged = fold(ExchangeMerge(sample=per_cluster), tree)
    assert (merged.sample is None) == (per_cluster == 1_000)
    if merged.sample is not None:
        assert merged.sample.sum() < 60
    assert len(groups(points.round(decimals=-1), merged.leaves)) == 6
    assert merged.leaves.unique().tolist() == list(range(6))


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
    ExchangeMerge(rounds=0, tries=0)
