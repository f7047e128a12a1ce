"""`diconet ablate`: what dividing and what learning do, all for the same processor time."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from diconet.cli.options import add_command, add_task
from diconet.cli.show import patience, show
from diconet.io.parse import number, seed, sizes
from diconet.problems.problem import Problem


def add(commands: Any, known: Sequence[Problem]) -> None:
    """Adds the command."""
    summary = "no, random, hand-made and learned division at equal processor time"
    parser = add_command(commands, "ablate", _ablate, summary)
    add_task(parser)
    parser.add_argument("--seconds", type=number, help="processor time of each row per instance")
    parser.add_argument("--sizes", type=sizes, help="set sizes, such as 1000,10000")
    parser.add_argument("--seed", type=seed, default=0, help="what is drawn (default: 0)")
    parser.add_argument("--json", action="store_true")


def _ablate(options: argparse.Namespace, _: list[str]) -> None:
    if options.seconds is not None and not options.seconds > 0:
        raise ValueError(f"--seconds must be above 0; got {options.seconds}.")
    given = {"seconds": options.seconds, "sizes": options.sizes}
    how = {name: value for name, value in given.items() if value is not None}
    with patience(f"dividing {options.task.name} in several ways ..."):
        records = options.task.ablate(seed=options.seed, **how)
    show(records, options.json, title=f"{options.task.name}: what dividing and learning do")
