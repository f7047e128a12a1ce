"""One cut per node: what may be cut where, how likely it is, and what it is judged by."""

from __future__ import annotations

import pytest
import torch

from diconet.core.noise import seeds_from
from diconet.core.relations import Relations
from diconet.core.sets import SetBatch
from diconet.nets import one_cut
from diconet.nets.one_cut import OneCutSplit, _Sweeps

NET = {"num_features": 2, "width": 8, "num_layers": 1}


def _split(**options) -> OneCutSplit:
    torch.manual_seed(0)
    return OneCutSplit(**{**NET, **options})


def test_draws_have_the_probabilities_they_say():
    split, times = _split(along=(0,)), 4_000
    sets = SetBatch.of([torch.tensor([[3.0, 0], [1, 1], [2, 5], [7, 2]])])
    seeds = seeds_from(torch.Generator().manual_seed(0), times)
    with torch.no_grad():
        cut = split(sets.repeat(times), seeds)
    sides = cut.side.reshape(times, 4)
    seen, which, counts = sides.unique(dim=0, return_inverse=True, return_counts=True)
    assert len(seen) == 3  # sorted 1 2 3 7: three places to cut
    chance = cut.log_prob.exp()
    total = 0.0
    for number, often in enumerate(counts.tolist()):
        mine = chance[which == number]
        assert mine.max().item() == pytest.approx(mine.min().item(), rel=1e-4)
        assert often / times == pytest.approx(mine[0].item(), abs=0.03)
        total += mine[0].item()
    assert total == pytest.approx(1, abs=1e-4)


def test_both_sides_get_something_and_lie_side_by_side():
    split = _split()
    sets = SetBatch.of([torch.randn(9, 2), torch.randn(2, 2), torch.randn(1, 2)])
    cut = split(sets, torch.tensor([1, 2, 3]))
    second = sets.sum(cut.side.float())
    assert (second[:2] > 0).all()
    assert (second[:2] < sets.sizes[:2]).all()
    assert second[2] == 0  # nothing to cut
    assert cut.log_prob[2] == 0


def test_a_sequence_is_cut_into_runs():
    split = _split(ordered=True)
    sets = SetBatch.of([torch.randn(7, 2)])
    side = split(sets, torch.tensor([5])).side.int()
    assert (side.diff() >= 0).all()


def test_many_cuts_are_drawn_from_one_look():
    split = _split(along=(1,))
    sets = SetBatch.of([torch.randn(5, 2), torch.randn(4, 2)])
    seeds = torch.arange(6)
    many, single = split(sets, seeds), split(sets.repeat(3), seeds)
    assert torch.equal(many.side, single.side)
    assert torch.allclose(many.log_prob, single.log_prob, atol=1e-5)


@pytest.mark.parametrize("symmetric", [True, False])
def test_edges_across_each_cut_are_counted(symmetric):
    """A chain 0-1-2-3 along the first feature: each cut crosses one of three edges.

    Told both ways round, it crosses two of six; told backwards, one of three all the same.
    """
    chain = Relations.of([torch.tensor([[1, 0], [2, 1], [3, 2]])], symmetric=symmetric)
    sets = SetBatch.of([torch.arange(4.0)[:, None].expand(4, 2).contiguous()], relations=chain)
    sweeps = _Sweeps.of(sets, sets.items[:, :1].double())
    share = torch.tensor([0.25, 0.5, 0.75], dtype=torch.float64)
    expected = 1 / (3 * 2 * share * (1 - share)) - 1
    assert torch.allclose(sweeps._crossing(share), expected)


def test_large_sets_are_judged_one_direction_after_the_other_with_the_same_result(monkeypatch):
    ring = Relations.of([torch.stack([torch.arange(9), (torch.arange(9) + 1) % 9], 1)])
    sets = SetBatch.of(
        [torch.randn(9, 2, generator=torch.Generator().manual_seed(0))], relations=ring
    )
    split, seeds = _split(edge_features=0), torch.tensor([3])
    at_once = split(sets, seeds)
    monkeypatch.setattr(one_cut, "_AT_ONCE", 1)
    one_by_one = split(sets, seeds)
    assert torch.equal(at_once.side, one_by_one.side)
    assert torch.allclose(at_once.log_prob, one_by_one.log_prob, atol=1e-6)


def test_a_cut_of_a_sequence_sees_the_best_cuts_before_and_after_it():
    sets = SetBatch.of([torch.randn(5, 2), torch.randn(1, 2), torch.randn(3, 2)])
    sweeps = _Sweeps.of(sets, sets.position[:, None].double())
    views = torch.tensor([[1.0], [4.0], [-2.0], [3.0], [7.0], [5.0]])  # 4, 0 and 2 places to cut
    rivals = one_cut._rivals(views, sweeps)
    assert rivals[:, 0].tolist() == [0, 1, 4, 4, 0, 7]
    assert rivals[:, 1].tolist() == [4, 3, 3, 0, 5, 0]
