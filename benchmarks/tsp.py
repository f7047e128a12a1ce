"""Tours: length and time compared with the usual alternatives, in one run.

    python benchmarks/tsp.py                          the solvers, n = 100 .. 10,000
    python benchmarks/tsp.py --equal                  ours and fast-tsp, the same processor time
    python benchmarks/tsp.py --divided                divided and flat search, one thread and two
    python benchmarks/tsp.py --growth                 time and memory from 10^3 to 10^6 cities
    python benchmarks/tsp.py --large                  10^5 cities in 30 s, 10^6 in 300 s
    python benchmarks/tsp.py --tsplib FOLDER          the gap on every .tsp file in a folder
    python benchmarks/tsp.py --pointer-nets FILE      the ratio on the Pointer Networks test set

Every row of ours comes with its control: the same decoder and refinement with the length of an
edge in place of the network's score.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import resource
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
import tsp_references as others
from rich.console import Console
from rich.table import Table

from diconet.core.model import DiCoNet
from diconet.core.sets import SetBatch
from diconet.nets.axes import AcrossSplit
from diconet.problems.networks import find
from diconet.problems.table import standard_error
from diconet.problems.tsp.ablate import length_within
from diconet.problems.tsp.edges import EdgeMerge, scored_once
from diconet.problems.tsp.references import fast_tsp_tour, nearest_neighbour_tour
from diconet.problems.tsp.search.metric import Metric
from diconet.problems.tsp.search.near_lists import candidate_lists
from diconet.problems.tsp.solve import Tour, tsp
from diconet.problems.tsp.table import control
from diconet.problems.tsp.tsplib import read_tsp

Record = dict[str, Any]
INSTANCES = {100: 50, 1_000: 10, 10_000: 3}
"""The number of instances per size, enough to tell ours from the control."""

BEST_KNOWN = {1_000: 1.0265, 10_000: 1.0088, 100_000: 1.0022}
"""Best known tours of the DIMACS uniform instances E1k, E10k.0, E100k.0, over 0.7124 sqrt(n).

Cities near the border make tours longer than the asymptotic constant. Single instances of
100,000 cities differ by about 0.2%.
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+")
    parser.add_argument("--instances", type=int, help="per size; by default fewer for large n")
    parser.add_argument("--model", default="tsp")
    parser.add_argument("--equal", action="store_true")
    parser.add_argument("--divided", action="store_true")
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--tsplib", type=Path)
    parser.add_argument("--pointer-nets", type=Path)
    parser.add_argument(
        "--limit", type=int, default=10_000, help="tours of the Pointer Networks file"
    )
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    models = {"ours": find(args.model), "control": control()}
    if args.growth:
        records = list(growth(models["ours"], args.sizes or [1_000, 10_000, 100_000, 1_000_000]))
    elif args.large:
        records = list(large(args.sizes or [100_000, 1_000_000]))
    elif args.equal:
        sizes = args.sizes or [1_000, 2_000, 5_000, 10_000]
        records = list(equal_time(models["ours"], sizes, args.instances or 10))
    elif args.divided:
        records = list(divided(models["ours"], args.sizes or [10_000], args.instances or 4))
    elif args.tsplib:
        records = list(tsplib(models, args.tsplib))
    elif args.pointer_nets:
        records = list(pointer_nets(models, args.pointer_nets, args.limit))
    else:
        records = list(side_by_side(models, args.sizes or [100, 1_000, 10_000], args.instances))
    show(records, args.json)


def side_by_side(
    models: dict[str, DiCoNet], sizes: list[int], instances: int | None
) -> Iterator[Record]:
    """Mean ratio to the best tour that any method found, its standard error, and mean seconds."""
    warm_up(models)
    for size in sizes:
        many = instances or INSTANCES.get(size, 1)
        rng = np.random.default_rng(size)
        maps = [rng.random((size, 2)) for _ in range(many)]
        lengths: dict[str, list[float]] = {}
        seconds: dict[str, float] = {}
        for name, solve in methods(models, size).items():
            start = time.perf_counter()
            tours = [solve(cities) for cities in maps]
            seconds[name] = (time.perf_counter() - start) / many
            lengths[name] = [Metric.of(c).length(t) for c, t in zip(maps, tours, strict=True)]
        # fast-tsp for the times that ours took, and for a long time as the reference
        for name in ("ours 2opt", "ours lk"):
            budget = seconds[name]
            timed = f"fast-tsp as long as {name}"
            start = time.perf_counter()
            tours = [fast_tsp_tour(cities, budget) for cities in maps]
            seconds[timed] = (time.perf_counter() - start) / many
            lengths[timed] = [Metric.of(c).length(t) for c, t in zip(maps, tours, strict=True)]
        best = np.min(list(lengths.values()), axis=0)
        for name, found in lengths.items():
            ratio = np.array(found) / best
            yield {
                "n": size,
                "method": name,
                "ratio": float(ratio.mean()),
                "error": float(ratio.std() / many**0.5),
                "seconds": seconds[name],
            }


