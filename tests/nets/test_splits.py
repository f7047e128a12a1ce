from __future__ import annotations

import pytest
import torch

from diconet.core.coin import RandomSplit
from diconet.core.noise import seeds_from
from diconet.core.sets import SetBatch
from diconet.core.tree import Growth, grow
from diconet.nets.classic import Balanced, MedianSplit
from diconet.nets.set_split import SetSplit


@pytest.fixture
def split() -> SetSplit:
    torch.manual_seed(0)
    split = SetSplit(2)
    with torch.no_grad():
        for parameter in split.parameters():
            parameter.mul_(3)
    return split


def test_permuting_the_items_permutes_the_probabilities(
    split: SetSplit, rng: torch.Generator
) -> None:
    points = torch.rand(20, 2, generator=rng)
    turn = torch.randperm(20, generator=rng)
    one, other = (split(SetBatch.of([p]), None).prob for p in (points, points[turn]))
    assert torch.allclose(one[turn], other, atol=1e-6)
    assert one.std() > 1e-3


@pytest.mark.parametrize("seed", range(8))
def test_a_fresh_split_cuts_firmly_in_some_direction(seed: int, rng: torch.Generator) -> None:
    """Coins that are all fair would leave a policy gradient nothing to begin with."""
    torch.manual_seed(seed)
    cut = SetSplit(2, activation="tanh")(SetBatch.of([torch.rand(500, 2, generator=rng)]), None)
    assert cut.prob.var() > 0.05
    assert 0.02 < cut.side.float().mean() < 0.98


def test_likelier_side_without_seeds_and_coins_with(split: SetSplit, rng: torch.Generator) -> None:
    sets = SetBatch.of([torch.rand(5, 2, generator=rng)])
    cut = split(sets, None)
    assert torch.equal(cut.side, cut.prob > 0.5)
    many = sets.repeat(20_000)
    drawn = split(many, seeds_from(rng, 20_000)).side.reshape(-1, 5).float().mean(0)
    assert torch.allclose(drawn, cut.prob, atol=0.02)


def test_log_prob_is_that_of_the_coins(split: SetSplit, rng: torch.Generator) -> None:
    sets = SetBatch.of([torch.rand(3, 2, generator=rng), torch.rand(2, 2, generator=rng)])
    cut = split(sets, torch.tensor([1, 2]))
    chosen = torch.where(cut.side, cut.prob, 1 - cut.prob)
    by_hand = [chosen[:3].log().sum().item(), chosen[3:].log().sum().item()]
    assert cut.log_prob.tolist() == pytest.approx(by_hand, rel=1e-4)


def test_shift_and_scale_reach_the_network_only_as_mean_and_variance(
    split: SetSplit, rng: torch.Generator
) -> None:
    """With the first shared layer off, a node and its moved, stretched copy look the same."""
    with torch.no_grad():
        split.shared[0].weight.zero_()
    points = torch.rand(9, 2, generator=rng)
    a, b = (split(SetBatch.of([p]), None).prob for p in (points, 50 * points - 7))
    assert torch.allclose(a, b, atol=1e-4)


def test_balanced_keeps_both_sides_filled_and_moves_the_likeliest(rng: torch.Generator) -> None:
    torch.manual_seed(0)
    inner = SetSplit(2)
    with torch.no_grad():
        inner.head.bias.fill_(50.0)  # everything to the second side
    points = torch.rand(20, 2, generator=rng)
    cut = Balanced(inner, share=0.25)(SetBatch.of([points]), None)
    assert int((~cut.side).sum()) == 5
    assert cut.prob[~cut.side].max() <= cut.prob[cut.side].min()
    fine = Balanced(MedianSplit(), share=0.25)(SetBatch.of([points]), None)
    assert torch.equal(fine.side, MedianSplit()(SetBatch.of([points]), None).side)


def test_balanced_trees_are_shallow(rng: torch.Generator) -> None:
    torch.manual_seed(0)
    tree = grow(
        Balanced(SetSplit(2)),
        SetBatch.of([torch.rand(4_000, 2, generator=rng)]),
        Growth(leaf_size=8),
    )
    assert torch.bincount(tree.leaves).max() <= 8
    assert tree.depth <= 22  # log(4000 / 8) / log(4 / 3)


def test_median_halves_by_rank() -> None:
    sets = SetBatch.of([torch.tensor([[3.0], [1.0], [2.0]]), torch.tensor([[5.0], [5.0]])])
    assert MedianSplit()(sets, None).side.tolist() == [True, False, True, False, True]


def test_random_split_is_fair(rng: torch.Generator) -> None:
    sets = SetBatch.of([torch.rand(20_000, 1)])
    assert abs(RandomSplit()(sets, torch.tensor([3])).side.float().mean() - 0.5) < 0.02


@pytest.mark.parametrize("share", [0.0, 0.6])
def test_balanced_refuses_impossible_shares(share: float) -> None:
    with pytest.raises(ValueError, match=rf"share must be above 0 and at most 0\.5; got {share}"):
        Balanced(MedianSplit(), share=share)
