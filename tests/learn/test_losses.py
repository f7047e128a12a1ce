from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor

from diconet.core.noise import seeds_from
from diconet.core.sets import SetBatch
from diconet.core.tree import Cut, Growth, PartitionTree, grow
from diconet.learn.estimators import advantage, normalised, policy_gradient, split_variance
from diconet.nets.set_split import SetSplit


def test_advantage_by_hand() -> None:
    """Scores 1, 2, 6 of one input: less the mean of the two others."""
    got = advantage(torch.tensor([1.0, 2.0, 6.0, 5.0, 5.0, 5.0]), 3)
    assert got.tolist() == pytest.approx([1 - 4, 2 - 3.5, 6 - 1.5, 0, 0, 0])
    assert advantage(torch.tensor([1.0, 2.0]), 1).tolist() == [1, 2]


def _depth_two_score(leaves: Tensor) -> Tensor:
    """An arbitrary score of a partition of four items."""
    return (leaves.float() * torch.tensor([1.0, -2.0, 0.5, 3.0])).sum().sin() + leaves.max()


class Recorded:
    """A split whose coins are told instead of tossed; it keeps the network's probabilities."""

    def __init__(self, split: SetSplit, coins: dict[tuple[int, ...], tuple[int, ...]]) -> None:
        self.split, self.coins = split, coins

    def __call__(self, sets: SetBatch, seeds: Tensor | None) -> Cut:
        cut = self.split(sets, None)
        rows = sets.unpack(sets.index)
        side = torch.tensor([c for r in rows for c in self.coins[tuple(r.tolist())]]).bool()
        p = torch.where(side, cut.prob, 1 - cut.prob)
        return Cut(side, sets.sum(p.log()), cut.prob)


def _all_trees(split: SetSplit, sets: SetBatch) -> list[PartitionTree]:
    """Every outcome of all coins of a tree of depth two on one set."""
    rows = tuple(range(sets.num_items))
    trees = []
    for root in itertools.product((0, 1), repeat=len(rows)):
        sides = [tuple(r for r in rows if root[r] == s) for s in (0, 1)]
        tossed = [side for side in sides if len(side) > 1]
        for coins in itertools.product(*(itertools.product((0, 1), repeat=len(s)) for s in tossed)):
            told = {rows: root, **dict(zip(tossed, coins, strict=True))}
            if len(tossed) == 1 and tossed[0] == rows:
                continue  # root and child are the same set; handled by `both` below
            trees.append(grow(Recorded(split, told), sets, Growth(depth=2)))
    for root in ((0,) * len(rows), (1,) * len(rows)):
        for child in itertools.product((0, 1), repeat=len(rows)):
            trees.append(grow(_InTurn(split, [root, child]), sets, Growth(depth=2)))
    return trees


class _InTurn:
    """Like `Recorded`, with one list of coins a level."""

    def __init__(self, split: SetSplit, coins: list[tuple[int, ...]]) -> None:
        self.split, self.coins = split, list(coins)

    def __call__(self, sets: SetBatch, seeds: Tensor | None) -> Cut:
        side = torch.tensor(self.coins.pop(0)).bool()
        prob = self.split(sets, None).prob
        return Cut(side, sets.sum(torch.where(side, prob, 1 - prob).log()), prob)


@pytest.fixture
def small_split() -> SetSplit:
    torch.manual_seed(2)
    split = SetSplit(2, width=4, num_layers=2)
    with torch.no_grad():
        split.head.weight.mul_(4)
    return split


def test_probabilities_of_all_trees_sum_to_one(small_split: SetSplit) -> None:
    sets = SetBatch.pack(torch.rand(4, 2), torch.tensor([4]))
    total = sum(tree.log_prob.exp() for tree in _all_trees(small_split, sets))
    assert total.item() == pytest.approx(1.0, abs=1e-5)


def test_policy_gradient_is_the_gradient_of_the_exact_expectation(small_split: SetSplit) -> None:
    """REINFORCE over many sampled trees against the sum over all of them."""
    sets = SetBatch.pack(
        torch.rand(4, 2, generator=torch.Generator().manual_seed(5)), torch.tensor([4])
    )
    parameters = [small_split.head.weight, small_split.own[0].weight]
    expected_score = sum(
        tree.log_prob.exp().squeeze() * _depth_two_score(tree.leaves)
        for tree in _all_trees(small_split, sets)
    )
    exact = torch.autograd.grad(-expected_score, parameters)

    samples = 60_000
    many = sets.repeat(samples)
    seeds = seeds_from(torch.Generator().manual_seed(0), samples)
    tree = grow(small_split, many, Growth(depth=2), seeds)
    score = torch.stack([_depth_two_score(x) for x in tree.leaves.reshape(-1, 4)])
    assert score.mean().item() == pytest.approx(expected_score.item(), abs=0.02)
    estimates = torch.autograd.grad(policy_gradient(tree.log_prob, score, samples), parameters)
    for estimate, truth in zip(estimates, exact, strict=True):
        error = (estimate - truth).norm() / truth.norm()
        assert error < 0.05


def test_leave_one_out_keeps_the_gradient_unbiased(small_split: SetSplit) -> None:
    """Groups of two, many of them: the mean is the gradient that one big group gives."""
    sets = SetBatch.pack(torch.rand(4, 2), torch.tensor([4])).repeat(40_000)
    seeds = seeds_from(torch.Generator().manual_seed(1), 40_000)
    tree = grow(small_split, sets, Growth(depth=1), seeds)
    score = torch.stack([_depth_two_score(x) for x in tree.leaves.reshape(-1, 4)])
    by_two, by_all = (
        torch.autograd.grad(
            policy_gradient(tree.log_prob, score, group), small_split.head.weight, retain_graph=True
        )[0]
        for group in (2, 40_000)
    )
    assert (by_two - by_all).norm() / by_all.norm() < 0.1


def test_split_variance_by_hand() -> None:
    """p = 0, 1 has variance 1/4; p = 0.2, 0.4 has 0.01; the mean over the two nodes."""
    sets = SetBatch.pack(torch.rand(4, 1), torch.tensor([2, 2]))

    def told(nodes: SetBatch, seeds: Tensor | None) -> Cut:
        prob = torch.tensor([0.0, 1.0, 0.2, 0.4])
        return Cut(prob > 0.5, torch.zeros(2), prob)

    tree = grow(told, sets, Growth(depth=1))
    assert split_variance(tree).item() == pytest.approx((0.25 + 0.01) / 2)


def test_normalised_advantages_have_spread_one_at_any_scale() -> None:
    score = torch.tensor([1.0, 2.0, 5.0, 9.0])
    for scale in (1e-3, 1.0, 1e6):
        gain = normalised(advantage(scale * score, 2), scale * score)
        assert gain.square().mean().sqrt().item() == pytest.approx(1, rel=1e-5)
        assert gain.sign().tolist() == [-1, 1, -1, 1]


def test_rounding_is_not_taken_for_a_difference() -> None:
    score = torch.tensor([1.0, 1.0 + 1e-7, 3.0, 3.0])
    assert normalised(advantage(score, 2), score).abs().max() < 0.05
    assert normalised(advantage(torch.ones(4), 2), torch.ones(4)).tolist() == [0, 0, 0, 0]
