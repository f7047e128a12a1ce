"""Knapsacks: training steps per second, time to solve as the input grows, and Pisinger's instances.

OR-Tools' branch and bound runs on the same instances: it is exact, and at these sizes
the faster of the two. The growth exponent is the slope of log time over log size.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from ortools.algorithms.python import knapsack_solver
from rich.console import Console
from rich.table import Table

from diconet.learn.batches import batch_at
from diconet.learn.settings import read_settings
from diconet.problems.knapsack.pisinger import read_pisinger
from diconet.problems.knapsack.problem import PROBLEM
from diconet.problems.knapsack.recipe import LOSSES, Settings
from diconet.problems.knapsack.solve import knapsack
from diconet.problems.knapsack.task import KnapsackTask

SIZES = (100, 1_000, 10_000, 100_000)
TIME_LIMIT = 60


def training(
    presets: tuple[str, ...] = ("paper", "default"), steps: int = 5
) -> list[dict[str, Any]]:
    """Steps per second (forward and backward) of each preset."""
    records = []
    for preset in presets:
        settings = read_settings(Settings, PROBLEM.folder("presets"), preset, [])
        model, task, loss = settings.build(), KnapsackTask(), LOSSES[settings.loss]
        batches = [batch_at(i, task, None, settings.train) for i in range(steps + 1)]
        for step, batch in enumerate(batches):
            if step == 1:  # the first compiles
                start = time.perf_counter()
            loss(model, task, batch, settings.train)[0].backward()
        seconds = (time.perf_counter() - start) / steps
        records.append(
            {
                "what": "training",
                "preset": preset,
                "n": settings.train.max_size,
                "inputs": settings.train.batch_size,
                "samples": settings.train.tree_samples,
                "steps_per_second": 1 / seconds,
            }
        )
    return records


def solving(sizes: tuple[int, ...] = SIZES, seed: int = 0) -> list[dict[str, Any]]:
    """Seconds and value of ours and of OR-Tools on one instance per size, in units of 1e-4."""
    task = KnapsackTask()
    knapsack([1.0, 2.0], [1.0, 1.0], 1.0)  # loads the weights, compiles the kernels
    records = []
    for size in sizes:
        sets = task.sample(1, size, rng=torch.Generator().manual_seed(seed))
        values, weights = sets.items.numpy().T
        capacity = sets.context.item()
        start = time.perf_counter()
        packing = knapsack(values, weights, capacity)
        ours = time.perf_counter() - start
        start = time.perf_counter()
        best, proven = _ortools(values, weights, capacity)
        theirs = time.perf_counter() - start
        records.append(
            {
                "what": "solving",
                "n": size,
                "seconds": ours,
                "ortools_seconds": theirs,
                "ortools_optimal": proven,
                "ratio": best / packing.value,
                "proven_ratio": packing.bound / packing.value,
            }
        )
    return records


def _ortools(values: np.ndarray, weights: np.ndarray, capacity: float) -> tuple[float, bool]:
    kind = knapsack_solver.SolverType.KNAPSACK_MULTIDIMENSION_BRANCH_AND_BOUND_SOLVER
    solver = knapsack_solver.KnapsackSolver(kind, "knapsack")
    solver.set_time_limit(TIME_LIMIT)
    solver.init(values.astype(int).tolist(), [weights.astype(int).tolist()], [int(capacity)])
    return float(solver.solve()), bool(solver.is_solution_optimal())


def pisinger(path: Path) -> list[dict[str, Any]]:
    """Ratio of the published optimum to ours on a file of instances."""
    instances = read_pisinger(path)
    columns = zip(*((i.values, i.weights, i.capacity) for i in instances), strict=True)
    packings = knapsack(*(list(column) for column in columns))
    ratio = np.array([i.optimum / p.value for i, p in zip(instances, packings, strict=True)])
    return [
        {
            "what": "pisinger",
            "file": path.name,
            "instances": len(instances),
            "ratio": float(ratio.mean()),
            "worst": float(ratio.max()),
            "optimal_percent": 100 * float((ratio == 1).mean()),
            "proven_ratio": 1 + float(np.mean([packing.gap for packing in packings])),
        }
    ]


def exponent(records: list[dict[str, Any]], key: str) -> float:
    sizes = np.log([record["n"] for record in records])
    return float(np.polyfit(sizes, np.log([record[key] for record in records]), 1)[0])


def measure(sizes: tuple[int, ...] = SIZES, path: Path | None = None) -> list[dict[str, Any]]:
    """Everything about knapsacks, as flat records."""
    return training() + solving(sizes) + ([] if path is None else pisinger(path))


def show(records: list[dict[str, Any]]) -> None:
    console = Console()
    for what in dict.fromkeys(record["what"] for record in records):
        some = [{k: v for k, v in r.items() if k != "what"} for r in records if r["what"] == what]
        table = Table(title=f"Knapsack: {what}", title_justify="left")
        for name in some[0]:
            table.add_column(name, justify="right")
        for record in some:
            cells = (f"{v:.8g}" if isinstance(v, float) else str(v) for v in record.values())
            table.add_row(*cells)
        console.print(table)
        if what == "solving" and len(some) > 1:
            ours, theirs = exponent(some, "seconds"), exponent(some, "ortools_seconds")
            console.print(f"Time grows as n^{ours:.2f}; OR-Tools' as n^{theirs:.2f}.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--pisinger", type=Path, metavar="FILE", help="a knapPI_*.csv to solve")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="print only records")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    records = measure(tuple(options.sizes), options.pisinger)
    if options.json:
        print(json.dumps(records))
    else:
        show(records)


if __name__ == "__main__":
    main()
