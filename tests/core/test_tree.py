from __future__ import annotations

import pytest
import torch
from torch import Tensor

from diconet.core.coin import RandomSplit
from diconet.core.noise import seeds_from
from diconet.core.sets import SetBatch
from diconet.core.tree import Cut, Growth, PartitionTree, fold, grow
from diconet.nets.classic import MedianSplit
from diconet.nets.set_split import SetSplit
from diconet.problems.hull.task import HullTask, exact
from tests.classic import exact_hull_merge, ordered_merge


def all_first(sets: SetBatch, seeds: Tensor | None) -> Cut:
    """A split that never splits."""
    return Cut(torch.zeros(sets.num_items, dtype=torch.bool), torch.zeros(len(sets)))


def messy_points(num_sets: int, rng: torch.Generator) -> SetBatch:
    """Points on a coarse grid: duplicates and collinear points everywhere, sizes 1 to 40."""
    sizes = torch.randint(1, 41, (num_sets,), generator=rng)
    items = torch.randint(0, 7, (int(sizes.sum()), 2), generator=rng).float()
    return SetBatch.pack(items, sizes)


@pytest.mark.parametrize(
    "growth",
    [Growth(depth=0), Growth(depth=3), Growth(leaf_size=4), Growth(halve_to=5.0)],
    ids=["no cut", "depth", "leaf size", "halvings"],
)
def test_exact_merge_over_random_splits_gives_the_hull(
    growth: Growth, rng: torch.Generator
) -> None:
    task = HullTask()
    sets = task.sample(500, 23, rng=rng)
    tree = grow(RandomSplit(), sets, growth, seeds_from(rng, len(sets)))
    assert exact(fold(exact_hull_merge, tree).solution, task.oracle(sets)).all()


def test_exact_merge_survives_duplicates_and_lines(rng: torch.Generator) -> None:
    """Which of two equal points is kept may differ; the corners' coordinates may not."""
    sets = messy_points(2_000, rng)
    tree = grow(RandomSplit(), sets, Growth(depth=3), seeds_from(rng, len(sets)))
    found = fold(exact_hull_merge, tree).solution
    expected = HullTask().oracle(sets)
    assert torch.equal(found.sizes, expected.sizes)
    for a, b in zip(_corners(sets, found), _corners(sets, expected), strict=True):
        assert a == b


def _corners(sets: SetBatch, cycles) -> list[set[tuple[float, ...]]]:
    corners = sets.items[cycles.rows(sets)].split(cycles.sizes.tolist())
    return [{tuple(p) for p in corner.tolist()} for corner in corners]


def test_median_split_and_ordered_merge_sort(rng: torch.Generator) -> None:
    sizes = torch.randint(1, 60, (200,), generator=rng)
    sets = SetBatch.pack(torch.rand(int(sizes.sum()), 1, generator=rng), sizes)
    tree = grow(MedianSplit(), sets, Growth(leaf_size=1))
    answer = fold(ordered_merge, tree)
    for got, given in zip(answer.sets.unpack(), sets.unpack(), strict=True):
        assert torch.equal(got, given.sort(0).values)


def test_depth_bounds_the_levels_and_leaf_size_the_nodes(rng: torch.Generator) -> None:
    sets = HullTask().sample(4, 64, rng=rng)
    assert grow(MedianSplit(), sets, Growth(depth=2)).depth == 2
    tree = grow(MedianSplit(), sets, Growth(leaf_size=5))
    assert tree.depth == 4  # 64 -> 32 -> 16 -> 8 -> 4
    assert torch.bincount(tree.leaves).tolist() == [4 * 4] * 16


def test_halvings_follow_the_size() -> None:
    """The paper's depths: 0 up to 12 points, 1 up to 25, 2 up to 50, 3 at 100, 4 at 200."""
    sizes = torch.tensor([6, 12, 13, 25, 26, 50, 100, 200])
    assert Growth(halve_to=12.5).cuts(sizes).tolist() == [0, 0, 1, 1, 2, 2, 3, 4]


def test_leaves_may_lie_at_different_depths(rng: torch.Generator) -> None:
    sets = SetBatch.of([torch.rand(3, 2, generator=rng), torch.rand(40, 2, generator=rng)])
    tree = grow(MedianSplit(), sets, Growth(halve_to=12.5))
    assert tree.levels[0].is_leaf.tolist() == [True, False]
    found = fold(exact_hull_merge, tree).solution
    assert exact(found, HullTask().oracle(sets)).all()


def test_one_sided_cuts_end_or_go_on_as_the_growth_says(rng: torch.Generator) -> None:
    sets = HullTask().sample(3, 9, rng=rng)
    endless = grow(all_first, sets, Growth(leaf_size=2))
    assert endless.depth == 1
    bounded = grow(all_first, sets, Growth(depth=3))
    assert bounded.depth == 3
    assert torch.equal(bounded.leaves, torch.zeros(27, dtype=torch.long))
    assert exact(fold(exact_hull_merge, bounded).solution, HullTask().oracle(sets)).all()


