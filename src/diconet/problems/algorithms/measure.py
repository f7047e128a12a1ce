"""How often whole answers are right, and what they are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from diconet.core.answers import Sequences
from diconet.core.coin import RandomSplit
from diconet.core.model import DiCoNet
from diconet.nets.forms import DescentSplit
from diconet.problems.algorithms.certificates import VALUES
from diconet.problems.general import fresh_instances
from diconet.problems.inputs import sets_of
from diconet.problems.networks import as_network
from diconet.problems.problem import Instances, Problem, Show
from diconet.problems.solution import Solution


def grade(
    problem: Problem, instances: Instances, solutions: Sequence[Solution]
) -> dict[str, float]:
    """The percentage of answers that are right as a whole, and that are proven right."""
    sets = sets_of(problem, instances)
    task: Any = problem.task
    given: list[Any] = list(solutions)
    found = Sequences.of([torch.from_numpy(one.answer) for one in given])
    return {
        "accuracy": 100 * float(task.right(sets, found).double().mean()),
        "proved": 100 * float(np.mean([one.exact for one in given])),
    }


def divided_by(network: DiCoNet, split: torch.nn.Module) -> DiCoNet:
    """The same network with another split; its decisions on the way down stay the same."""
    if isinstance(network.split, DescentSplit):
        other = DescentSplit(split)
        other.gate, other.asked = network.split.gate, network.split.asked
        split = other
    return DiCoNet(split, network.merge, network.growth).train(network.training)


def show(problem: Problem, rng: np.random.Generator, scale: float) -> Show:
    """One instance for the demo, compared with random division and the oracle's answer."""
    size = max(int(400 * scale), 8)
    instances = fresh_instances(problem.task, size, 1, int(rng.integers(2**31)))
    task: Any = problem.task

    def value(answer: Any) -> float:
        return VALUES[problem.name](instances.data[0], np.asarray(answer))

    def by_coins() -> float:
        network = divided_by(as_network(problem, None), RandomSplit())
        (solution,) = problem.solve(instances, model=network, seed=0)
        return solution.value

    def by_oracle() -> float:
        return value(task.oracle(sets_of(problem, instances)).places.numpy())

    return Show(
        instances,
        f"{size} items",
        str(getattr(problem, "value", "value")),
        ("random division", by_coins),
        ("textbook", by_oracle),
    )
