"""`diconet solve`: an answer to a file of the user's own."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from diconet.cli.options import add_command, add_own_options, add_task, own_options
from diconet.cli.show import patience, show
from diconet.core.files import check_output
from diconet.io.parse import whole
from diconet.io.source import Source
from diconet.problems.problem import Problem

_PICTURES = (".png", ".svg", ".pdf", ".jpg")


def add(commands: Any, known: Sequence[Problem]) -> None:
    """Adds the command."""
    parser = add_command(commands, "solve", _solve, "answer a file of your own")
    add_task(parser)
    parser.add_argument("file", metavar="FILE", help="see below; - for standard input")
    parser.add_argument("--columns", help="which columns, by name or number from 1, such as x,y")
    add_own_options(parser, "solve", known)
    parser.add_argument("--model", help="shipped weights by name, a weights file or a run folder")
    parser.add_argument("--seed", type=whole, help="draw trees at random; none: the likeliest")
    parser.add_argument("--device", help="where the network works, such as cuda (default: cpu)")
    parser.add_argument("--json", action="store_true", help="print a list of records instead")
    parser.add_argument("--out", type=Path, help="write the answer to a file; see below")
    parser.add_argument("--plot", type=Path, metavar="PICTURE", help="draw it: .png, .svg, .pdf")
    lines = [f"  {one.name:9}{one.files}; --out {', '.join(one.outputs)}" for one in known]
    parser.epilog = "\n".join(["files:", *lines])


def _solve(options: argparse.Namespace, _: list[str]) -> None:
    problem: Problem = options.task
    own = own_options(options, problem)[problem.name]
    _check_outputs(options)
    source = Source.of(options.file)
    # What is wrong with a file is said before torch is loaded.
    instances = problem.read(source, {**own, "columns": options.columns})
    with patience(f"solving {options.file} ..."):
        from diconet.cli.answers import picture, records_of, write_answers

        start = time.perf_counter()
        how = {name: value for name, value in own.items() if name not in instances.given}
        if options.device is not None:
            how["device"] = options.device
        solutions = problem.solve(instances, model=options.model, seed=options.seed, **how)
        spent = (time.perf_counter() - start) / len(solutions)
        records = records_of(instances.names, solutions, spent)
        if options.out:
            write_answers(options.out, records, solutions)
        if options.plot:
            picture(options.plot, solutions)
    show(records, options.json, title=f"{problem.name}: {options.file}")


def _check_outputs(options: argparse.Namespace) -> None:
    """Refuses files that could not be written in the end."""
    if options.out and options.plot and options.out == options.plot:
        raise ValueError(f"--out and --plot must be two files; got {options.out} twice.")
    if options.out:
        check_output(options.out, "--out", options.task.outputs)
    if options.plot:
        check_output(options.plot, "--plot", _PICTURES)
