from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from diconet.core.coin import coin_cut
from diconet.core.model import DiCoNet
from diconet.core.noise import seeds_from
from diconet.core.sets import SetBatch
from diconet.core.tree import Cut, Growth
from diconet.learn import (
    Batch,
    Loss,
    TrainConfig,
    branch_loss,
    label_loss,
    node_loss,
    paper_loss,
    train,
    tree_loss,
)
from diconet.learn.batches import batch_at
from diconet.nets.graph_split import GraphSplit, SoftmaxLabels
from diconet.nets.set_split import SetSplit
from diconet.nets.sweep import SweepSplit
from diconet.problems.kmeans.task import Gaussian, KMeansTask, cost_of


class Coins(nn.Module):
    """One logit per item, which is all there is to learn."""

    def __init__(self, logits: Tensor) -> None:
        super().__init__()
        self.logits = nn.Parameter(logits)

    def forward(self, sets: SetBatch, seeds: Tensor | None) -> Cut:
        return coin_cut(sets, self.logits[sets.index % len(self.logits)], seeds)


POINTS = torch.tensor([[0.0], [1.0], [4.0], [7.0]])


def gradient_of_expected_cost(logits: Tensor) -> Tensor:
    """Over all 16 ways the coins can fall."""
    logits = logits.clone().requires_grad_()
    sets = SetBatch.of([POINTS])
    total = torch.zeros(())
    for sides in itertools.product([0, 1], repeat=4):
        side = torch.tensor(sides)
        prob = torch.where(side == 1, torch.sigmoid(logits), torch.sigmoid(-logits)).prod()
        total = total + prob * cost_of(sets, side)
    (gradient,) = torch.autograd.grad(total, logits)
    return gradient


def gradient_of(loss: object, samples: int) -> tuple[Tensor, Tensor]:
    logits = torch.tensor([-0.3, 0.2, 0.1, 0.4])
    split = Coins(logits)
    config = TrainConfig(tree_samples=samples, batch_size=1)
    seeds = seeds_from(torch.Generator().manual_seed(0), samples)
    batch = Batch(SetBatch.of([POINTS]), None, seeds)
    value, _ = loss(DiCoNet(split, depth=1), KMeansTask(Gaussian(1)), batch, config)  # type: ignore[operator]
    value.backward()
    assert split.logits.grad is not None
    return split.logits.grad, gradient_of_expected_cost(logits)


def test_reinforce_over_trees_points_along_the_exact_gradient() -> None:
    found, exact = gradient_of(tree_loss, 40_000)
    # relative to the mean cost and per item: the same up to one factor
    factor = (found * exact).sum() / exact.square().sum()
    assert factor > 0
    torch.testing.assert_close(found, factor * exact, atol=0.03 * float(found.norm()), rtol=0)


class CoinsByPlace(nn.Module):
    """One logit for every place a point may lie at, whatever node it is in."""

    def __init__(self, logits: Tensor) -> None:
        super().__init__()
        self.logits = nn.Parameter(logits)

    many = True

    def forward(self, sets: SetBatch, seeds: Tensor) -> Cut:
        place = torch.searchsorted(POINTS.flatten(), sets.items.flatten().contiguous())
        return coin_cut(sets, self.logits[place], seeds)


