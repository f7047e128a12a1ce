from __future__ import annotations

from itertools import permutations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from diconet.core.model import DiCoNet, Outcome
from diconet.core.noise import seeds_from
from diconet.core.sets import SetBatch
from diconet.learn.estimators import policy_gradient
from diconet.nets.similarity import SimilarityNet
from diconet.problems.knapsack.fill import NUM_INPUTS, FillSplit, fill_inputs
from diconet.problems.knapsack.greedy import VALUE, WEIGHT
from diconet.problems.knapsack.pack import PackMerge
from diconet.problems.knapsack.task import KnapsackTask
from tests.problems.knapsack.test_task import FOUR, knapsacks


class LinearScores(nn.Module):
    """Scores by a fixed mix of an item's inputs: few numbers, so that gradients can be compared."""

    def __init__(self, *weights: float) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.tensor(weights))

    def forward(self, sets: SetBatch, x: Tensor) -> Tensor:
        return x @ self.weights


class CountedNet(nn.Module):
    """A network that notes how many sets it was last shown."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network
        self.seen = 0

    def forward(self, sets: SetBatch, x: Tensor) -> Tensor:
        self.seen = len(sets)
        return self.network(sets, x)


def expected_reward(split: FillSplit, items: Tensor, capacity: float, to_go: int) -> Tensor:
    """The expected value over all orders in which the items can be drawn, call after call."""
    if len(items) == 0:
        return torch.zeros(())
    sets = knapsacks(([tuple(item) for item in items.tolist()], capacity))
    budget = split.alpha * capacity if to_go else capacity
    inputs = fill_inputs(sets, torch.tensor([budget], dtype=torch.float64))
    scores = split.network(sets, inputs)
    total = torch.zeros(())
    for order in permutations(range(len(items))):
        ranked = scores[list(order)]
        chance = sum(
            (ranked[i] - ranked[i:].logsumexp(0) for i in range(len(order))), torch.zeros(())
        )
        taken, weight = [], 0.0
        for i in order:
            if weight + items[i, WEIGHT] > budget:
                break
            taken.append(i)
            weight += items[i, WEIGHT].item()
        value = items[taken, VALUE].sum() if taken else 0.0
        rest = [i for i in range(len(items)) if i not in taken]
        if to_go and len(rest) == 1:  # a single item is a leaf: it is taken if it fits
            value = value + (
                items[rest[0], VALUE] if items[rest[0], WEIGHT] <= capacity - weight else 0
            )
        elif to_go:
            value = value + expected_reward(split, items[rest], capacity - weight, to_go - 1)
        total = total + torch.exp(chance) * value
    return total


@pytest.mark.parametrize("num_splits", [0, 1])
def test_the_policy_gradient_is_that_of_the_expectation_over_all_draw_orders(num_splits):
    split = FillSplit(LinearScores(0.5, -0.4, 0.3, 0.2, 0.1), num_splits=num_splits)
    model = DiCoNet(split, PackMerge(), depth=num_splits + 1)
    sets = knapsacks((FOUR, 7))
    expected = expected_reward(split, sets.items, 7, num_splits)
    (exact,) = torch.autograd.grad(expected, split.network.weights)

    many = sets.repeat(60_000)
    seeds = seeds_from(torch.Generator().manual_seed(3), len(many))
    outcome = model(many, seeds)
    reward = KnapsackTask(unit=1e-9).reward(many, outcome.solution) * 1e9
    assert reward.mean().item() == pytest.approx(expected.item(), rel=0.005)
    loss = policy_gradient(outcome.tree.log_prob, reward, 20)
    (found,) = torch.autograd.grad(-loss, split.network.weights)
    assert (found - exact).norm() < 0.04 * exact.norm()


def test_the_running_weight_reaches_one_where_the_budget_is_used_up() -> None:
    """Two sets of FOUR, by ratio 6/2, 10/4, 8/4, 1/1; the order of the items does not matter."""
    sets = knapsacks((FOUR, 7), (FOUR[::-1], 7))
    inputs = fill_inputs(sets, torch.tensor([6.0, 20.0], dtype=torch.float64))
    running = inputs[:, 3]
    assert inputs[:, 4].tolist() == pytest.approx(4 * [6 / 7] + 4 * [20 / 7])
    by_weight = dict(zip(sets.items[:4, VALUE].tolist(), running[:4].tolist(), strict=True))
    assert by_weight == pytest.approx({6: 2 / 6, 10: 1.0, 8: 10 / 6, 1: 11 / 6})
    assert (20 * running[4:]).tolist() == pytest.approx((6 * running[:4]).flip(0).tolist())


def by_value(num_splits: int) -> DiCoNet:
    """Items by falling value: of FOUR, 10 (4), 8 (4), 6 (2), 1 (1)."""
    split = FillSplit(LinearScores(1.0, 0.0, 0.0, 0.0, 0.0), num_splits=num_splits)
    return DiCoNet(split, PackMerge(), depth=num_splits + 1)


def rooms(outcome: Outcome) -> list[list[float]]:
    """What each call filled, and the room it left."""
    cuts = [level.cut for level in outcome.tree.levels[:-1]]
    return [cut.contexts[0, :, 0].tolist() for cut in cuts]


def test_a_call_fills_half_the_room_and_the_last_call_all_of_it():
    """Half of 8 takes the first. Half of the 4 left is too little for 8, the next by value, which
    ends the second call with nothing; the last takes it."""
    outcome = by_value(2)(knapsacks((FOUR, 8)))
    assert outcome.solution.places.tolist() == [0, 2]
    assert rooms(outcome) == [[4, 4], [0, 4], [4, 0]]
    contexts = [level.cut.contexts for level in outcome.tree.levels[:-1]]
    assert [context[0, 1, 1].item() for context in contexts] == [1, 0, -1]


def test_a_draw_that_does_not_fit_ends_the_call():
    assert by_value(0)(knapsacks((FOUR, 7))).solution.places.tolist() == [0]


def test_a_set_gets_the_same_answer_alone_or_in_a_batch(rng):
    torch.manual_seed(0)
    model = DiCoNet(FillSplit(SimilarityNet(NUM_INPUTS, 8, 2)), PackMerge(), depth=4)
    one, two = KnapsackTask().sample(1, 12, rng=rng), KnapsackTask().sample(1, 30, rng=rng)
    both = SetBatch.of([one.items, two.items], torch.cat([one.context, two.context]))
    seeds = seeds_from(rng, 2)
    together = model(both, seeds)
    for i, alone in enumerate((one, two)):
        single = model(alone, seeds[i : i + 1])
        assert torch.equal(single.solution.places, together.solution.unpack()[i])
        torch.testing.assert_close(single.tree.log_prob[0], together.tree.log_prob[i])


@pytest.mark.parametrize("sizes", [(12, 12, 12), (12, 9, 9)])
def test_copies_of_a_set_are_scored_once_and_answered_each(rng, sizes):
    torch.manual_seed(0)
    counted = CountedNet(SimilarityNet(NUM_INPUTS, 8, 2))
    model = DiCoNet(FillSplit(counted, num_splits=0), PackMerge(), depth=1)
    drawn = [KnapsackTask().sample(1, size, rng=rng) for size in sizes]
    sets = SetBatch.of([one.items for one in drawn], torch.cat([one.context for one in drawn]))
    copies = sets.repeat(4)
    seeds = seeds_from(rng, 12)
    together = model(copies, seeds)
    assert counted.seen == 3
    for i in range(12):
        alone = model(sets.take(torch.tensor([i // 4])).repeat(1), seeds[i : i + 1])
        assert alone.tree.log_prob.item() == pytest.approx(
            together.tree.log_prob[i].item(), rel=1e-5
        )


@settings(max_examples=40, deadline=None)
@given(
    items=st.lists(st.tuples(st.integers(1, 50), st.integers(0, 50)), min_size=1, max_size=12),
    capacity=st.integers(0, 120),
    num_splits=st.integers(0, 4),
    seed=st.integers(0, 100),
)
def test_the_capacity_is_never_exceeded(items, capacity, num_splits, seed):
    torch.manual_seed(seed)
    model = DiCoNet(
        FillSplit(SimilarityNet(NUM_INPUTS, 4, 1), num_splits=num_splits),
        PackMerge(),
        depth=num_splits + 1,
    )
    sets = knapsacks((items, capacity))
    for seeds in (None, torch.tensor([seed])):
        rows = model(sets, seeds).solution.rows(sets)
        assert sets.items[rows, WEIGHT].sum() <= capacity


@pytest.mark.parametrize(("name", "value"), [("alpha", 0.0), ("alpha", 1.5), ("num_splits", -1)])
def test_settings_are_checked(name, value):
    with pytest.raises(ValueError, match=rf"{name} must be .*; got {value}"):
        FillSplit(LinearScores(1.0, 0.0, 0.0, 0.0, 0.0), **{name: value})
