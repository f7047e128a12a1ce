from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import torch

from diconet.core.answers import Sequences
from diconet.core.check import check_task
from diconet.core.sets import SetBatch
from diconet.problems.knapsack.greedy import VALUE, WEIGHT, greedy_that_skips, greedy_that_stops
from diconet.problems.knapsack.task import KnapsackTask


def knapsacks(*instances: tuple[list[tuple[float, float]], float]) -> SetBatch:
    """Instances given as (value, weight) pairs and a capacity."""
    items = [torch.tensor(pairs, dtype=torch.float64).reshape(-1, 2) for pairs, _ in instances]
    return SetBatch.of(items, torch.tensor([[c] for _, c in instances], dtype=torch.float64))


def brute_force(items: np.ndarray, capacity: float) -> float:
    """The value of the best choice, by trying all of them."""
    return max(
        items[list(some), VALUE].sum()
        for size in range(len(items) + 1)
        for some in combinations(range(len(items)), size)
        if items[list(some), WEIGHT].sum() <= capacity
    )


# By value per weight: 6/2, 10/4, 8/4, 1/1. Capacity 7 breaks at the third item.
FOUR = [(10.0, 4.0), (6.0, 2.0), (8.0, 4.0), (1.0, 1.0)]


def test_reward_is_the_value_packed_and_nothing_if_it_does_not_fit():
    sets = knapsacks((FOUR, 7), (FOUR, 7))
    solution = Sequences.of([torch.tensor([0, 1, 3]), torch.tensor([0, 2])])
    reward = KnapsackTask(unit=0.5).reward(sets, solution)
    assert reward.tolist() == [0.5 * (10 + 6 + 1), 0]


def test_the_oracle_finds_what_trying_everything_finds(rng):
    task = KnapsackTask()
    sets = task.sample(20, 9, rng=rng)
    values = task.reward(sets, task.oracle(sets)) / task.unit
    best = [
        brute_force(items.numpy(), capacity)
        for items, capacity in zip(sets.unpack(), sets.context[:, 0].tolist(), strict=True)
    ]
    torch.testing.assert_close(values, torch.tensor(best, dtype=torch.float64))


def test_instances_are_whole_numbers_in_the_ranges_of_the_paper(rng):
    sets = KnapsackTask().sample(200, 50, rng=rng)
    assert bool((sets.items == sets.items.round()).all())
    assert 1 <= sets.items.min() < 10
    assert 9_990 < sets.items.max() <= 10_000
    assert sets.context.min() >= 0.2 * 50 * 1e4
    assert sets.context.max() <= 0.3 * 50 * 1e4 + 1
    assert abs(sets.context.mean() / (0.25 * 50 * 1e4) - 1) < 0.02


def test_greedy_stops_or_skips():
    """Greedy takes 6/2 and 10/4; 8/4 does not fit the room of 1, but 1/1 does."""
    sets = knapsacks((FOUR, 7))
    assert greedy_that_stops(sets).tolist() == [True, True, False, False]
    assert greedy_that_skips(sets).tolist() == [True, True, False, True]


def test_the_task_keeps_the_contract():
    check_task(KnapsackTask())


def test_settings_are_checked():
    with pytest.raises(ValueError, match=r"unit must be above 0 .*; got 0.0"):
        KnapsackTask(unit=0.0)
