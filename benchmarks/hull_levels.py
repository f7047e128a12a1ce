"""Where hulls go wrong: the levels at which corners are lost, and what is one too many at the end.

python benchmarks/hull_levels.py [NAME_OR_FILE ...] [--num-sets N] [--json]
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from diconet.core.coin import RandomSplit
from diconet.core.model import DiCoNet
from diconet.core.noise import seeds_from
from diconet.core.segments import owner_of, segment_sum
from diconet.core.tree import fold_levels, grow
from diconet.problems.hull.recipe import SIZES
from diconet.problems.hull.task import HullTask, exact
from diconet.problems.networks import find


@torch.no_grad()
def losses(model: DiCoNet, size: int, num_sets: int) -> tuple[float, list[float], float]:
    """Shares of sets: answered right; by level, the root's first, where a corner was lost that no
    level below had lost yet; with all corners at the end and others besides."""
    task, rng = HullTask(), torch.Generator().manual_seed(0)
    sets = task.sample(num_sets, size, rng=rng)
    target = task.oracle(sets)
    seeds = seeds_from(rng, num_sets) if isinstance(model.split, RandomSplit) else None
    assert model.merge is not None
    answers = fold_levels(model.merge, grow(model.split, sets, model.growth, seeds))
    corner, owner = target.rows(sets), owner_of(target.sizes)
    wrong, shares = torch.zeros(num_sets, dtype=torch.bool), []
    for answer in reversed(answers):
        left = torch.zeros(sets.num_items)
        left[answer.sets.index] = 1
        now = segment_sum(1 - left[corner], owner, num_sets) > 0
        shares.append((now & ~wrong).float().mean().item())
        wrong |= now
    right = exact(answers[0].solution, target).float().mean().item()
    return right, shares[::-1], 1 - right - wrong.float().mean().item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", default=["hull_random", "hull_diconet_reg"])
    parser.add_argument("--num-sets", type=int, default=1_024)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    records: list[dict[str, Any]] = []
    for name in options.models:
        model = find(name)
        for size in SIZES:
            shares = losses(model, size, options.num_sets)
            found = zip(("right", "lost by level", "too many"), shares, strict=True)
            records.append({"model": name, "n": size, **dict(found)})
    if options.json:
        print(json.dumps(records))
        return
    table = Table(title="percent of sets: right, a corner lost at level 0 (root) to 4, too many")
    table.add_column("model", no_wrap=True)
    for column in ("n", "right", *map(str, range(5)), "more"):
        table.add_column(column, justify="right")
    for record in records:
        lost = [percent(share) for share in record["lost by level"]]
        lost += [""] * (5 - len(lost))
        right, extra = percent(record["right"]), percent(record["too many"])
        table.add_row(record["model"], str(record["n"]), right, *lost, extra)
    Console().print(table)


def percent(share: float) -> str:
    """A share as shown in the table."""
    return f"{100 * share:.1f}"


if __name__ == "__main__":
    main()