def methods(models: dict[str, DiCoNet], size: int) -> dict[str, Callable[[np.ndarray], np.ndarray]]:
    """The methods compared at a size; the slowest only where they finish."""
    found: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "nearest neighbour": nearest_neighbour_tour,
        "random insertion": others.random_insertion_tour,
    }
    for name, model in models.items():
        for refine in ("none", "2opt", "lk"):
            found[f"{name} {refine}"] = _solver(model, refine)
    long = {100: 0.5, 1_000: 5.0}.get(size, 30.0)
    found[f"fast-tsp {long:g} s"] = lambda cities: fast_tsp_tour(cities, long)
    if size <= 1_000:
        limit = 1.0 if size <= 100 else 10.0
        found[f"OR-Tools {limit:g} s"] = lambda cities: others.ortools_tour(cities, limit)
        if importlib.util.find_spec("elkai"):
            found["elkai (LKH)"] = others.elkai_tour
    return found


def _solver(model: DiCoNet, refine: str) -> Callable[[np.ndarray], np.ndarray]:
    def solve(cities: np.ndarray) -> np.ndarray:
        return one(cities, model, refine).tour

    return solve


def one(cities: Any, model: DiCoNet, refine: str, **options: Any) -> Tour:
    found = tsp(cities, model=model, refine=refine, **options)
    assert isinstance(found, Tour)
    return found


def warm_up(models: dict[str, DiCoNet]) -> None:
    """Compiles every kernel, so that no method pays for it."""
    rng = np.random.default_rng(0)
    for model in models.values():
        for refine in ("none", "2opt", "lk"):
            for size in (50, 1_500):
                one(rng.random((size, 2)), model, refine)
    nearest_neighbour_tour(rng.random((9, 2)))
    others.random_insertion_tour(rng.random((9, 2)))


def equal_time(model: DiCoNet, sizes: list[int], instances: int) -> Iterator[Record]:
    """Ours and fast-tsp with the same processor time, on uniform and on clustered cities."""
    warm_up({"ours": model})
    for size in sizes:
        for kind in ("uniform", "clustered"):
            longer, seconds = [], []
            for number in range(instances):
                cities = drawn(kind, size, np.random.default_rng([size, number]))
                start = time.process_time()
                ours = one(cities, model, "lk").value
                seconds.append(time.process_time() - start)
                theirs = Metric.of(cities).length(as_long(cities, seconds[-1]))
                longer.append(100 * (ours / theirs - 1))
            yield {
                "n": size,
                "cities": kind,
                "processor seconds": float(np.mean(seconds)),
                "ours longer by %": float(np.mean(longer)),
                "error": standard_error(np.array(longer)),
            }


def divided(model: DiCoNet, sizes: list[int], instances: int) -> Iterator[Record]:
    """Search through a tree and without, 500 microseconds per city; with two threads, wall time."""
    assert isinstance(model.merge, EdgeMerge)
    warm_up({"ours": model})
    for size in sizes:
        shorter: dict[int, list[float]] = {1: [], 2: []}
        for number in range(instances):
            cities = np.random.default_rng([size, number, 1]).random((size, 2))
            with torch.inference_mode():
                signal = scored_once(model.merge, SetBatch.of([torch.from_numpy(cities).float()]))
                how = (*signal.candidates()[0], candidate_lists(cities, signal.likely(5)[0]))
            for threads, found in shorter.items():
                tree, flat = (
                    length_within(5e-4 * size, Metric.of(cities), *how, split, 0, threads)
                    for split in (AcrossSplit(), None)
                )
                found.append(100 * (1 - tree / flat))
        for threads, found in shorter.items():
            error = standard_error(np.array(found))
            figures = {"divided shorter by %": float(np.mean(found)), "error": error}
            yield {"n": size, "threads": threads, "seconds": 5e-4 * size, **figures}


def as_long(cities: np.ndarray, work: float) -> np.ndarray:
    """fast-tsp's tour in that much CPU time; its own limit is wall-clock time."""
    seconds = work
    while True:
        start = time.process_time()
        tour = fast_tsp_tour(cities, seconds)
        used = time.process_time() - start
        if used > 0.95 * work:
            return tour
        seconds *= max(1.1, work / max(used, 1e-3))


