"""Learned algorithms and their references: seeds, flat networks, cost and time.

python benchmarks/algorithms.py PART [--json FILE] [--plot FILE]

- seeds: three trainings of each; learned, random and median division, at 64 and 1,000 items
- flat: the general network without division (`network_for`, depth 0), trained for as long
- cost: comparisons and items visited against n, with and without the split regulariser
- large: answers right as a whole and seconds per input, from 64 to a million items
- hull: the same for convex hulls, which are a separate problem
- words: what the shipped networks have learned, as text
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from diconet.core.coin import RandomSplit
from diconet.core.model import DiCoNet
from diconet.core.noise import phase_generator, seeds_from
from diconet.core.sets import SetBatch
from diconet.learn import TrainConfig, train
from diconet.nets.default import network_for
from diconet.nets.forms import Forms
from diconet.nets.rules import RuleMerge
from diconet.problems.algorithms.measure import divided_by
from diconet.problems.algorithms.recipe import COUNTS, TRAINS, built, middle, settled
from diconet.problems.algorithms.solve import chunks
from diconet.problems.algorithms.tasks import TASKS, TRAIN_KINDS
from diconet.problems.catalog import find_problem
from diconet.problems.networks import shipped

SEEDS = (0, 1, 2)
FLAT_SECONDS = 15.0
TIMED = (64, 1_000, 10_000, 100_000, 1_000_000)
COST_SIZES = tuple(2**power for power in range(5, 17))
COST_RANGES = ((32, 2_048), (256, 8_192), (256, 65_536))
COST_LEVELS = 500
"""A tree deeper than this is not measured further: its cost approaches n^2."""
COST_PROBLEMS = ("sort", "select", "closest")


def trained(name: str, seed: int, regulariser: float | None = None) -> DiCoNet:
    """A network trained by its preset, except for the seed and optionally the regulariser."""
    how = replace(TRAINS[name], seed=seed)
    if regulariser is not None:
        how = replace(how, regulariser=regulariser)
    model, task = built(name, seed), TASKS[name](TRAIN_KINDS)
    train(model, task, how, oracle=task.oracle, quiet=True)
    return settled(model, task, how)


@torch.no_grad()
def accuracy(model: DiCoNet, name: str, size: int, num_sets: int, coins: bool = False) -> float:
    """Percentage of answers right as a whole, over all kinds of inputs in turn."""
    task, right = TASKS[name](), 0.0
    most = max(5, 1_000_000 // size)
    for start in range(0, num_sets, most):
        rng = phase_generator("test", 1, size, start)
        sets = task.sample(min(most, num_sets - start), size, rng=rng)
        seeds = seeds_from(rng, len(sets)) if coins else None
        for part in chunks(sets):
            some = sets.take(part).as_roots()
            found = model(some, None if seeds is None else seeds[part]).solution
            right += float(task.right(some, found).double().sum())
    return 100 * right / num_sets


def over_seeds() -> list[dict[str, Any]]:
    records = []
    for name in TASKS:
        for seed in SEEDS:
            start = time.process_time()
            model = trained(name, seed)
            spent = time.process_time() - start
            ways = {
                "untrained": (settled(built(name, seed), TASKS[name](), TRAINS[name]), False),
                "learned": (model, False),
                "random": (divided_by(model, RandomSplit()), True),
                "median": (divided_by(model, middle(name)), False),
            }
            for size in (64, 1_000):
                for way, (network, coins) in ways.items():
                    found = accuracy(network, name, size, 100, coins)
                    row = {"problem": name, "division": way, "seed": seed, "size": size}
                    records.append({**row, "accuracy": found, "training seconds": spent})
                    print(records[-1], flush=True)
    return records


def flat() -> list[dict[str, Any]]:
    """The general network (32,000 to 48,000 parameters), which sees the whole set at once."""
    records = []
    for name in TASKS:
        for seed in SEEDS:
            torch.manual_seed(seed)
            task = TASKS[name](TRAIN_KINDS)
            model = network_for(task, depth=0)
            how = TrainConfig(seconds=FLAT_SECONDS, min_size=2, max_size=32, seed=seed)
            train(model, task, how, quiet=True)
            size_of = sum(weights.numel() for weights in model.parameters())
            for size, num_sets in ((16, 200), (64, 200), (1_000, 20)):
                found = accuracy(model.eval(), name, size, num_sets)
                row = {"problem": name, "seed": seed, "size": size, "parameters": size_of}
                records.append({**row, "accuracy": found})
                print(records[-1], flush=True)
    return records


@torch.no_grad()
def work_of(model: DiCoNet, name: str, size: int) -> dict[str, float]:
    """The cost of one uniform input: items visited by the split, comparisons, and levels."""
    sets = TASKS[name](("uniform",)).sample(4, size, rng=phase_generator("test", 2, size))
    outcome = model(sets)
    inner = [level.sets.sizes[level.inner].sum() for level in outcome.tree.levels]
    looked, compared = float(sum(inner)) / 4, float(outcome.answer.work.mean())
    return {"cost": looked + compared, "compared": compared, "depth": outcome.tree.depth}


def cost() -> list[dict[str, Any]]:
    """Costs with nothing but the learned split to keep cuts balanced."""
    records = []
    for low, high in COST_RANGES:
        print(f"n log n itself, {low:,} to {high:,}: {slope(low, high, n_log_n):.3f}")
    for name in COST_PROBLEMS:
        for regulariser in (0.0, TRAINS[name].regulariser):
            for seed in SEEDS:
                model = trained(name, seed, regulariser)
                line = getattr(model.split, "split", model.split)
                line.share, mine = 0.0, []
                for size in COST_SIZES:
                    row = {"problem": name, "regulariser": regulariser, "seed": seed, "size": size}
                    mine.append({**row, **work_of(model, name, size)})
                    if mine[-1]["depth"] > COST_LEVELS:
                        break
                print(name, regulariser, seed, f"place {float(line.place.detach()):.3f}", mine[-1])
                print(f"  exponents {exponents(mine)}", flush=True)
                records += mine
    return records


def n_log_n(size: int) -> float:
    return size * np.log2(size)


def slope(low: int, high: int, cost_of: Callable[[int], float]) -> float:
    """The exponent of a known cost over the sizes from `low` to `high`."""
    sizes = [size for size in COST_SIZES if low <= size <= high]
    return exponent([{"size": size, "cost": cost_of(size)} for size in sizes])


def exponents(records: list[dict[str, Any]]) -> str:
    """The exponent over each range, and up to which size if a tree was too deep."""
    found = []
    for low, high in COST_RANGES:
        some = [one for one in records if low <= one["size"] <= high]
        last = min(high, records[-1]["size"])
        found.append(f"{low:,} to {last:,}: {exponent(some):.3f}")
    return ", ".join(found)


def exponent(records: list[dict[str, Any]], column: str = "cost") -> float:
    """The slope of log cost against log n."""
    sizes, values = ([float(record[key]) for record in records] for key in ("size", column))
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def plot(records: list[dict[str, Any]], path: Path) -> None:
    """Cost against n, with and without the regulariser, a panel per problem."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2 * len(COST_PROBLEMS), 3.6), layout="constrained")
    axes = figure.subplots(1, len(COST_PROBLEMS))
    for name, ax in zip(COST_PROBLEMS, axes, strict=True):
        for regulariser, colour in ((0.0, "tab:red"), (TRAINS[name].regulariser, "tab:blue")):
            for seed in SEEDS:
                rows = [
                    one
                    for one in records
                    if (one["problem"], one["regulariser"], one["seed"])
                    == (name, regulariser, seed)
                ]
                label = f"regulariser {regulariser:g}" if seed == SEEDS[0] else None
                sizes, costs = ([one[key] for one in rows] for key in ("size", "cost"))
                ax.loglog(sizes, costs, color=colour, label=label, marker=".")
        ax.set_title(name)
        ticks = COST_SIZES[1::3]
        ax.set_xticks(ticks, [f"{size:,}" for size in ticks], minor=False)
        ax.set_xticks([], minor=True)
        ax.set_xlabel("items")
        ax.set_ylabel("items visited + comparisons")
        ax.legend()
    figure.savefig(path, dpi=110)


