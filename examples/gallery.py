"""The gallery: trains every example in this folder from scratch and compares it with a bar.

    python examples/gallery.py [NAME ...] [--quick]

For each task: the reward of the learned division; of random, hand-made and no division with the
same merge; of the classical reference; the bar set for it; and the CPU seconds of the training,
which do not depend on what else the machine does. The exit code says whether all bars are
cleared and the learned division is at least as good as the others in eight tasks of ten.
"""

from __future__ import annotations

import argparse
import sys
import time
from importlib import import_module, util
from types import ModuleType
from typing import Any

import torch

from diconet import (
    DiCoNet,
    Growth,
    SetBatch,
    TrainConfig,
    check_task,
    fold,
    grow,
    network_for,
    train,
)
from diconet.core.coin import RandomSplit
from diconet.core.noise import phase_generator, seeds_from
from diconet.nets.axes import AcrossSplit
from diconet.nets.classic import MedianSplit

TASKS = {
    "two_means": "TwoMeans",
    "max_cut": "MaxCut",
    "graph_colouring": "Colouring",
    "bisection": "Bisection",
    "sorting": "Sorting",
    "skyline": "Skyline",
    "makespan": "Makespan",
    "facility": "Facility",
    "decision_tree": "PureLeaves",
    "routes": "Routes",
}
COLUMNS = ("learned", "random", "hand-made", "none")
TOLERANCE = 0.002
"""Divisions whose rewards differ by less than this share count as equally good."""

NUM_TEST = 200


def settings(example: ModuleType, steps: int) -> TrainConfig:
    """The default settings, at the size of the example."""
    return TrainConfig(
        steps=steps,
        min_size=example.SIZE,
        max_size=example.SIZE,
        batch_size=getattr(example, "BATCH", TrainConfig.batch_size),
        tree_samples=getattr(example, "TREES", TrainConfig.tree_samples),
    )


def rewards(task: Any, model: DiCoNet, sets: SetBatch) -> dict[str, float]:
    """The mean reward of the learned, a random, a hand-made and no division."""
    hand = AcrossSplit() if task.num_features == 2 else MedianSplit()
    seeds = seeds_from(phase_generator("gallery", 1), len(sets))
    trees = {
        "learned": grow(model.split, sets, model.growth),
        "random": grow(RandomSplit(), sets, model.growth, seeds),
        "hand-made": grow(hand, sets, model.growth),
        "none": grow(hand, sets, Growth(depth=0)),
    }
    found = {}
    for name, tree in trees.items():
        answer = tree if model.merge is None else fold(model.merge, tree).solution
        found[name] = task.reward(sets, answer).mean().item()
    return found


def run(name: str, quick: bool) -> dict[str, Any] | None:
    """Trains one example and measures it; None if a package that it needs is missing."""
    example = import_module(name)
    missing = [package for package in getattr(example, "NEEDS", ()) if not util.find_spec(package)]
    if missing:
        print(f"{name:16} skipped: needs {', '.join(missing)}", flush=True)
        return None
    task = getattr(example, TASKS[name])()
    check_task(task)
    torch.manual_seed(0)
    model = network_for(task)
    clock = time.process_time()
    steps = 2 if quick else example.STEPS
    train(model, task, settings(example, steps), quiet=True)
    seconds = time.process_time() - clock
    num = 4 if quick else getattr(example, "TESTS", NUM_TEST)
    sets = task.sample(num, example.SIZE, rng=phase_generator("test", 0, example.SIZE))
    with torch.no_grad():
        row: dict[str, Any] = rewards(task, model, sets)
    best = example.reference(sets)
    bar = example.bar(best)
    others = [row[column] for column in COLUMNS[1:]]
    ahead = all(row["learned"] >= other - TOLERANCE * abs(other) for other in others)
    row |= {"reference": best, "bar": bar, "seconds": seconds, "ahead": ahead}
    row["holds"] = row["learned"] >= bar
    numbers = " ".join(f"{row[key]:10.4f}" for key in (*COLUMNS, "reference", "bar"))
    verdict = f"{'holds' if row['holds'] else 'FAILS':6} {'ahead' if ahead else 'behind':6}"
    print(f"{name:16} {numbers} {verdict} {seconds:5.0f} s  {example.REFERENCE}", flush=True)
    return row


def header() -> None:
    """Prints the names of the columns."""
    names = " ".join(f"{key:>10}" for key in (*COLUMNS, "reference", "bar"))
    print(f"{'task':16} {names} {'':13} {'CPU':>5}", flush=True)


def show(task: Any, module: str) -> None:
    """Runs one example on its own."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="only check that it runs")
    quick = parser.parse_args().quick
    header()
    name = next(key for key, kind in TASKS.items() if kind == type(task).__name__)
    run(name, quick)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="only these tasks")
    parser.add_argument("--quick", action="store_true", help="only check that it runs")
    given = parser.parse_args()
    header()
    rows = [run(name, given.quick) for name in given.names or TASKS]
    done = [row for row in rows if row is not None]
    ahead, held = sum(row["ahead"] for row in done), sum(row["holds"] for row in done)
    print(f"bars cleared: {held} of {len(done)}; learned division ahead in {ahead} of {len(done)}")
    good = held == len(done) and ahead >= 0.8 * len(done)
    return 0 if good or given.quick else 1


if __name__ == "__main__":
    sys.exit(main())
