"""The engine's speed: growing trees on up to a million points, with and without batched levels.

python benchmarks/engine.py [--json]
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import time

import torch
from rich.console import Console
from rich.table import Table

from diconet.core.host import keep_freed_memory
from diconet.core.model import DiCoNet
from diconet.core.noise import mix, seeds_from
from diconet.core.sets import SetBatch
from diconet.core.tree import Growth, Level, children, grow
from diconet.nets.classic import Balanced
from diconet.nets.pointer import Pointed, PointerMerge
from diconet.nets.set_split import SetSplit
from diconet.problems.hull.task import HullTask
from diconet.problems.networks import shipped

SIZES = (1_000, 10_000, 100_000, 1_000_000)


def peak_megabytes() -> float:
    """The peak memory of this process."""
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def grow_once(size: int) -> dict[str, float]:
    """Time and extra peak memory of one tree, leaves of at most 16 points."""
    split = Balanced(shipped("hull_diconet_reg").split, share=0.4)
    points = torch.rand(size, 2, generator=torch.Generator().manual_seed(0))
    sets = SetBatch.of([points])
    with torch.no_grad():
        grow(split, SetBatch.of([points[:1_000]]), Growth(leaf_size=16))  # warm up
        before = peak_megabytes()
        times = []
        for _ in range(3 if size < 1_000_000 else 1):
            start = time.perf_counter()
            tree = grow(split, sets, Growth(leaf_size=16))
            times.append(time.perf_counter() - start)
    return {
        "points": size,
        "levels": tree.depth,
        "seconds": min(times),
        "megabytes": peak_megabytes() - before,
    }


def growth_table() -> list[dict[str, float]]:
    """One process per size, so that each size has its own memory peak."""
    records = []
    for size in SIZES:
        command = [sys.executable, __file__, "--grow", str(size)]
        out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        records.append(json.loads(out))
    return records


def exponent(records: list[dict[str, float]], field: str) -> float:
    """Slope of a least-squares line through (log points, log field)."""
    xs = [math.log(r["points"]) for r in records]
    ys = [math.log(max(r[field], 1e-9)) for r in records]
    mx, my = sum(xs) / len(xs), sum(ys) / len(ys)
    over = sum((x - mx) * (y - my) for x, y in zip(xs, ys, strict=True))
    return over / sum((x - mx) ** 2 for x in xs)


def one_by_one(model: DiCoNet, sets: SetBatch, seeds: torch.Tensor, target) -> torch.Tensor:
    """The same network without batching: example by example, node by node."""
    total = torch.zeros(())
    for i, (items, goal) in enumerate(zip(sets.unpack(), target.unpack(), strict=True)):
        one = SetBatch.of([items])
        answer = _solve_node(model, one, one, seeds[i : i + 1], 0, type(target).of([goal]))
        total = total - answer.log_prob.sum()
    return total / len(sets)


def _solve_node(
    model: DiCoNet, roots: SetBatch, node: SetBatch, seed: torch.Tensor, depth: int, target
) -> Pointed:
    nothing = torch.zeros(0, dtype=torch.long)
    here = torch.zeros(1, dtype=torch.long)
    limit = int(model.growth.cuts(roots.sizes)[0])
    if depth == limit or int(node.sizes[0]) <= model.growth.leaf_size:
        return model.merge(Level(depth, roots, node, here, nothing), None, target)
    cut = model.split(node, seed)
    parts = children(node, cut)
    answers = [
        _solve_node(model, roots, parts.take(torch.tensor([k])), mix(seed, k), depth + 1, target)
        for k in (0, 1)
    ]
    return model.merge(Level(depth, roots, node, here, here), _side_by_side(answers), target)


def _side_by_side(answers: list[Pointed]) -> Pointed:
    a, b = answers
    routes = torch.cat([a.routes, b.routes])
    return Pointed(a.roots, SetBatch.cat([a.sets, b.sets]), max(a.depth, b.depth), routes)


def throughput(num_sets: int = 64, size: int = 50) -> dict[str, float]:
    """Training examples per second, forward and backward, batched by level and one by one."""
    torch.manual_seed(0)
    model = DiCoNet(SetSplit(2), PointerMerge(2, 64, patience=0.4), Growth(halve_to=12.5))
    task = HullTask()
    rng = torch.Generator().manual_seed(0)
    sets = task.sample(num_sets, size, rng=rng)
    target, seeds = task.oracle(sets), seeds_from(rng, num_sets)

    def batched() -> torch.Tensor:
        return -model(sets, seeds, target).log_prob.mean()

    def separate() -> torch.Tensor:
        return one_by_one(model, sets, seeds, target)

    losses, seconds = [], []
    for way in (batched, separate):
        way().backward()  # warm up
        start = time.perf_counter()
        loss = way()
        loss.backward()
        seconds.append(time.perf_counter() - start)
        losses.append(loss.item())
    assert abs(losses[0] - losses[1]) < 1e-3 * abs(losses[0]), losses
    return {
        "batched": num_sets / seconds[0],
        "one by one": num_sets / seconds[1],
        "ratio": seconds[1] / seconds[0],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--grow", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    keep_freed_memory()
    if options.grow:
        print(json.dumps(grow_once(options.grow)))
        return
    records = growth_table()
    for record in records:
        record["exponent of time"] = exponent(records, "seconds")
        record["exponent of memory"] = exponent(records[-3:], "megabytes")
    speed = throughput()
    if options.json:
        print(json.dumps([*records, speed]))
        return
    table = Table(title="growing a tree, leaves of at most 16 points", title_justify="left")
    for name in ("points", "levels", "seconds", "megabytes"):
        table.add_column(name, justify="right")
    for record in records:
        row = (record["points"], record["levels"], record["seconds"], record["megabytes"])
        table.add_row(f"{row[0]:,}", str(row[1]), f"{row[2]:.3f}", f"{row[3]:.0f}")
    console = Console(width=100)
    console.print(table)
    console.print(f"time grows like n^{records[0]['exponent of time']:.2f},")
    console.print(f"memory (from 10^4 on) like n^{records[0]['exponent of memory']:.2f}")
    console.print(
        f"training examples per second: {speed['batched']:.0f} with levels batched, "
        f"{speed['one by one']:.1f} one by one: a factor of {speed['ratio']:.1f}"
    )


if __name__ == "__main__":
    main()
