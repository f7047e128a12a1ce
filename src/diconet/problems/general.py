"""The general problem: solving, measuring, training and drawing, given only a task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from diconet.core.answers import Sequences, Values
from diconet.core.host import to_host
from diconet.core.model import DiCoNet
from diconet.core.noise import phase_generator, seeds_from
from diconet.core.sets import SetBatch
from diconet.core.task import Task
from diconet.learn.config import TrainConfig
from diconet.learn.diagnose import diagnose, other_divisions
from diconet.learn.loop import train
from diconet.nets.default import network_for
from diconet.problems.inputs import check_seed, instances_of, look_at, sets_of, tree_seeds
from diconet.problems.networks import as_network
from diconet.problems.problem import Instances, Problem, Show
from diconet.problems.solution import Model, Solution, labels_of
from diconet.problems.task_solution import TaskSolution

_CHEAP = TrainConfig.max_size
"""The oracle also solves sets of at most this size, as in training."""

_DIVISIONS = {
    "learned, drawn": "reward, drawn",
    "random": "random division",
    "median": "median division",
    "none": "no division",
}
"""Metric names of the rewards of other divisions."""


# Answers.


def solve_task(
    problem: Problem,
    instances: Instances,
    *,
    model: Model = None,
    seed: int | None = None,
    device: str = "cpu",
) -> Iterator[TaskSolution]:
    """The answers of a network, with all instances as one batch."""
    sets = sets_of(problem, instances, device)
    network = as_network(problem, model, device)
    seed = check_seed(seed)
    seeds = tree_seeds(seed, len(sets), device)
    with torch.inference_mode():
        outcome = network(sets, seeds)
        rewards = problem.task.reward(sets, outcome.solution).tolist()
        best: Sequence[Any] = [None] * len(sets)
        if max(map(len, instances.data)) <= _CHEAP and _has_oracle(problem):
            best = _oracle_rewards(problem, sets).tolist()
    kind, answers = _answers(problem, sets, outcome.solution, outcome.tree.leaves)
    trees, leaves = labels_of(outcome.tree), sets.unpack(outcome.tree.leaves)
    for number, items in enumerate(sets.unpack()):
        yield TaskSolution(
            rewards[number],
            trees[number],
            to_host(items.double()),
            to_host(leaves[number]),
            kind,
            to_host(answers[number]),
            _edges_of(instances, number),
            best[number],
            model=model,
        )


def _answers(
    problem: Problem, sets: SetBatch, solution: Any, leaves: torch.Tensor
) -> tuple[str, Sequence[torch.Tensor]]:
    """The kind of a solution, and the answer to each set."""
    said = getattr(problem.task, "answer", "partition")
    if isinstance(solution, Sequences):
        return said if said in ("order", "path") else "subset", solution.unpack()
    if isinstance(solution, Values):
        kind = "number" if solution.values.is_floating_point() else "label"
        each = solution.values.unbind() if solution.sizes is None else sets.unpack(solution.values)
        return kind, list(each)
    return "partition", sets.unpack(leaves)


def _edges_of(instances: Instances, number: int) -> np.ndarray | None:
    if "edges" not in instances.given:
        return None
    edges = np.asarray(instances.given["edges"][number])
    return edges.reshape(len(edges), -1)[:, :2].astype(int) if edges.size else None


def _has_oracle(problem: Problem) -> bool:
    return getattr(problem.task, "oracle", None) is not None


def _oracle_rewards(problem: Problem, sets: SetBatch) -> torch.Tensor:
    task: Any = problem.task
    return task.reward(sets, task.oracle(sets))


# Quality.


def fresh_instances(task: Task, size: int, num_sets: int, seed: int) -> Instances:
    """Fresh test sets as arrays, which no training seed leads to."""
    sets = task.sample(num_sets, size, rng=phase_generator("test", seed, size))
    return instances_of(sets, [f"{size}[{number}]" for number in range(num_sets)])


def grade_by_reward(
    problem: Problem, instances: Instances, solutions: Sequence[Solution]
) -> dict[str, float]:
    """The mean reward, with those of other divisions and, if there is an oracle, of its answers."""
    sets = sets_of(problem, instances)
    graded = {"reward": _mean_reward(solutions)}
    graded |= _by_other_divisions(problem, sets, solutions[0].model)
    if _has_oracle(problem):
        graded["oracle"] = _oracle_rewards(problem, sets).mean().item()
    return graded


def _mean_reward(solutions: Sequence[Solution]) -> float:
    return float(np.mean([solution.value for solution in solutions]))


def _by_other_divisions(problem: Problem, sets: SetBatch, model: Model) -> dict[str, float]:
    """The mean rewards with other divisions and the network's own merge."""
    seeds = seeds_from(phase_generator("coins", len(sets)), len(sets))
    scores = other_divisions(as_network(problem, model), problem.task, sets, seeds)
    return {_DIVISIONS[name]: score.mean().item() for name, score in scores.items()}


