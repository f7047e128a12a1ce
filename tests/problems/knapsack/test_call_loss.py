from __future__ import annotations

from collections import Counter

import pytest
import torch

from diconet.core.model import DiCoNet
from diconet.core.noise import seeds_from
from diconet.learn.batches import Batch
from diconet.learn.loop import TrainConfig
from diconet.problems.knapsack import call_loss as credit
from diconet.problems.knapsack.fill import FillSplit
from diconet.problems.knapsack.greedy import ROOM
from diconet.problems.knapsack.pack import PackMerge
from diconet.problems.knapsack.task import KnapsackTask
from tests.problems.knapsack.test_fill import LinearScores, expected_reward
from tests.problems.knapsack.test_task import knapsacks

FIVE = [(9, 5), (10, 4), (8, 4), (6, 2), (1, 1)]


def test_the_gradient_at_the_last_call_is_that_over_all_its_draw_orders(monkeypatch):
    """The first call is the likeliest one; only the second, and last, is drawn."""
    monkeypatch.setattr(credit, "drawn_call", lambda seed, num_calls: num_calls - 1)
    split = FillSplit(LinearScores(0.5, -0.4, 0.3, -0.2, 0.1), num_splits=1)
    model = DiCoNet(split, PackMerge(), depth=2)
    one = knapsacks((FIVE, 9))
    likeliest = model(one)
    last = likeliest.tree.levels[1]
    left = last.sets.take(last.inner)
    assert 1 < left.num_items < len(FIVE)  # something was taken, and something is to be decided
    expected = expected_reward(split, left.items, left.context[0, ROOM].item(), 0)
    value = one.items[likeliest.solution.rows(one), 0].sum()
    (exact,) = torch.autograd.grad(expected / value, split.network.weights)

    sets = one.repeat(2_000)
    config = TrainConfig(tree_samples=20)
    seeds = seeds_from(torch.Generator().manual_seed(3), len(sets) * 20)
    loss, _ = credit.call_loss(model, KnapsackTask(), Batch(sets, None, seeds), config)
    (found,) = torch.autograd.grad(-loss, split.network.weights)
    assert (found - exact).norm() < 0.04 * exact.norm()


def test_each_call_is_looked_at_a_quarter_as_often_as_the_next():
    seeds = seeds_from(torch.Generator().manual_seed(0), 2_000)
    drawn = Counter(credit.drawn_call(seed, 3) for seed in seeds)
    assert [drawn[call] / 2_000 for call in range(3)] == pytest.approx(
        [1 / 21, 4 / 21, 16 / 21], abs=0.03
    )
