"""The loss for anyone's task: what it picks, how deep trees are, and that it learns."""

from __future__ import annotations

import pytest
import torch

from diconet.core.answers import Sequences
from diconet.core.sets import SetBatch
from diconet.core.tree import Growth, PartitionTree
from diconet.learn import TrainConfig, best_of, train
from diconet.learn.general import grown_so_far, own_oracle, surprise_weight
from diconet.nets.default import network_for


class Positive:
    """Choose the items above 0: as simple as a subset can be."""

    num_features = 1
    answer = "subset"

    def sample(self, num_sets, set_size, *, rng):
        items = torch.randn(num_sets * set_size, 1, generator=rng)
        return SetBatch.pack(items, torch.full((num_sets,), set_size))

    def reward(self, sets, solution):
        return sets.mean((solution.mask(sets) == (sets.items[:, 0] > 0)).float())


class PositiveByOracle(Positive):
    def oracle(self, sets):
        return Sequences.where(sets, sets.items[:, 0] > 0)


def _config(steps: int) -> TrainConfig:
    return TrainConfig(steps=steps, batch_size=16, tree_samples=4, min_size=6, max_size=10)


@pytest.mark.parametrize("task", [Positive(), PositiveByOracle()])
def test_a_subset_is_learned_from_reward_or_oracle(task):
    torch.manual_seed(0)
    model = network_for(task, width=16, num_layers=2)
    sets = task.sample(50, 9, rng=torch.Generator().manual_seed(1))
    train(model, task, _config(60), quiet=True)
    with torch.no_grad():
        assert task.reward(sets, model(sets).solution).mean() > 0.9


def test_the_best_of_several_draws_is_no_worse_than_one():
    torch.manual_seed(0)
    task = Positive()
    model = network_for(task, width=8, num_layers=1)
    sets = task.sample(20, 9, rng=torch.Generator().manual_seed(1))
    one = task.reward(sets, best_of(model, task, sets, 1).solution)
    many = task.reward(sets, best_of(model, task, sets, 16).solution)
    assert (many.mean() > one.mean()).item()
    assert torch.equal(many, task.reward(sets, best_of(model, task, sets, 16).solution))


def test_trees_begin_with_one_cut_and_grow():
    depths = [grown_so_far(Growth(depth=4), share).depth for share in (0, 0.15, 0.25, 0.35, 1)]
    assert depths == [1, 2, 3, 4, 4]
    assert grown_so_far(Growth(depth=1), 0.0).depth == 1
    assert grown_so_far(Growth(halve_to=8), 0.0) == Growth(halve_to=8)


def test_an_oracle_is_used_only_where_a_merge_can_learn_from_it():
    task = PositiveByOracle()
    assert own_oracle(network_for(task), task) == task.oracle

    class Cut(PositiveByOracle):
        answer = "partition"

    assert own_oracle(network_for(Cut()), Cut()) is None


def test_an_unknown_kind_of_answer_is_refused():
    class Odd(Positive):
        answer = "poem"

    with pytest.raises(ValueError, match="answer must be one of partition, subset, order, path"):
        network_for(Odd())


def test_a_partition_needs_no_merge():
    class Halves(Positive):
        answer = "partition"
        num_parts = 4

        def reward(self, sets, solution: PartitionTree):
            return sets.mean((solution.leaves == 0).float())

    model = network_for(Halves())
    assert model.merge is None
    assert model.growth == Growth(depth=2)


def test_an_unlikely_answer_is_worth_more_at_first_only():
    assert [surprise_weight(share) for share in (0, 0.25, 0.5, 1)] == [0.1, 0.05, 0, 0]
