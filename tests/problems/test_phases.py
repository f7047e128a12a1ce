"""No seed of a training run leads to an instance that is tested on."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import ArrayLike

from diconet.learn.batches import batch_at
from diconet.learn.config import TrainConfig
from diconet.problems.catalog import built_in
from diconet.problems.problem import Problem

SEEDS, STEPS, SIZE = range(20), range(3), 24


def key_of(instance: ArrayLike | tuple[ArrayLike, ...]) -> bytes:
    """An instance up to the order of its items; a knapsack comes as values and weights."""
    items = np.stack(instance, 1) if isinstance(instance, tuple) else np.asarray(instance)
    items = items.astype(np.float32).reshape(len(items), -1)
    return items[np.lexsort(items.T)].tobytes()


def trained_on(problem: Problem, seed: int) -> set[bytes]:
    config = TrainConfig(seed=seed, batch_size=4, tree_samples=1, min_size=SIZE, max_size=SIZE)
    batches = (batch_at(step, problem.task, None, config) for step in STEPS)
    return {key_of(items.numpy()) for batch in batches for items in batch.sets.unpack()}


@pytest.mark.parametrize("name", built_in())
def test_no_instance_is_trained_and_tested_on(name: str) -> None:
    """Nor do two seeds test on the same ones, so that a second seed is a second opinion."""
    problem = built_in()[name]
    trained = set().union(*(trained_on(problem, seed) for seed in SEEDS))
    assert len(trained) == len(SEEDS) * len(STEPS) * 4
    tested: set[bytes] = set()
    for seed in SEEDS:
        mine = {key_of(instance) for instance in problem.fresh(SIZE, 4, seed).data}
        assert not mine & (trained | tested)
        tested |= mine
    assert len(tested) == len(SEEDS) * 4
