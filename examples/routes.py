"""Capacitated routes with PyVRP at the leaves: the network learns to divide for that solver.

The solver solves the parts that the network makes, in ten iterations each, and the reward is the
total cost of their routes. Ten iterations are plenty for 50 customers, but too few for 200 at once.
"""

import numpy as np
import torch
from torch import Tensor

from diconet import SetBatch
from diconet.core.leaf_solver import Solved

SIZE, STEPS, BATCH, TREES, TESTS = 200, 40, 8, 4, 20
NEEDS = ("pyvrp",)
REFERENCE = "PyVRP, ten times the iterations"
CAPACITY, UNIT = 100, 1000


def route_cost(items: np.ndarray, iterations: int = 10) -> float:
    """The cost of routes from a depot in the middle to customers (x, y, demand)."""
    from pyvrp import Model
    from pyvrp.stop import MaxIterations

    model = Model()
    at = [model.add_location(UNIT / 2, UNIT / 2)]
    model.add_depot(at[0])
    for x, y, demand in items:
        at.append(model.add_location(UNIT * float(x), UNIT * float(y)))
        model.add_client(at[-1], delivery=int(demand))
    model.add_vehicle_type(len(items), capacity=CAPACITY)
    places = np.array([[place.x, place.y] for place in at])
    gaps = np.linalg.norm(places[:, None] - places, axis=2).round().astype(int)
    for i, start in enumerate(at):
        for j, end in enumerate(at):
            model.add_edge(start, end, int(gaps[i, j]))
    result = model.solve(MaxIterations(iterations), display=False, collect_stats=False)
    return float(result.cost()) / UNIT


class Routes:
    """Customers in a square with demands; PyVRP, not the network, solves the parts."""

    num_features = 3
    num_parts = 4
    one_cut = True
    cut_along = (0, 1)

    def sample(self, num_sets: int, set_size: int, *, rng: torch.Generator) -> SetBatch:
        """Uniform customers; about five per route."""
        places = torch.rand(num_sets * set_size, 2, generator=rng)
        demand = torch.randint(10, 31, (num_sets * set_size, 1), generator=rng)
        sizes = torch.full((num_sets,), set_size)
        return SetBatch.pack(torch.cat([places, demand], 1), sizes)

    def leaf_solver(self, items: np.ndarray) -> float:
        """The cost of the routes of one part."""
        return route_cost(items)

    def reward(self, sets: SetBatch, solution: Solved) -> Tensor:
        """Minus the cost of all parts."""
        return -sets.items.new_tensor([sum(costs) for costs in solution.answers])


def reference(sets: SetBatch) -> float:
    """PyVRP on all customers at once, with ten times the iterations."""
    return -float(np.mean([route_cost(items.numpy(), 100) for items in sets.unpack()]))


def bar(best: float) -> float:
    """At most a tenth above it."""
    return 1.1 * best


if __name__ == "__main__":
    from gallery import show

    show(Routes(), __name__)