def test_a_closed_side_is_not_cut_again(rng: torch.Generator) -> None:
    def close_first(sets: SetBatch, seeds: Tensor | None) -> Cut:
        cut = MedianSplit()(sets, seeds)
        closed = torch.tensor([[True, False]]).expand(len(sets), 2)
        contexts = torch.stack([sets.context, sets.context + 1], 1)
        return Cut(cut.side, cut.log_prob, contexts=contexts, closed=closed)

    sets = SetBatch.pack(torch.rand(8, 1, generator=rng), torch.tensor([8]), torch.zeros(1, 1))
    tree = grow(close_first, sets, Growth(depth=2))
    assert tree.levels[1].is_leaf.tolist() == [True, False]
    assert tree.levels[2].sets.context.tolist() == [[1.0], [2.0]]
    assert torch.bincount(tree.leaves).tolist() == [4, 2, 2]


def test_nodes_at_is_a_partition_that_refines(rng: torch.Generator) -> None:
    sets = messy_points(30, rng)
    tree = grow(RandomSplit(), sets, Growth(depth=3), seeds_from(rng, 30))
    for depth in range(tree.depth):
        coarse, fine = tree.nodes_at(depth), tree.nodes_at(depth + 1)
        parent_of = {}
        for key, parent in zip(
            zip(sets.owner.tolist(), fine.tolist(), strict=True), coarse.tolist(), strict=True
        ):
            assert parent_of.setdefault(key, parent) == parent


def test_log_prob_of_a_tree_adds_up_its_coins() -> None:
    """Two items, fair coins: the root costs 2 log 2; whoever is together is tossed for again."""
    sets = SetBatch.pack(torch.rand(2, 1), torch.tensor([2]))
    for seed in range(8):
        tree = grow(RandomSplit(), sets, Growth(depth=2), torch.tensor([seed]))
        together = len(set(tree.nodes_at(1).tolist())) == 1
        # Alone in a node of leaf size 1, an item is not tossed for any more.
        tosses = 4 if together else 2
        assert tree.log_prob.item() == pytest.approx(-tosses * torch.log(torch.tensor(2.0)).item())


def test_a_set_gets_the_same_tree_alone_and_in_a_batch(rng: torch.Generator) -> None:
    torch.manual_seed(0)
    split = SetSplit(2)
    sets = messy_points(12, rng)
    seeds = seeds_from(rng, 12)
    together = grow(split, sets, Growth(depth=3), seeds)
    for i, items in enumerate(sets.unpack()):
        alone = grow(split, SetBatch.of([items]), Growth(depth=3), seeds[i : i + 1])
        assert torch.equal(alone.leaves, together.leaves[sets.owner == i])
        assert torch.allclose(alone.log_prob, together.log_prob[i : i + 1], atol=1e-5)


def test_seeds_decide_the_tree(rng: torch.Generator) -> None:
    sets = HullTask().sample(1, 30, rng=rng)

    def leaves(seed: int | None) -> Tensor:
        seeds = None if seed is None else torch.tensor([seed])
        torch.manual_seed(0)
        return grow(SetSplit(2), sets, Growth(depth=2), seeds).leaves

    assert torch.equal(leaves(3), leaves(3))
    assert not torch.equal(leaves(3), leaves(4))
    assert torch.equal(leaves(None), leaves(None))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"depth": -1}, r"depth must be at least 0; got -1\."),
        ({"leaf_size": 0}, r"leaf_size must be at least 1; got 0\."),
        ({"halve_to": 0.5}, r"halve_to must be at least 1; got 0\.5\."),
        ({"depth": 1, "halve_to": 2.0}, "exclude each other"),
    ],
)
def test_growth_refuses_nonsense(arguments: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Growth(**arguments)


def test_a_tree_of_empty_and_single_sets() -> None:
    sets = SetBatch.pack(torch.rand(1, 2), torch.tensor([0, 1, 0]))
    tree = grow(RandomSplit(), sets, Growth(depth=2), torch.arange(3))
    assert isinstance(tree, PartitionTree)
    assert tree.depth == 0
    assert fold(exact_hull_merge, tree).solution.sizes.tolist() == [0, 1, 0]


def test_a_tree_grows_on_sets_taken_from_a_batch_as_on_the_sets_alone() -> None:
    """Roots are where items are traced back to, wherever the sets came from before."""
    everything = SetBatch.of([torch.rand(3, 1), torch.rand(4, 1), torch.rand(5, 1)])
    for sets in (everything.take(torch.tensor([2, 0])), SetBatch.cat([everything, everything])):
        alone = SetBatch.of(sets.unpack())
        found, expected = (grow(MedianSplit(), s, Growth(depth=2)) for s in (sets, alone))
        assert torch.equal(found.leaves, expected.leaves)
        assert found.leaves.max() > 0
