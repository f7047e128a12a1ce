"""Knapsacks of five classes, compared with OR-Tools, CP-SAT and HiGHS at equal CPU time.

Each rival gets the CPU seconds that ours took, but at least `--least`; one that exceeds its limit
is killed after `--patience` more seconds, and counts as having found nothing. "behind" is the
distance of a value from the best found by any, in millionths. OR-Tools' dynamic programming needs
memory in proportion to the capacity, so its branch and bound and CP-SAT are used here.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from ortools.algorithms.python import knapsack_solver
from ortools.sat.python import cp_model
from rich.console import Console
from rich.table import Table
from scipy.optimize import Bounds, LinearConstraint, milp

from diconet.problems.knapsack.classes import CLASSES, draw
from diconet.problems.knapsack.solve import knapsack

SIZES = (50, 1_000, 10_000, 100_000)
LARGEST = (10**4, 10**6, 10**9)

Given = tuple[np.ndarray, np.ndarray, int]


def branch_and_bound(given: Given, seconds: float) -> int:
    """OR-Tools' branch and bound; its time limit is unreliable below a second."""
    values, weights, capacity = given
    kind = knapsack_solver.SolverType.KNAPSACK_MULTIDIMENSION_BRANCH_AND_BOUND_SOLVER
    solver = knapsack_solver.KnapsackSolver(kind, "knapsack")
    solver.set_time_limit(seconds)
    solver.init(values.tolist(), [weights.tolist()], [capacity])
    solver.solve()
    chosen = [i for i in range(len(values)) if solver.best_solution_contains(i)]
    return _value(given, np.array(chosen, dtype=int))


def cp_sat(given: Given, seconds: float) -> int:
    values, weights, capacity = given
    model = cp_model.CpModel()
    taken = [model.new_bool_var("") for _ in values]
    model.add(cp_model.LinearExpr.weighted_sum(taken, weights.tolist()) <= capacity)
    model.maximize(cp_model.LinearExpr.weighted_sum(taken, values.tolist()))
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = 1
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return 0
    return _value(given, np.flatnonzero([solver.boolean_value(one) for one in taken]))


def highs(given: Given, seconds: float) -> int:
    values, weights, capacity = given
    with _silent():
        found = milp(
            -values.astype(float),
            constraints=LinearConstraint(weights[None].astype(float), -np.inf, capacity),
            integrality=np.ones(len(values)),
            bounds=Bounds(0, 1),
            options={"time_limit": seconds, "mip_rel_gap": 0},
        )
    return 0 if found.x is None else _value(given, np.flatnonzero(found.x > 0.5))


@contextmanager
def _silent() -> Iterator[None]:
    """Suppresses what HiGHS writes to standard output, bypassing Python."""
    sys.stdout.flush()
    before = os.dup(1)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        try:
            yield
        finally:
            os.dup2(before, 1)
            os.close(before)


def _value(given: Given, chosen: np.ndarray) -> int:
    """The value of a choice; 0 if it is too heavy in whole numbers."""
    values, weights, capacity = given
    return int(values[chosen].sum()) if int(weights[chosen].sum()) <= capacity else 0


RIVALS: dict[str, Callable[[Given, float], int]] = {
    "OR-Tools": branch_and_bound,
    "CP-SAT": cp_sat,
    "HiGHS": highs,
}


def ended(name: str, given: Given, seconds: float, patience: float) -> int:
    """What a rival finds in a separate process, which is killed if it takes too long."""

    def work(out: Connection) -> None:
        out.send(RIVALS[name](given, seconds))

    here, there = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=work, args=(there,))
    child.start()
    found = here.recv() if here.poll(seconds + patience) else 0
    child.kill()
    child.join()
    return int(found)


def cell(kind: str, size: int, largest: int, options: argparse.Namespace) -> dict[str, Any]:
    """Ours and the rivals on some instances of a class, a size and a range of numbers."""
    rng = np.random.default_rng([CLASSES.index(kind), size, largest])
    behind: dict[str, list[float]] = {name: [] for name in ("ours", *options.rivals)}
    proven, seconds = [], []
    for _ in range(options.count):
        given = draw(kind, size, largest, rng)
        start = time.process_time()
        packing = knapsack(*given)
        took = time.process_time() - start
        values = {"ours": _value(given, packing.chosen)}
        for name in options.rivals:
            values[name] = ended(name, given, max(took, options.least), options.patience)
        best = max(values.values())
        for name, value in values.items():
            behind[name].append(1e6 * (best - value) / best)
        proven.append(packing.gap == 0)
        seconds.append(took)
    worst = {f"{name}_behind": max(figures) for name, figures in behind.items()}
    return {
        "kind": kind,
        "n": size,
        "largest": largest,
        "seconds": float(np.mean(seconds)),
        "proven_percent": 100 * float(np.mean(proven)),
        **worst,
    }


def show(records: list[dict[str, Any]]) -> None:
    table = Table(title="Knapsacks: worst of each cell, millionths behind the best found")
    for name in records[0]:
        table.add_column(name, justify="right")
    for record in records:
        table.add_row(*(f"{x:.4g}" if isinstance(x, float) else str(x) for x in record.values()))
    Console(width=160).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--largest", type=int, nargs="+", default=LARGEST)
    parser.add_argument("--kinds", nargs="+", default=CLASSES, choices=CLASSES)
    parser.add_argument("--count", type=int, default=5, help="instances per cell")
    parser.add_argument("--rivals", nargs="*", default=list(RIVALS), choices=list(RIVALS))
    parser.add_argument("--least", type=float, default=1.0, help="minimum seconds per rival")
    parser.add_argument("--patience", type=float, default=10.0, help="extra seconds before a kill")
    parser.add_argument("--json", action="store_true", help="print only records")
    options = parser.parse_args()
    knapsack(*draw("subset sum", 50, 10**6, np.random.default_rng(0)))  # loads and compiles
    cells = [
        (kind, size, largest)
        for size in options.sizes
        for largest in options.largest
        for kind in options.kinds
    ]
    records = [cell(*one, options) for one in cells]
    print(json.dumps(records)) if options.json else show(records)


if __name__ == "__main__":
    main()