def large(sizes: list[int]) -> Iterator[Record]:
    """The default call with 300 microseconds per city: time kept, memory, and the usual ratio."""
    one(np.random.default_rng(0).random((2_500, 2)), find("tsp"), "lk", kicks=1)
    for size in sorted(sizes):
        cities = np.random.default_rng(size).random((size, 2))
        start, work = time.perf_counter(), time.process_time()
        found = tsp(cities, seconds=3e-4 * size)
        assert isinstance(found, Tour)
        yield {
            "n": size,
            "seconds asked": 3e-4 * size,
            "seconds": time.perf_counter() - start,
            "processor seconds": time.process_time() - work,
            "peak GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
            "ratio to 0.7124 sqrt(n) (1 + 0.33 / n)": found.value / usual(size),
            "ratio to a shortest tour, about": found.value / usual(size) / BEST_KNOWN[size]
            if size in BEST_KNOWN
            else None,
        }


def usual(size: int) -> float:
    """The length of a shortest tour through `size` uniform cities, for large n."""
    return float(0.7124 * size**0.5 * (1 + 0.33 / size))


def drawn(kind: str, size: int, rng: np.random.Generator) -> np.ndarray:
    """Uniform cities, or clusters of a hundred with a spread of 2% of the side."""
    if kind == "uniform":
        return rng.random((size, 2))
    centres = rng.random((max(size // 100, 1), 2))
    return centres[rng.integers(len(centres), size=size)] + rng.normal(0, 0.02, (size, 2))


def growth(model: DiCoNet, sizes: list[int]) -> Iterator[Record]:
    """Time and peak memory of "lk" per size, smallest first; then the exponent.

    The exponent is that of CPU time, which does not depend on what else the machine does.
    """
    warm_up({"ours": model})
    records = []
    for size in sorted(sizes):
        records.append(measure_once(model, size))
        yield records[-1]
    steps = np.log([(r["n"], r["processor seconds"]) for r in records]).T
    yield {"n": "exponent", "processor seconds": float(np.polyfit(*steps, 1)[0])}


def measure_once(model: DiCoNet, size: int) -> Record:
    cities = np.random.default_rng(size).random((size, 2))
    start, work = time.perf_counter(), time.process_time()
    found = one(cities, model, "lk")
    seconds, work = time.perf_counter() - start, time.process_time() - work
    plain = one(cities, control(), "lk").value
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {
        "n": size,
        "seconds": seconds,
        "processor seconds": work,
        "peak GB": peak,
        "ratio to 0.7124 sqrt(n) (1 + 0.33 / n)": found.value / usual(size),
        "control": plain / usual(size),
    }


def tsplib(models: dict[str, DiCoNet], folder: Path) -> Iterator[Record]:
    """The gap to the optimum, in percent, on every file, and the mean."""
    records: list[Record] = []
    for path in sorted(folder.glob("*.tsp")):
        instance = read_tsp(path)
        record: Record = {"file": instance.name, "optimum": instance.optimum}
        for name, model in models.items():
            for refine in ("none", "2opt", "lk"):
                record[f"{name} {refine}"] = 100 * one(instance, model, refine).gap
        records.append(record)
        yield record
    columns = [key for key in records[0] if " " in key]
    yield {"file": "mean", **{key: float(np.mean([r[key] for r in records])) for key in columns}}


def pointer_nets(models: dict[str, DiCoNet], path: Path, limit: int) -> Iterator[Record]:
    """Mean ratio to the exact tours of the file, and how many of ours are as short."""
    lines = path.read_text().splitlines()[:limit]
    maps, best = [], []
    for line in lines:
        numbers, _, answer = line.partition("output")
        maps.append(np.array(numbers.split(), dtype=float).reshape(-1, 2))
        tour = np.array(answer.split(), dtype=int)[:-1] - 1
        best.append(Metric.of(maps[-1]).length(tour))
    for name, model in models.items():
        for refine in ("none", "2opt"):
            found = tsp(maps, model=model, refine=refine)
            assert isinstance(found, list)
            ratio = np.array([tour.value for tour in found]) / np.array(best)
            yield {
                "method": f"{name} {refine}",
                "tours": len(ratio),
                "ratio": float(ratio.mean()),
                "optimal %": float(100 * (ratio < 1 + 1e-6).mean()),
            }


def show(records: list[Record], as_json: bool) -> None:
    if as_json:
        print(json.dumps(records))
        return
    columns = list(dict.fromkeys(key for record in records for key in record))
    table = Table(*columns)
    for record in records:
        cells = (record.get(key) for key in columns)
        table.add_row(
            *("" if c is None else f"{c:.4f}" if isinstance(c, float) else str(c) for c in cells)
        )
    Console(width=max(100, 18 * len(columns))).print(table)


if __name__ == "__main__":
    main()