@torch.no_grad()
def large(names: list[str]) -> list[dict[str, Any]]:
    """The shipped networks on all kinds of inputs in turn; CPU seconds of one uniform input."""
    records: list[dict[str, Any]] = []
    for name in names:
        model, mine = shipped(name).eval(), []
        for size in TIMED:
            sets = TASKS[name](("uniform",)).sample(1, size, rng=phase_generator("time", size))
            model(sets)  # compile and allocate first
            mine.append({"size": size, "seconds": seconds_of(model, sets)})
        for size, num_sets in COUNTS.items():
            right = accuracy(model, name, size, num_sets)
            records.append({"problem": name, "size": size, "inputs": num_sets, "right %": right})
            print(records[-1], flush=True)
        records += [{"problem": name, **one} for one in mine]
        print(name, [(one["size"], round(one["seconds"], 4)) for one in mine])
        say_exponents(mine)
    return records


def seconds_of(model: DiCoNet, sets: SetBatch) -> float:
    """CPU time of one answer: the best of three, since other programs add to it."""
    found, times = [], max(1, 1_000 // sets.num_items)
    for _ in range(3):
        start = time.process_time()
        for _ in range(times):
            model(sets)
        found.append((time.process_time() - start) / times)
    return min(found)


def say_exponents(records: list[dict[str, Any]]) -> None:
    print(f"  time exponent: all sizes {exponent(records, 'seconds'):.3f}")
    for last in (3, 2):
        some = records[-last:]
        found = exponent(some, "seconds")
        print(f"  from {some[0]['size']:,} to {some[-1]['size']:,}: {found:.3f}", flush=True)


def hull() -> list[dict[str, Any]]:
    """The hull problem's own network on uniform points, with its certificate."""
    problem, records = find_problem("hull"), []
    for size, num_sets in COUNTS.items():
        right, spent = 0.0, 0.0
        for number in range(num_sets):
            instances = problem.fresh(size, 1, number)
            start = time.process_time()
            solutions = problem.solve(instances)
            spent += time.process_time() - start
            right += problem.grade(instances, solutions)["accuracy"] / 100
        row = {"problem": "hull", "size": size, "inputs": num_sets, "right": right}
        records.append({**row, "seconds": spent / num_sets})
        print(records[-1], flush=True)
    say_exponents(records)
    return records


def words() -> list[dict[str, Any]]:
    """The forms and rules of the shipped networks, with names for what goes into them."""
    networks: dict[str, Any] = {name: shipped(name).eval() for name in TASKS}
    forms = {
        "sort": (networks["sort"].merge.form, "x y"),
        "select, which side": (networks["select"].split.gate, "k n1 n2"),
        "select, what to ask": (networks["select"].split.asked, "k n1 n2"),
        "closest": (networks["closest"].merge.form, "x y dx dy"),
        "skyline": (networks["skyline"].merge.form, "p1 p2 q1 q2"),
    }
    records = [
        {"problem": name, "says": line}
        for name, (form, names) in forms.items()
        for line in forms_in_words(form, names.split())
    ]
    merge = networks["subarray"].merge
    records += [{"problem": "subarray", "says": line} for line in rules_in_words(merge)]
    records += [{"problem": "closest, reach", "says": f"{networks['closest'].merge.reach:g}"}]
    for record in records:
        print(f"{record['problem']}: {record['says']}")
    return records


def forms_in_words(forms: Forms, names: list[str]) -> list[str]:
    """Each form as one would write it down, with these names for its inputs."""
    weight, pairs = forms.terms()
    products = [" ".join(names[place - 1] for place in pair if place) for pair in pairs.tolist()]
    return [
        " ".join(f"{value:+g} {name}".rstrip() for value, name in terms if value) or "0"
        for row in weight.tolist()
        for terms in [list(zip(row, products, strict=True))]
    ]


def rules_in_words(merge: RuleMerge) -> list[str]:
    """Each channel as the best of its rules."""
    ways: dict[int, list[str]] = {channel: [] for channel in range(merge.num_channels)}
    for made, left, right in merge.allowed():
        halves = ((left, "first"), (right, "second"))
        some = [f"{one} of the {side} half" for one, side in halves if one < merge.num_channels]
        ways[made].append(" + ".join(some))
    return [f"channel {one} = the best of: {'; '.join(each)}" for one, each in ways.items()]


PARTS: dict[str, Any] = {
    "seeds": over_seeds,
    "flat": flat,
    "cost": cost,
    "large": large,
    "hull": hull,
    "words": words,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--problems", default=",".join(TASKS), help="some of them (large only)")
    parser.add_argument("--json", type=Path, help="file to write the records to")
    parser.add_argument("--plot", type=Path, help="file for the picture (cost only)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    names = options.problems.split(",")
    records = large(names) if options.part == "large" else PARTS[options.part]()
    if options.json:
        options.json.write_text(json.dumps(records, indent=1))
    if options.plot:
        plot(records, options.plot)


if __name__ == "__main__":
    main()