@pytest.mark.parametrize(("root", "last"), [(20_000, 2), (20_000, 20)])
def test_branches_point_along_the_exact_gradient_of_trees_two_cuts_deep(
    root: int, last: int
) -> None:
    """Over all 256 ways the coins of both levels can fall, however the draws are shared out."""
    logits = torch.tensor([-0.3, 0.2, 0.1, 0.4])
    exact_logits = logits.clone().requires_grad_()
    sets = SetBatch.of([POINTS])
    chance = torch.stack([torch.sigmoid(-exact_logits), torch.sigmoid(exact_logits)])
    expected = torch.zeros(())
    for first in itertools.product([0, 1], repeat=4):
        for second in itertools.product([0, 1], repeat=4):
            item = torch.arange(4)
            prob = chance[list(first), item].prod() * chance[list(second), item].prod()
            leaf = 2 * torch.tensor(first) + torch.tensor(second)
            expected = expected + prob * cost_of(sets, leaf)
    (exact,) = torch.autograd.grad(expected, exact_logits)

    split = CoinsByPlace(logits)
    seeds = seeds_from(torch.Generator().manual_seed(0), root)
    value, parts = branch_loss(
        DiCoNet(split, depth=2),
        KMeansTask(Gaussian(1)),
        Batch(sets, None, seeds),
        TrainConfig(tree_samples=root, batch_size=1),
        last=last,
    )
    assert parts["score"] == pytest.approx(-expected.item(), rel=0.02)
    value.backward()
    assert split.logits.grad is not None
    found = -parts["score"] * len(POINTS) * split.logits.grad
    torch.testing.assert_close(found, exact, atol=0.05 * float(exact.norm()), rtol=0)


def test_branches_need_a_fixed_depth() -> None:
    batch = Batch(SetBatch.of([POINTS]), None, torch.zeros(2, dtype=torch.long))
    model = DiCoNet(CoinsByPlace(torch.zeros(4)), growth=Growth())
    with pytest.raises(ValueError, match="fixed depth of at least 1; got None"):
        branch_loss(model, KMeansTask(Gaussian(1)), batch, TrainConfig(tree_samples=2))


def test_exact_expectation_of_a_node_with_two_leaves() -> None:
    """log of the mean cost over all cuts, weighed by their probabilities."""
    task = KMeansTask(Gaussian(2))
    torch.manual_seed(0)
    model = DiCoNet(SweepSplit(), growth=Growth())
    model.split.cost_weights.data *= 0.05
    config = TrainConfig(batch_size=1, tree_samples=2, min_size=9, max_size=9)
    batch = batch_at(0, task, None, config)
    value, _ = node_loss(model, task, batch, config)
    cuts = model.split.candidates(batch.sets)
    prob = torch.softmax(model.split.logits(cuts), 0)
    by_hand = torch.log((prob * cuts.cost.sum(1)).sum())
    assert value.item() == pytest.approx(by_hand.item(), rel=1e-4)


def test_sampled_nodes_lower_the_cost_that_the_black_box_reports() -> None:
    """Without `cut_reward`, two-leaf nodes are sampled: same direction as the exact expectation."""

    class BlackBox:
        num_features = 2

        def sample(self, num_sets: int, set_size: int, *, rng: torch.Generator) -> SetBatch:
            return KMeansTask().sample(num_sets, set_size, rng=rng)

        def reward(self, sets: SetBatch, solution: object) -> Tensor:
            return KMeansTask().reward(sets, solution)  # type: ignore[arg-type]

    gradients = []
    for task, samples in ((KMeansTask(), 2), (BlackBox(), 4_000)):
        torch.manual_seed(0)
        model = DiCoNet(SweepSplit(), growth=Growth())
        model.split.cost_weights.data *= 0.05
        config = TrainConfig(batch_size=1, tree_samples=samples, min_size=9, max_size=9)
        sets = KMeansTask().sample(1, 9, rng=torch.Generator().manual_seed(3))
        seeds = seeds_from(torch.Generator().manual_seed(0), samples)
        value, _ = node_loss(model, task, Batch(sets, None, seeds), config)
        value.backward()
        gradients.append(model.split.cost_weights.grad)
    assert torch.cosine_similarity(*gradients, dim=0) > 0.97


