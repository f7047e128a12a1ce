from __future__ import annotations

import math

import torch

from diconet.core.noise import seeds_from
from diconet.core.sets import SetBatch
from diconet.nets.axes import Aligned, in_own_axes
from diconet.nets.classic import MedianSplit
from diconet.nets.set_split import SetSplit


def turned(points: torch.Tensor, angle: float) -> torch.Tensor:
    cos, sin = math.cos(angle), math.sin(angle)
    return points @ torch.tensor([[cos, sin], [-sin, cos]], dtype=points.dtype)


def test_a_long_set_lies_along_x_with_mean_zero_and_spread_one(rng: torch.Generator) -> None:
    long = torch.randn(200, 2, generator=rng, dtype=torch.float64) * torch.tensor([5.0, 1.0])
    x = in_own_axes(SetBatch.of([turned(long, 1.0) + 7]))
    covariance = x.T @ x / len(x)
    torch.testing.assert_close(x.mean(0), torch.zeros(2, dtype=torch.float64))
    assert covariance[0, 0] > 10 * covariance[1, 1]
    assert abs(float(covariance[0, 1])) < 1e-12
    assert float(covariance.trace()) / 2 == 1 or abs(float(covariance.trace()) / 2 - 1) < 1e-12


def test_a_median_cut_goes_across_the_long_side(rng: torch.Generator) -> None:
    """Two far-apart halves along a tilted line: the cut must fall between them."""
    along = torch.cat([torch.zeros(10), torch.full((10,), 8.0)])
    points = torch.stack([along, torch.zeros(20)], 1) + torch.rand(20, 2, generator=rng)
    cut = Aligned(MedianSplit())(SetBatch.of([turned(points, 0.8)]), None)
    assert len(set(cut.side[:10].tolist())) == 1
    assert cut.side[0] != cut.side[-1]


def test_cuts_move_and_grow_with_the_set(rng: torch.Generator) -> None:
    torch.manual_seed(0)
    split = Aligned(SetSplit(2))
    points = torch.randn(30, 2, generator=rng, dtype=torch.float64) * torch.tensor([3.0, 1.0])
    seeds = seeds_from(rng, 1)
    sets = SetBatch.of([points])
    moved = SetBatch.of([1000 * points + 5])
    before, after = split(sets, seeds), split(moved, seeds)
    assert before.side.equal(after.side)
    torch.testing.assert_close(before.log_prob, after.log_prob)


def test_equal_points_have_no_axes_and_do_no_harm() -> None:
    x = in_own_axes(SetBatch.of([torch.ones(3, 2)]))
    assert (x == 0).all()
