"""`diconet solve`: solves instances from files."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from diconet.cli import cluster
from diconet.cli.options import add_command, add_own_options, add_shared, add_task, own_options
from diconet.cli.show import patience, show
from diconet.core.files import check_output
from diconet.io.parse import one_of, whole
from diconet.io.source import ENDINGS, Source, ending_of
from diconet.problems.problem import Instances, Problem

_PICTURES = (".png", ".svg", ".pdf", ".jpg")
_TABLES = """files:
  tables   .csv, .tsv, .txt (with or without a header), .json, .jsonl, .geojson, .npy, .npz,
           and with pip install 'diconet[files]' .parquet and .xlsx; each may end in .gz
  --out    the same except .txt: your columns with the answer added;
           .npy holds the answer alone"""


def add(commands: Any, known: Sequence[Problem]) -> None:
    """Adds the command."""
    parser = add_command(commands, "solve", _solve, "solve your own files")
    add_task(parser)
    parser.add_argument("files", metavar="FILE", nargs="+", help="see below; - for standard input")
    parser.add_argument("--columns", help="columns to use, by name or number from 1, such as x,y")
    parser.add_argument(
        "--decimal",
        type=one_of(",", "."),
        help="the decimal sign, if cells look like 1.234,5 or 1,234.5",
    )
    add_own_options(parser, "solve", known)
    parser.add_argument("--seed", type=whole, help="draw random trees (default: the likeliest)")
    add_shared(parser, "--model", "--device", "--json")
    parser.add_argument(
        "--out", type=Path, help="write your rows with the answer added; - to print them"
    )
    parser.add_argument("--plot", type=Path, metavar="PICTURE", help="draw it: .png, .svg, .pdf")
    cluster.add_options(parser)
    lines = [
        f"  {one.name:9}{', '.join([one.own_files, *(f'--out {x}' for x in one.own_outputs)])}"
        for one in known
        if one.own_files
    ]
    parser.epilog = "\n".join([_TABLES, *lines])


def _solve(options: argparse.Namespace, _: list[str]) -> None:
    problem: Problem = options.task
    own = own_options(options, problem)[problem.name]
    writes = {
        one.name: own.pop(one.name) for one in problem.options if one.writes and one.name in own
    }
    _check_outputs(options, writes)
    if cluster.is_wanted(options):
        cluster.solve(options, own | writes)
        return
    # Report problems with a file before torch is loaded.
    asked = {**own, "columns": options.columns, "decimal": options.decimal}
    sources = [Source.of(file) for file in options.files]
    instances = Instances.joined([problem.read(source, asked) for source in sources])
    named = options.files[0] if len(sources) == 1 else f"{len(sources)} files"
    with patience(f"solving {named} ..."):
        from diconet.cli.answers import picture, records_of, write_answers, write_more

        start = time.perf_counter()
        how = {name: value for name, value in own.items() if name not in instances.given}
        if options.device is not None:
            how["device"] = options.device
        solutions = problem.solve(instances, model=options.model, seed=options.seed, **how)
        spent = (time.perf_counter() - start) / len(solutions)
        records = records_of(instances.names, solutions, spent)
        if options.out:
            write_answers(options.out, instances, solutions)
        columns = [problem.columns(table, asked) for table in instances.tables if table is not None]
        for what, path in writes.items():
            write_more(path, what, columns, instances, solutions)
        if options.plot:
            picture(options.plot, solutions)
    show(records, options.json, f"{problem.name}: {named}", stderr=str(options.out) == "-")
    _give_hints(problem, instances, asked)


def _give_hints(problem: Problem, instances: Instances, asked: Mapping[str, Any]) -> None:
    found = [problem.hint(table, asked) for table in instances.tables if table is not None]
    for hint in dict.fromkeys(hint for hint in found if hint is not None):
        print(f"diconet: hint: {hint}", file=sys.stderr)


def _check_outputs(options: argparse.Namespace, writes: Mapping[str, Path]) -> None:
    """Rejects output files that could not be written."""
    tables = {"--out": options.out, **{f"--{name}": path for name, path in writes.items()}}
    given = {name: path for name, path in tables.items() if path is not None}
    if options.plot:
        given["--plot"] = options.plot
    for name, path in given.items():
        if list(given.values()).count(path) > 1:
            raise ValueError(f"{' and '.join(given)} must be different files; got {path} twice.")
        endings = {"--out": (*ENDINGS, ".npy", *options.task.own_outputs), "--plot": _PICTURES}
        allowed = endings.get(name, ENDINGS)
        if str(path) == "-" and name != "--plot":
            if options.json:
                raise ValueError(f"{name} must be a file where --json prints; got -.")
            continue
        if ending_of(path) in (*ENDINGS, ".npy") and name != "--plot":
            allowed = (path.suffix.lower(),)  # .gz may follow
        check_output(path, name, allowed)