def test_short_training_by_reward_alone() -> None:
    """Two far clusters: 40 steps bring the cost from a random cut's down by far more than half.

    An untrained network costs about as much as no cut at all; no seed of the ten tried came below
    three quarters of that.
    """
    task = KMeansTask(Gaussian(2), (2,))
    torch.manual_seed(0)
    model = DiCoNet(GraphSplit(2, width=16, num_layers=3), depth=1)
    test = task.sample(64, 40, rng=torch.Generator().manual_seed(7))

    def cost() -> float:
        with torch.no_grad():
            return -task.reward(test, model(test).tree).mean().item()

    untrained = cost()
    config = TrainConfig(
        steps=40, batch_size=32, tree_samples=10, min_size=40, max_size=40, split_lr=5e-3,
        split_optimiser="adam", split_clip=1.0, schedule="cosine", warmup=5,
    )  # fmt: skip
    train(model, task, config, loss=tree_loss, quiet=True)
    assert cost() < 0.3 * untrained


def test_labels_network_learns_from_reward_alone() -> None:
    task = KMeansTask(Gaussian(2), (2,))
    torch.manual_seed(0)
    model = DiCoNet(SoftmaxLabels(2, 2, width=16, num_layers=3), depth=1)
    test = task.sample(64, 40, rng=torch.Generator().manual_seed(7))
    before = cost_of(test, model.split(test)[0]).mean().item()
    config = TrainConfig(
        steps=40, batch_size=32, tree_samples=10, min_size=40, max_size=40, split_lr=5e-3,
        split_optimiser="adam", split_clip=1.0, schedule="cosine", warmup=5,
    )  # fmt: skip
    train(model, task, config, loss=label_loss, quiet=True)
    assert cost_of(test, model.split(test)[0]).mean().item() < 0.3 * before


def shard(batch: Batch, rows: Tensor) -> Batch:
    seeds = batch.seeds.reshape(len(batch.sets), -1)[rows].flatten()
    return Batch(batch.sets.take(rows).as_roots(), None, seeds, batch.step)


def uneven() -> DiCoNet:
    """Trees of as many nodes as it happens: a cut may leave a side that is not cut again."""
    return DiCoNet(SetSplit(2, activation="tanh"), growth=Growth(leaf_size=4))


@pytest.mark.parametrize(
    ("loss", "network"),
    [
        (paper_loss, uneven),
        (tree_loss, uneven),
        (branch_loss, lambda: DiCoNet(GraphSplit(2, width=8, num_layers=2), depth=2)),
        (node_loss, lambda: DiCoNet(SweepSplit(), growth=Growth())),
        (label_loss, lambda: DiCoNet(SoftmaxLabels(2, 4, width=8, num_layers=2), depth=1)),
    ],
)
def test_the_halves_of_a_batch_teach_what_the_whole_does(
    loss: Loss, network: Callable[[], DiCoNet]
) -> None:
    """What is drawn belongs to the example, and every example counts alike (so do processes)."""
    torch.manual_seed(1)
    model = network()
    task = KMeansTask(Gaussian(2), None if loss is node_loss else (4,))
    size = 100 if loss is node_loss else 40
    config = TrainConfig(
        batch_size=8,
        tree_samples=4,
        min_size=size,
        max_size=size,
        regulariser=1.0,
        normalise_advantage=False,  # its spread is that of all parts together
    )
    whole = batch_at(3, task, None, config)
    gradients = []
    for rows in (torch.arange(8), torch.arange(4), torch.arange(4, 8)):
        model.zero_grad()
        loss(model, task, shard(whole, rows), config)[0].backward()
        gradients.append([p.grad.clone() for p in model.parameters() if p.grad is not None])
    for together, first, second in zip(*gradients, strict=True):
        torch.testing.assert_close((first + second) / 2, together, rtol=1e-3, atol=1e-6)


def test_nothing_to_cut_is_nothing_to_learn() -> None:
    task = KMeansTask(Gaussian(2))
    config = TrainConfig(batch_size=3, tree_samples=2, min_size=1, max_size=1)
    batch = batch_at(0, task, None, config)
    value, parts = node_loss(DiCoNet(SweepSplit(), growth=Growth()), task, batch, config)
    assert (value.item(), parts["score"]) == (0, 0)
    assert not value.requires_grad
