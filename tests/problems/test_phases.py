"""No seed of a training run leads to an instance that is tested on.

What a run trains on is what its recipe hands to the training loop, whatever that draws from: a
task, a book of labelled tours, or clouds of several kinds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import ArrayLike

import diconet.learn.loop
import diconet.problems.algorithms.recipe
from diconet.core.sets import SetBatch
from diconet.core.task import Task
from diconet.learn.batches import Batch, batch_at
from diconet.learn.config import TrainConfig
from diconet.learn.settings import read_settings
from diconet.problems.catalog import built_in
from diconet.problems.kmeans.table import columns
from diconet.problems.problem import Problem
from diconet.problems.tsp.task import TourBook

SIZE = 12
"""Below the number of seeds, and of steps: a seed that is the sum of others is then met."""

SEEDS, STEPS = range(20), range(SIZE + 1)

Drawn = tuple[Task, TrainConfig]
"""What the loop draws its batches from."""


class Own:
    """A user's task: the larger the spread within leaves, the worse."""

    num_features = 2

    def sample(self, num_sets: int, set_size: int, *, rng: torch.Generator) -> SetBatch:
        items = torch.rand(num_sets * set_size, 2, generator=rng)
        return SetBatch.pack(items, torch.full((num_sets,), set_size))

    def reward(self, sets: SetBatch, solution: Any) -> torch.Tensor:
        return -sets.mean(solution.leaves.float())


PROBLEMS = {**built_in(), "a user's task": Problem("own", Own())}
RUNS = [(name, "default") for name in PROBLEMS]
RUNS += [("hull", "rows"), ("knapsack", "paper"), ("tsp", "paper")]


@pytest.fixture
def handed_over(monkeypatch: pytest.MonkeyPatch) -> list[Drawn]:
    """What is handed to the training loop, which makes no steps; nothing is chosen after it."""
    seen: list[Drawn] = []

    def no_batches(
        start: int, task: Task, oracle: Any, config: TrainConfig, *_: Any
    ) -> Iterator[Batch]:
        seen.append((task, config))
        yield from ()

    monkeypatch.setattr(diconet.learn.loop, "batches", no_batches)
    monkeypatch.setattr(diconet.problems.algorithms.recipe, "settled", lambda model, *_: model)
    return seen


def key_of(instance: ArrayLike | tuple[ArrayLike, ...]) -> bytes:
    """An instance up to the order of its items; a knapsack comes as values and weights."""
    items = np.stack(instance, 1) if isinstance(instance, tuple) else np.asarray(instance)
    items = items.astype(np.float32).reshape(len(items), -1)
    return items[np.lexsort(items.T)].tobytes()


def instances_of(task: Task, config: TrainConfig) -> Iterator[bytes]:
    """The instances of the first steps, or all of a book, which turns them at every step."""
    if isinstance(task, TourBook):
        drawn = [SetBatch.pack(task.cities, task.tours.sizes)]
    else:
        drawn = [batch_at(step, task, None, config).sets for step in STEPS]
    for sets in drawn:
        yield from (key_of(items.numpy()) for items in sets.unpack())


def trained_on(
    problem: Problem, preset: str, changes: list[str], drawn: list[Drawn], folder: Path
) -> set[bytes]:
    """The instances that trainings with `SEEDS` see, all of one size."""
    same: dict[str, Any] = {"batch_size": 4, "tree_samples": 1, "min_size": SIZE, "max_size": SIZE}
    settings = read_settings(problem.recipe.Settings, problem.folder("presets"), preset, changes)
    found: set[bytes] = set()
    for seed in SEEDS:
        how = replace(settings, train=replace(settings.train, seed=seed, **same))
        problem.recipe.train_model(how, folder / str(seed), quiet=True)
        for task, config in drawn:
            found |= set(instances_of(task, replace(config, **same)))
        drawn.clear()
    assert len(found) >= len(SEEDS) * 4
    return found


@pytest.mark.parametrize(("name", "preset"), RUNS)
def test_no_instance_is_trained_and_tested_on(
    name: str, preset: str, handed_over: list[Drawn], tmp_path: Path
) -> None:
    """Nor do two seeds test on the same ones, so that a second seed is a second opinion."""
    problem = PROBLEMS[name]
    changes = ["--num_labels", "4"] if name == "tsp" else []
    trained = trained_on(problem, preset, changes, handed_over, tmp_path)
    tested: set[bytes] = set()
    for seed in SEEDS:
        fresh = {key_of(instance) for instance in problem.fresh(SIZE, 4, seed).data}
        assert not fresh & (trained | tested)
        tested |= fresh
    assert len(tested) == len(SEEDS) * 4


def test_nor_is_one_of_the_papers_points_for_kmeans(
    handed_over: list[Drawn], tmp_path: Path
) -> None:
    """Its table draws test sets of its own, whose size follows from the number of clusters."""
    changes = ["--data", "[gaussian2, gaussian10]", "--clusters", "[4]", "--points_each", "20"]
    problem = PROBLEMS["kmeans"]
    trained = trained_on(problem, "paper_small", changes, handed_over, tmp_path)
    for seed in SEEDS:
        for _, sets in columns(None, 4, seed).values():
            assert not {key_of(points.numpy()) for points in sets.unpack()} & trained
