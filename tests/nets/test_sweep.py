from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from diconet.core.sets import SetBatch
from diconet.core.tree import Growth, fold, grow
from diconet.nets.sweep import SweepSplit
from diconet.nets.sweep_candidates import candidates_of, sides_of
from diconet.problems.kmeans.exchange import ExchangeMerge
from diconet.problems.kmeans.task import cost_of


def budgeted(points: list[torch.Tensor], leaves: list[int]) -> SetBatch:
    return SetBatch.of(points, torch.tensor(leaves, dtype=torch.float32)[:, None])


def clouds(*sizes: int, features: int = 2, seed: int = 0) -> list[torch.Tensor]:
    rng = torch.Generator().manual_seed(seed)
    return [torch.rand(n, features, generator=rng) for n in sizes]


@pytest.mark.parametrize("features", [1, 2, 5])
def test_cost_of_every_candidate_is_that_of_its_two_sides(features: int) -> None:
    sets = SetBatch.of(clouds(9, 2, 13, features=features))
    cuts = candidates_of(sets, torch.full((3,), 2.0))
    first = torch.cat([torch.zeros(1, dtype=torch.long), cuts.sizes.cumsum(0)[:-1]])
    for step in range(0, int(cuts.sizes.min()), 3):
        chosen = first + step
        side = sides_of(sets, cuts, chosen)
        assert (sets.sum((~side).float()).long() == cuts.position[chosen]).all()
        torch.testing.assert_close(
            cuts.cost[chosen].sum(1), cost_of(sets, side.long()), atol=1e-5, rtol=1e-4
        )


def test_every_position_of_a_small_set_is_a_candidate_and_widest_gaps_of_a_large_one() -> None:
    line = torch.cat([torch.linspace(0, 1, 30), torch.linspace(5, 6, 30)])[:, None]
    sets = SetBatch.of([line])
    small = candidates_of(sets, torch.tensor([2.0]), max_positions=64)
    assert small.position[small.direction == 0].tolist() == list(range(1, 60))
    large = candidates_of(sets, torch.tensor([2.0]), max_positions=7)
    at = large.position[large.direction == 0]
    assert len(at) == 7
    assert 30 in at.tolist()


def test_features_know_nothing_of_shift_scale_and_order() -> None:
    """The candidates of a direction come sorted along it, whichever way it points."""
    (points,) = clouds(40)
    order = torch.randperm(40, generator=torch.Generator().manual_seed(1))

    def seen(points: torch.Tensor) -> list[list[float]]:
        cuts = candidates_of(SetBatch.of([points]), torch.tensor([4.0]), max_positions=39)
        return sorted(cuts.features(slice(None)).tolist())

    one = torch.tensor(seen(points))
    for other in (points * 64 + 64, points[order], -points):
        torch.testing.assert_close(torch.tensor(seen(other)), one, atol=2e-2, rtol=2e-2)


def test_a_set_is_cut_the_same_alone_or_in_a_batch() -> None:
    points = clouds(30, 8, 50)
    torch.manual_seed(0)
    split = SweepSplit()
    together = split(budgeted(points, [4, 3, 9]), torch.tensor([5, 6, 7]))
    alone = split(budgeted(points[1:2], [3]), torch.tensor([6]))
    assert together.side[30:38].tolist() == alone.side.tolist()
    assert together.contexts is not None
    assert alone.contexts is not None
    assert together.contexts[1].tolist() == alone.contexts[0].tolist()


@settings(max_examples=30, deadline=None)
@given(data=st.data(), share=st.sampled_from(["learned", "halved", "proportional"]))
def test_k_leaves_none_empty_whatever_the_points(data: st.DataObject, share: str) -> None:
    sizes = data.draw(st.lists(st.integers(1, 12), min_size=1, max_size=3))
    leaves = [data.draw(st.integers(1, n)) for n in sizes]
    coarse = [points.round(decimals=data.draw(st.integers(0, 2))) for points in clouds(*sizes)]
    sets = budgeted(coarse, leaves)
    seeds = data.draw(st.sampled_from([None, torch.arange(len(sizes))]))
    split = SweepSplit(share=share)  # type: ignore[arg-type]
    tree = grow(split, sets, Growth(), seeds, closed=sets.context[:, 0] <= 1)
    for found in (tree.leaves, fold(ExchangeMerge(), tree).leaves):
        for k, labels in zip(leaves, sets.unpack(found), strict=True):
            assert labels.unique().tolist() == list(range(k))


def test_drawing_follows_the_probabilities() -> None:
    """20,000 draws of one set of 3 points: each of the candidate cuts as often as it should be."""
    torch.manual_seed(0)
    split = SweepSplit()
    split.cost_weights.data *= 0.1
    sets = SetBatch.of(clouds(3))
    cut = split(sets, torch.arange(20_000))
    by_prob = torch.softmax(split.logits(split.candidates(sets)), 0)
    assert cut.log_prob.exp().mean().item() == pytest.approx(
        by_prob.square().sum().item(), abs=0.01
    )


def test_untrained_it_takes_the_cheapest_cut() -> None:
    sets = SetBatch.of(clouds(25, 40))
    split = SweepSplit()
    side = split(sets, None).side
    cuts = split.candidates(sets)
    cheapest = torch.stack([cuts.cost.sum(1)[cuts.owner == s].min() for s in range(2)])
    torch.testing.assert_close(cost_of(sets, side.long()), cheapest, atol=1e-5, rtol=1e-4)


def test_refuses_too_few_positions() -> None:
    with pytest.raises(ValueError, match="max_positions must be at least 2; got 1"):
        SweepSplit(max_positions=1)


def test_cuts_a_set_whose_budget_is_spent_in_two() -> None:
    cut = SweepSplit(share="halved")(budgeted(clouds(6, 2), [1, 1]), None)
    assert cut.contexts is not None
    assert cut.contexts[:, :, 0].tolist() == [[1, 1], [1, 1]]
