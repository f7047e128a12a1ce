"""The 0-1 knapsack (section 6.3): the most valuable items that fit a capacity together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from ortools.algorithms.python import knapsack_solver
from torch import Tensor

from diconet.core.answers import Sequences
from diconet.core.sets import SetBatch
from diconet.problems.knapsack.greedy import used, whole_instances, worth


@dataclass(frozen=True)
class KnapsackTask:
    """Values and weights uniform in [0, 1], capacity uniform in [0.2 n, 0.3 n].

    All numbers are whole, in steps of `unit`, and held as float64, so that sums are exact. A set's
    context is its capacity.
    """

    num_features: int = 2
    unit: float = 1e-4

    def __post_init__(self) -> None:
        if not 0 < self.unit < 1:
            raise ValueError(f"unit must be above 0 and below 1; got {self.unit}.")

    def sample(self, num_sets: int, set_size: int, *, rng: torch.Generator) -> SetBatch:
        """Fresh instances, rounded up to whole units."""
        draws = torch.rand(num_sets * set_size, 2, generator=rng, dtype=torch.float64)
        share = 0.2 + 0.1 * torch.rand(num_sets, 1, generator=rng, dtype=torch.float64)
        items = (draws / self.unit).ceil().clamp(min=1)
        capacity = (share * set_size / self.unit).ceil()
        return SetBatch.pack(items, torch.full((num_sets,), set_size, device=rng.device), capacity)

    def reward(self, sets: SetBatch, solution: Sequences) -> Float[Tensor, "sets"]:
        """The value packed; an overfull knapsack earns nothing."""
        chosen = solution.mask(sets)
        fits = used(sets, chosen) <= sets.context[:, 0]
        return worth(sets, chosen) * fits * self.unit

    def oracle(self, sets: SetBatch) -> Sequences:
        """The optimum of every set, by OR-Tools' branch and bound."""
        found = [torch.from_numpy(optimum_of(one)) for one in whole_instances(sets)]
        return Sequences.of(found).to(sets.sizes.device)


def optimum_of(instance: tuple[np.ndarray, np.ndarray, int]) -> np.ndarray:
    """The items of an optimal choice, given whole values, weights and capacity."""
    values, weights, capacity = instance
    solver = knapsack_solver.KnapsackSolver(
        knapsack_solver.SolverType.KNAPSACK_MULTIDIMENSION_BRANCH_AND_BOUND_SOLVER, "knapsack"
    )
    solver.init(values.tolist(), [weights.tolist()], [capacity])
    solver.solve()
    taken = [solver.best_solution_contains(i) for i in range(len(values))]
    return np.flatnonzero(taken)
