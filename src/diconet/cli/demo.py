"""`diconet demo`: one instance of each problem, beside a reference and an oracle."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diconet.cli.options import add_command, add_tasks
from diconet.cli.show import patience, show
from diconet.problems.catalog import problems
from diconet.problems.problem import Problem, Record

if TYPE_CHECKING:
    import numpy as np


def add(commands: Any, known: Sequence[Problem]) -> None:
    """Adds the command."""
    parser = add_command(commands, "demo", _demo, "one instance of each problem, solved")
    add_tasks(parser)
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder for the pictures")
    parser.add_argument("--json", action="store_true")


def _demo(options: argparse.Namespace, _: list[str]) -> None:
    shown = options.tasks or [one for one in problems() if one.name in one.weights]
    with patience("solving one instance of each problem ..."):
        records = demo(options.out, shown)
    show(records, options.json, title="one instance of each problem")
    if not options.json:
        print(f"pictures: {options.out}")


def demo(
    folder: Path, shown: Sequence[Problem], *, scale: float = 1.0, seed: int = 0
) -> list[Record]:
    """One record per problem; the pictures go to `folder`.

    `seconds` are those of our answer alone, once compiled. With a `scale` below 1 the instances are
    smaller.
    """
    import numpy as np

    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    return [_record(one, rng, scale, folder) for one in shown]


def _record(problem: Problem, rng: np.random.Generator, scale: float, folder: Path) -> Record:
    example = problem.demo(rng, scale)
    problem.solve(example.instances)  # so that compiling is not timed
    start = time.perf_counter()
    (solution,) = problem.solve(example.instances)
    seconds = time.perf_counter() - start
    picture = solution.save_levels(folder / f"{problem.name}.png")
    by, best = (None, None) if example.oracle is None else example.oracle
    return {
        "task": problem.name,
        "instance": example.text,
        "measure": example.measure,
        "ours": solution.value,
        "reference": example.reference[1](),
        "reference by": example.reference[0],
        "oracle": None if best is None else best(),
        "oracle by": by,
        "seconds": seconds,
        "picture": picture.name,
    }
