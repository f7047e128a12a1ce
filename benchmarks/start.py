"""Small calls and threads: a first call with nothing compiled, later calls, one thread or two.

    python benchmarks/start.py                             # some minutes
    python benchmarks/start.py --only cold small           # without the comparison of threads
    python benchmarks/start.py --problems kmeans --json

The first call is made in a new process with an empty cache of compiled loops; its seconds are
CPU time and include imports. Later calls repeat the same instance of 20 items. Threads are compared
by wall time, best of some runs by turns, so nothing else should be running then.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import diconet

SMALL = 20
SIZES = {
    "convex_hull": (20_000, 1_000_000),
    "kmeans": (2_000, 20_000, 200_000),
    "knapsack": (1_000, 100_000),
    "tsp": (200, 2_000, 20_000),
}
"""Numbers of items for which threads are compared."""


def call(name: str, size: int) -> Callable[[], Any]:
    """A call of one solver on random items."""
    rng = np.random.default_rng(size)
    if name == "knapsack":
        weights = rng.integers(1, 10_001, size)
        return lambda: diconet.knapsack(weights + 1_000, weights, int(weights.sum()) // 2)
    points = rng.random((size, 2))
    if name == "kmeans":
        return lambda: diconet.kmeans(points, max(3, min(100, size // 50)))
    return lambda: getattr(diconet, name)(points)


def cold(name: str) -> dict[str, Any]:
    """The CPU seconds of a new process whose only call is a small one, with nothing compiled."""
    code = f"import start, time; start.call({name!r}, {SMALL})(); print(time.process_time())"
    with tempfile.TemporaryDirectory() as empty:
        paths = os.pathsep.join(sys.path)  # the first is this folder
        env = {**os.environ, "NUMBA_CACHE_DIR": empty, "PYTHONPATH": paths}
        done = subprocess.run(
            [sys.executable, "-c", code], env=env, check=True, capture_output=True
        )
    return {"problem": name, "first_call_cpu_seconds": round(float(done.stdout), 2)}


def small(name: str, repeats: int) -> dict[str, Any]:
    """The median and the shortest of many small calls, in milliseconds of CPU time."""
    solve, found = call(name, SMALL), []
    for _ in range(repeats + 3):
        start = time.process_time()
        solve()
        found.append(1e3 * (time.process_time() - start))
    later = found[3:]
    return {"problem": name, "median_ms": float(np.median(later)), "shortest_ms": min(later)}


def threads(name: str, size: int, rounds: int) -> dict[str, Any]:
    """The wall seconds with one thread and with two."""
    solve = call(name, size)
    call(name, SMALL)()
    solve()
    found: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(rounds):
        for many, seconds in found.items():
            torch.set_num_threads(many)
            start = time.perf_counter()
            solve()
            seconds.append(time.perf_counter() - start)
    one, two = min(found[1]), min(found[2])
    return {"problem": name, "n": size, "one": one, "two": two, "two_over_one": two / one}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", nargs="+", default=list(SIZES), choices=list(SIZES))
    parts = ["cold", "small", "threads"]
    parser.add_argument("--only", nargs="+", default=parts, choices=parts)
    parser.add_argument("--repeats", type=int, default=200, help="number of small calls")
    parser.add_argument("--rounds", type=int, default=3, help="runs with each number of threads")
    parser.add_argument("--json", action="store_true", help="print only records")
    options = parser.parse_args()
    names, found = options.problems, {}
    if "cold" in options.only:
        found["cold"] = [cold(name) for name in names]
    if "small" in options.only:
        found["small"] = [small(name, options.repeats) for name in names]
    if "threads" in options.only:
        cells = [(name, size) for name in names for size in SIZES[name]]
        found["threads"] = [threads(*cell, options.rounds) for cell in cells]
    if options.json:
        print(json.dumps(found))
        return
    for part, records in found.items():
        for record in records:
            words = [f"{x:.3g}" if isinstance(x, float) else f"{x}" for x in record.values()]
            print(part, *(f"{key} {word}" for key, word in zip(record, words, strict=True)))


if __name__ == "__main__":
    main()
