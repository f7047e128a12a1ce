"""The loss for anyone's task: what it picks, how deep trees are, and that it learns."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from diconet.core.answers import Sequences, Values
from diconet.core.relations import Relations
from diconet.core.sets import SetBatch
from diconet.core.tree import Growth, PartitionTree
from diconet.learn import TrainConfig, best_of, train
from diconet.learn.general import grown_so_far, own_oracle, surprise_weight, usual_config
from diconet.nets.default import network_for
from diconet.nets.general_split import GeneralSplit
from diconet.nets.one_cut import OneCutSplit
from diconet.nets.pick import PickSplit


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


class Pairs(Positive):
    """Any graph or set to be parted; the edges may have numbers."""

    answer = "partition"

    def __init__(self, edge_features: int | None = None, **said) -> None:
        self.edge_features = edge_features
        vars(self).update(said)

    def sample(self, num_sets, set_size, *, rng):
        sets = super().sample(num_sets, set_size, rng=rng)
        if self.edge_features is None:
            return sets
        edges = torch.tensor([[0, 1], [1, 2]])
        numbers = [torch.randn(2, self.edge_features, generator=rng) for _ in range(num_sets)]
        return replace(sets, relations=Relations.of([edges] * num_sets, numbers))


@pytest.mark.parametrize(
    ("task", "kind"),
    [
        (Pairs(), OneCutSplit),
        (Pairs(one_cut=False), GeneralSplit),
        (Pairs(exchangeable=False), GeneralSplit),
        (Pairs(exchangeable=False, ordered=True), OneCutSplit),
        (Pairs(edge_features=0), GeneralSplit),
        (Pairs(edge_features=1), PickSplit),
        (Pairs(edge_features=1, one_cut=True), OneCutSplit),
        (Pairs(answer="subset"), GeneralSplit),
        (Pairs(answer="label", ordered=True), OneCutSplit),
    ],
)
def test_how_a_partition_is_drawn_follows_from_the_task(task, kind):
    assert type(network_for(task).split) is kind


def test_only_an_oracle_teaches_to_divide_what_is_put_in_order():
    assert network_for(Pairs(answer="order")).growth == Growth(depth=0)
    shown = Pairs(answer="order", oracle=lambda sets: Sequences(sets.position, sets.sizes))
    assert network_for(shown).growth.halve_to is not None


@pytest.mark.parametrize("power", [-1.0, 0.0, 0.5, 2.0])
def test_numbers_are_learned_in_units_that_grow_with_the_set(power):
    """A number is the size to a power and a little chance: an untrained network is near it."""

    def oracle(sets):
        return Values(sets.sizes**power * (1 + 0.01 * sets.mean(sets.items)[:, 0]))

    task = Pairs(answer="number", oracle=oracle)
    model = network_for(task)
    assert model.merge.power == power
    for size in (8, 300):
        sets = task.sample(9, size, rng=torch.Generator().manual_seed(1))
        with torch.no_grad():
            ratio = model(sets).solution.values / oracle(sets).values
        assert ((ratio - 1).abs() < 0.1).all()


def test_trees_of_several_cuts_get_fewer_inputs_per_step():
    sizes = [usual_config(network_for(task), task).batch_size
             for task in (Pairs(), Pairs(num_parts=4), Pairs(num_parts=8))]  # fmt: skip
    assert sizes == [64, 32, 21]
