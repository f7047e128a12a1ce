"""The usual alternatives, for the benchmark of tours."""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from numba import njit
from scipy.spatial.distance import cdist

from diconet.problems.tsp.references import whole_distances


def random_insertion_tour(cities: np.ndarray, seed: int = 0) -> np.ndarray:
    """Inserts cities in random order, each where it lengthens the tour least."""
    x, y = np.ascontiguousarray(cities.T, dtype=np.float64)
    return np.asarray(_insertion(x, y, np.random.default_rng(seed).permutation(len(x))))


@njit
@no_type_check
def _insertion(x, y, order):
    n = len(order)
    follower = np.zeros(n, dtype=np.int64)
    step = np.zeros(n)
    follower[order[0]] = order[0]
    for k in range(1, n):
        city = order[k]
        best, place, first, second = np.inf, order[0], 0.0, 0.0
        here = order[0]
        to_here = np.hypot(x[city] - x[here], y[city] - y[here])
        for _ in range(k):
            there = follower[here]
            to_there = np.hypot(x[city] - x[there], y[city] - y[there])
            if to_here + to_there - step[here] < best:
                best, place = to_here + to_there - step[here], here
                first, second = to_here, to_there
            here, to_here = there, to_there
        follower[city], follower[place] = follower[place], city
        step[place], step[city] = first, second
    tour = np.zeros(n, dtype=np.int64)
    for k in range(1, n):
        tour[k] = follower[tour[k - 1]]
    return tour


def ortools_tour(cities: np.ndarray, seconds: float) -> np.ndarray:
    """OR-Tools' routing solver: the cheapest arcs, then guided local search."""
    from ortools.constraint_solver import pywrapcp, routing_enums_pb2

    whole = np.rint(cdist(cities, cities) / max(float(np.ptp(cities)), 1e-30) * 1e6).astype(int)
    manager = pywrapcp.RoutingIndexManager(len(cities), 1, 0)
    routing = pywrapcp.RoutingModel(manager)
    matrix = routing.RegisterTransitMatrix(whole.tolist())
    routing.SetArcCostEvaluatorOfAllVehicles(matrix)
    options = pywrapcp.DefaultRoutingSearchParameters()
    options.first_solution_strategy = routing_enums_pb2.FirstSolutionStrategy.PATH_CHEAPEST_ARC
    options.local_search_metaheuristic = (
        routing_enums_pb2.LocalSearchMetaheuristic.GUIDED_LOCAL_SEARCH
    )
    options.time_limit.FromMilliseconds(max(int(1_000 * seconds), 1))
    found = routing.SolveWithParameters(options)
    if found is None:
        raise TimeoutError(f"OR-Tools found no tour of {len(cities)} cities in {seconds} s.")
    tour, index = [], routing.Start(0)
    while not routing.IsEnd(index):
        tour.append(manager.IndexToNode(index))
        index = found.Value(routing.NextVar(index))
    return np.array(tour)


def elkai_tour(cities: np.ndarray, runs: int = 1) -> np.ndarray:
    """A tour by elkai (LKH), as for the paper's labels; an extra, since its licence is not free."""
    import elkai

    found = elkai.DistanceMatrix(whole_distances(cities).tolist()).solve_tsp(runs=runs)
    return np.array(found[:-1])
