from dataclasses import replace

import pytest
import torch
from torch import nn

from diconet.merges.edges import EdgeSignal
from diconet.merges.length import LengthMerge
from diconet.merges.near import NearGraph
from diconet.model import DiCoNet
from diconet.noise import seeds_from
from diconet.sets import SetBatch
from diconet.splits.across import AcrossSplit
from diconet.tasks.tsp import TspTask
from diconet.tour_reward import gaussian, tour_loss
from diconet.train import Batch, TrainConfig
from diconet.tree import Level


def test_gaussian_numbers_have_mean_zero_and_variance_one() -> None:
    drawn = gaussian(seeds_from(torch.Generator().manual_seed(0), 200_000))
    assert drawn.mean().item() == pytest.approx(0, abs=0.01)
    assert drawn.var().item() == pytest.approx(1, abs=0.02)
    assert drawn.abs().gt(1.96).float().mean().item() == pytest.approx(0.05, abs=0.003)


class Weighed(nn.Module):
    """Scores edges by a learned multiple of their length."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(()))

    def forward(self, level: Level, below: EdgeSignal | None, target: None) -> EdgeSignal:
        plain = LengthMerge(slots=6, scale=1.0)(level, below, target)
        assert plain is not None
        return replace(plain, logits=self.weight * plain.logits)


def test_it_learns_from_lengths_alone_that_short_edges_are_good() -> None:
    model = DiCoNet(AcrossSplit(), Weighed(), depth=0)
    task = TspTask()
    rng = torch.Generator().manual_seed(0)
    sets = task.sample(8, 20, rng=rng)
    config = TrainConfig(batch_size=8, tree_samples=8, min_size=20, max_size=20)
    optimiser = torch.optim.Adam(model.parameters(), 0.3)
    scores = []
    for _ in range(15):
        batch = Batch(sets, None, seeds_from(rng, 8 * 8))
        loss, parts = tour_loss(model, task, batch, config)
        scores.append(parts["score"])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert model.merge.weight.item() > 2
    assert scores[-1] > 0.8 * scores[0]  # scores are minus lengths: a fifth shorter


def test_credit_is_local() -> None:
    """Two far clusters: what noise does in one must not be held against edges of the other."""
    one = torch.rand(10, 2, generator=torch.Generator().manual_seed(0))
    sets = SetBatch.of([torch.cat([one, one + 50.0])])
    model = DiCoNet(AcrossSplit(), Free(20, 4), depth=0)
    config = TrainConfig(batch_size=1, tree_samples=4, min_size=20, max_size=20)
    both = []
    for change in (0.0, 100.0):  # the second cluster's order is pinned down by large scores
        with torch.no_grad():
            model.merge.logits.zero_()
            model.merge.logits[10:, 0] = change
        model.zero_grad()
        batch = Batch(sets, None, torch.arange(4))
        tour_loss(model, TspTask(), batch, config)[0].backward()
        both.append(model.merge.logits.grad[:10].clone())
    close = (both[0] - both[1]).abs() < 0.2 * both[0].abs().max()
    assert close.float().mean() > 0.7


class Free(nn.Module):
    """Every edge has a score of its own."""

    def __init__(self, items: int, slots: int) -> None:
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(items, slots))

    def forward(self, level: Level, below: EdgeSignal | None, target: None) -> EdgeSignal:
        return EdgeSignal(level.roots, NearGraph.of(level.sets, 4), self.logits)


def test_the_halves_of_a_batch_teach_what_the_whole_does() -> None:
    model, task = DiCoNet(AcrossSplit(), Weighed(), depth=0), TspTask()
    rng = torch.Generator().manual_seed(0)
    sets, seeds = task.sample(4, 20, rng=rng), seeds_from(rng, 4 * 8).reshape(4, 8)
    config = TrainConfig(batch_size=4, tree_samples=8, min_size=20, max_size=20)
    gradients = []
    for rows in (torch.arange(4), torch.arange(2), torch.arange(2, 4)):
        model.zero_grad()
        batch = Batch(sets.take(rows).as_roots(), None, seeds[rows].flatten())
        tour_loss(model, task, batch, config)[0].backward()
        gradients.append(model.merge.weight.grad.item())
    assert gradients[0] == pytest.approx((gradients[1] + gradients[2]) / 2, rel=1e-4)
