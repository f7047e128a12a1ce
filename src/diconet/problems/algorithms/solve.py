"""Answers to a user's numbers, each with a proof if it is right."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from diconet.core.host import to_host
from diconet.core.sets import SetBatch
from diconet.plot.stages import LEFT, Stage
from diconet.problems.algorithms.certificates import PROOFS, VALUES
from diconet.problems.inputs import check_seed, sets_of, tree_seeds
from diconet.problems.networks import as_network
from diconet.problems.problem import Instances, Problem
from diconet.problems.solution import Model, Solution, labels_of
from diconet.problems.task_solution import TaskSolution

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_AT_ONCE = 1_000_000
"""The maximum number of items solved at once, unless one set has more."""


@dataclass(frozen=True, eq=False, repr=False)
class AlgorithmSolution(TaskSolution):
    """The answer of a learned algorithm; `exact` is true only if it was proven right.

    The proof is independent of the network, and costs no more than a sort of the input.
    """

    exact: bool = False
    problem: Problem = field(kw_only=True)

    def quality(self) -> str:
        """The value of the answer, and whether it is certainly right."""
        return f"{self.value:.6g}, {'certified exact' if self.exact else 'not certified'}"

    def record(self) -> dict[str, Any]:
        """Items, value, whether the answer was proven right, and the answer."""
        return {
            "items": len(self.items),
            "value": self.value,
            "exact": self.exact,
            self.name: self.answer.tolist(),
        }

    def plane(self) -> np.ndarray:
        """Points as they are; numbers by their position in the input, each at its height."""
        if self.items.shape[1] == 2:
            return self.items
        along = np.linspace(0, max(float(np.ptp(self.items)), 1e-9), len(self.items))
        return np.column_stack([along, self.items])

    def part_stage(self, title: str, parts: np.ndarray) -> Stage:
        """What each part passes up, as the same network finds it; all else is faint."""
        if self.problem.name in ("sort", "select"):  # all items, and those in one part
            return Stage(title, parts)
        members = [np.flatnonzero(parts == number) for number in np.unique(parts)]
        names = [title] * len(members)
        some = Instances(names, [self.items[rows] for rows in members])
        shown = np.full(len(parts), LEFT)
        for rows, one in zip(members, solve(self.problem, some, model=self.model), strict=True):
            shown[rows[one.answer]] = parts[rows[one.answer]]
        return Stage(title, shown)

    def draw(self, ax: Axes, stage: Stage, *, final: bool = False) -> None:
        """Draws one stage, or the answer, with parts in colours."""
        Solution.draw(self, ax, stage, final=final)


def solve(
    problem: Problem,
    instances: Instances,
    *,
    model: Model = None,
    seed: int | None = None,
    device: str | torch.device = "cpu",
) -> Iterator[AlgorithmSolution]:
    """The answers of a network, in batches of bounded size."""
    network = as_network(problem, model, device)
    sets = sets_of(problem, instances, device)
    seeds = tree_seeds(check_seed(seed), len(sets), device)
    for part in chunks(sets):
        some = sets if len(part) == len(sets) else sets.take(part).as_roots()
        with torch.inference_mode():
            outcome = network(some, None if seeds is None else seeds[part])
        answers = outcome.solution.unpack()
        trees = labels_of(outcome.tree)
        for number, items in enumerate(some.unpack()):
            points, answer = to_host(items.double()), to_host(answers[number])
            k = to_host(some.context[number])
            yield AlgorithmSolution(
                VALUES[problem.name](points, answer),
                trees[number],
                points,
                np.zeros(len(points), dtype=np.int64),
                getattr(problem.task, "answer", "subset"),
                answer,
                model=model,
                exact=PROOFS[problem.name](points, answer, k),
                problem=problem,
            )


def chunks(sets: SetBatch) -> list[torch.Tensor]:
    """The indices of the sets to solve together."""
    most = max(1, int(sets.sizes.max())) if len(sets) else 1
    everything = torch.arange(len(sets), device=sets.sizes.device)
    return list(everything.split(max(1, _AT_ONCE // most)))