def reward_in_words(problem: Problem, model: Model, settings: Any, num_sets: int) -> str:
    """A network's mean reward on the largest sets that it was trained on, as text."""
    size = settings.train.max_size
    instances = fresh_instances(problem.task, size, num_sets, seed=0)
    return f"n={size} reward {_mean_reward(problem.solve(instances, model=model)):.5g}"


def demo_of(problem: Problem, rng: np.random.Generator, scale: float) -> Show:
    """One fresh instance, compared with random division and the oracle's answer."""
    size = max(int(problem.sizes[-1] * scale), 4)
    instances = fresh_instances(problem.task, size, 1, int(rng.integers(2**31)))
    sets = sets_of(problem, instances)

    def by_coins() -> float:
        return _by_other_divisions(problem, sets, None)["random division"]

    best = ("oracle", lambda: _oracle_rewards(problem, sets).item())
    return Show(
        instances,
        f"{size} items",
        "reward",
        ("random division", by_coins),
        best if _has_oracle(problem) else None,
    )


# The page.


def is_planar(problem: Problem) -> bool:
    """Whether an instance consists of points in the plane only."""
    if problem.task.num_features != 2:
        return False
    look = look_at(problem)
    return look.context == 0 and look.edge_features is None


def points_for_page(problem: Problem, n: int, seed: int) -> list[list[float]]:
    """Fresh points, shifted and scaled into the unit square."""
    points = fresh_instances(problem.task, n, 1, seed).data[0]
    low, span = points.min(0), max(float(np.ptp(points, axis=0).max()), 1e-9)
    return (0.05 + 0.9 * (points - low) / span).round(4).tolist()


# Learning.


@dataclass(frozen=True)
class TaskSettings:
    """The network of `network_for` and its training; None means the task's default.

    Attributes:
        depth: The depth of the trees, in cuts.
        split: A coin flip per item ("coins"), one threshold along one direction ("cut"), or one
            side picked item by item ("picks").
        noise: Random channels that tell similar items apart.
        width: Channels of a layer.
        num_layers: Layers.
        train: The settings of the training.
    """

    depth: int | None = None
    split: Literal["coins", "cut", "picks"] | None = None
    noise: int | None = None
    width: int | None = None
    num_layers: int | None = None
    train: TrainConfig = field(default_factory=TrainConfig)

    def network(self) -> dict[str, Any]:
        """The arguments of `network_for` that are given."""
        names = [one.name for one in fields(self) if one.name != "train"]
        given = {name: getattr(self, name) for name in names}
        return {name: value for name, value in given.items() if value is not None}


class TaskRecipe:
    """How a network for any task is trained."""

    Settings = TaskSettings

    def __init__(self, problem: Problem) -> None:
        self._problem = problem

    def train_model(self, settings: TaskSettings, run: Path, **how: Any) -> DiCoNet:
        """Trains a network in the folder `run`, by the same calls as a user of the library.

        Other arguments are those of `train`: `quiet`, `device`.
        """
        task = self._problem.task
        torch.manual_seed(settings.train.seed)
        model = network_for(task, **settings.network())
        return train(model, task, settings.train, run=run, **how)


def ablate_task(
    problem: Problem,
    *,
    sizes: Sequence[int] | None = None,
    seed: int = 0,
    seconds: float | None = None,
    num_sets: int = 256,
) -> list[dict[str, Any]]:
    """The default network's division compared with random, median and none."""
    if seconds is not None:
        raise ValueError(f"seconds must be left out: {problem.name} answers without a search.")
    network = as_network(problem, None)
    return [
        {"size": size, **record}
        for size in sizes or problem.sizes
        for record in diagnose(
            network, problem.task, set_size=size, num_sets=num_sets, seed=seed
        ).records()
    ]
