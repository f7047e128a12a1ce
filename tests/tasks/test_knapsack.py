from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import torch

from diconet.answers import Sequences
from diconet.check import check_task
from diconet.greedy import VALUE, WEIGHT, fractional_bound, ratio_of, worth
from diconet.references.knapsack import greedy_that_skips, greedy_that_stops, noisy_ratio, pilot
from diconet.sets import SetBatch
from diconet.tasks.knapsack import KnapsackTask, proven_gap


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


def test_powers_draw_ratios_together_and_leave_order_and_weights_alone(rng):
    plain = KnapsackTask().sample(50, 30, rng=torch.Generator().manual_seed(1))
    drawn = KnapsackTask(least_power=0.05).sample(50, 30, rng=torch.Generator().manual_seed(1))
    assert torch.equal(plain.items[:, WEIGHT], drawn.items[:, WEIGHT])
    spread = [r.log().std() for r in plain.unpack(ratio_of(plain))]
    shrunk = [r.log().std() for r in drawn.unpack(ratio_of(drawn))]
    powers = torch.stack([b / a for a, b in zip(spread, shrunk, strict=True)])
    assert 0.05 <= powers.min() < 0.08
    assert 0.8 < powers.max() <= 1.0001
    for a, b in zip(plain.unpack(ratio_of(plain)), drawn.unpack(ratio_of(drawn)), strict=True):
        assert torch.equal(a.argsort(stable=True), b.argsort(stable=True))


def test_greedy_stops_or_skips():
    """Greedy takes 6/2 and 10/4; 8/4 does not fit the room of 1, but 1/1 does."""
    sets = knapsacks((FOUR, 7))
    assert greedy_that_stops(sets).tolist() == [True, True, False, False]
    assert greedy_that_skips(sets).tolist() == [True, True, False, True]


def test_the_fractional_bound_by_hand():
    """16 for the first two items, and a quarter of the third for the room of 1."""
    assert fractional_bound(knapsacks((FOUR, 7), (FOUR, 100))).tolist() == [16 + 2, 25]
    assert proven_gap(knapsacks((FOUR, 7)), torch.tensor([16.0]), 1.0).item() == 18 / 16 - 1


def test_the_bound_is_never_below_the_optimum_and_rivals_never_above_it(rng):
    task = KnapsackTask()
    sets = task.sample(50, 30, rng=rng)
    optimum = task.reward(sets, task.oracle(sets)) / task.unit
    assert bool((fractional_bound(sets) >= optimum - 1e-6).all())
    skips = worth(sets, greedy_that_skips(sets))
    noisy = worth(sets, noisy_ratio(sets, 16))
    forced = worth(sets, pilot(sets))
    for value in (skips, noisy, forced):
        assert bool((value <= optimum + 1e-6).all())
    assert bool((noisy >= skips).all())
    assert bool((forced >= skips).all())
    assert noisy.mean() > skips.mean()


def test_the_task_keeps_the_contract():
    check_task(KnapsackTask())


@pytest.mark.parametrize(("name", "value"), [("unit", 0.0), ("least_power", 0.0)])
def test_settings_are_checked(name, value):
    with pytest.raises(ValueError, match=rf"{name} must be above 0 .*; got 0.0"):
        KnapsackTask(**{name: value})
