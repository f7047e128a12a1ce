"""Time and memory of convex hulls as the input grows, compared with SciPy's Qhull.

Every size is measured in a separate process, so that memory peaks do not mix. The growth
exponent is the slope of log time over log size.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table


def measure(cloud: str, size: int, threads: int, seed: int) -> dict[str, Any]:
    """One size: the network's answer with its certificate, then Qhull's on the same points."""
    import torch
    from scipy.spatial import ConvexHull

    from diconet.problems.hull.clouds import CLOUDS
    from diconet.problems.hull.solve import convex_hull

    torch.set_num_threads(threads)
    convex_hull(np.random.default_rng(0).random((100, 2)))  # loads the weights
    points = CLOUDS[cloud](1, size, torch.Generator().manual_seed(seed))[0].numpy()
    repeats = 3 if size <= 100_000 else 1
    before = peak_megabytes()
    ours, cpu, hull = best_time(lambda: convex_hull(points), repeats)
    memory = peak_megabytes() - before
    theirs, _, qhull = best_time(lambda: ConvexHull(points), repeats)
    return {
        "cloud": cloud,
        "n": size,
        "corners": len(hull.indices),
        "seconds": ours,
        "cpu_seconds": cpu,
        "scipy_seconds": theirs,
        "megabytes": memory,
        "certified": bool(hull.exact and not hull.repaired),
        "same_as_scipy": set(hull.indices.tolist()) == set(qhull.vertices.tolist()),
    }


def best_time(call: Callable[[], Any], repeats: int) -> tuple[float, float, Any]:
    """The shortest wall and CPU times (which differ on a busy machine), and the result."""
    wall, cpu, result = [], [], None
    for _ in range(repeats):
        start = time.perf_counter(), time.process_time()
        result = call()
        wall.append(time.perf_counter() - start[0])
        cpu.append(time.process_time() - start[1])
    return min(wall), min(cpu), result


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def exponent(records: list[dict[str, Any]], key: str) -> float:
    sizes = np.log([record["n"] for record in records])
    return float(np.polyfit(sizes, np.log([record[key] for record in records]), 1)[0])


def show(records: list[dict[str, Any]], title: str) -> None:
    table = Table(title=title)
    for column in ("n", "corners", "wall s", "CPU s", "SciPy s", "MB", "certified", "as SciPy"):
        table.add_column(column, justify="right")
    for r in records:
        times = [f"{r[key]:.4f}" for key in ("seconds", "cpu_seconds", "scipy_seconds")]
        checks = (str(r["certified"]), str(r["same_as_scipy"]))
        table.add_row(f"{r['n']:,}", f"{r['corners']:,}", *times, f"{r['megabytes']:.0f}", *checks)
    console = Console()
    console.print(table)
    if len(records) > 1:
        keys = ("seconds", "cpu_seconds", "scipy_seconds")
        wall, cpu, scipy = (exponent(records, key) for key in keys)
        console.print(f"Grows as n^{wall:.2f} (wall), n^{cpu:.2f} (CPU); SciPy as n^{scipy:.2f}.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--cloud", default="uniform", help="kind of points (diconet.problems.hull.clouds)"
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[10**k for k in range(2, 7)])
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print only records")
    options = parser.parse_args()

    jobs = [(options.cloud, n, options.threads, options.seed) for n in options.sizes]
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        records = pool.starmap(measure, jobs, chunksize=1)
    if options.json:
        print(json.dumps(records))
    else:
        show(records, f"Convex hulls, {options.cloud}, {options.threads} threads")


if __name__ == "__main__":
    main()
