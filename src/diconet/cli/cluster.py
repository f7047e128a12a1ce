"""`diconet solve` with `--workers` or `--scheduler`: solving on Dask."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from inspect import signature
from pathlib import Path
from typing import Any

from diconet.cli.show import console, show
from diconet.io.parse import count


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options that say where Dask runs."""
    parser.add_argument("--workers", type=count, help="number of local Dask workers to start")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="Dask scheduler to connect to")
    parser.add_argument("--memory", help="memory limit of each local worker, such as 2GB")


def is_wanted(options: argparse.Namespace) -> bool:
    """Whether to solve on Dask."""
    if options.memory and options.workers is None:
        raise ValueError(f"--memory must go with --workers; got {options.memory} alone.")
    if options.workers is not None and options.scheduler:
        raise ValueError("--workers must not go with --scheduler; got both.")
    return options.workers is not None or options.scheduler is not None


def solve(options: argparse.Namespace, own: Mapping[str, Any]) -> None:
    """Solves the files that match a pattern; large answers go to files, never into memory."""
    if len(options.files) > 1:
        raise ValueError(f"FILE must be one pattern in quotes on Dask; got {len(options.files)}.")
    (pattern,) = options.files
    if options.plot or (options.out and options.out.suffix != ".csv"):
        raise ValueError("--workers must go with --out in .csv alone, without --plot.")
    from diconet.scale import check_installed, solver_of

    try:
        check_installed()
    except ModuleNotFoundError as error:
        raise ValueError(str(error)) from None
    solver = solver_of(options.task.name)
    from diconet.scale.chunks import paths_of
    from diconet.scale.cluster import connected, in_words

    paths_of(pattern)  # report missing files before workers start
    how = {name: value for name, value in own.items() if value is not None}
    how |= {"model": options.model, "seed": options.seed}
    how |= {"columns": options.columns.split(",")} if options.columns else {}
    how |= {n: v for n in ("device", "decimal") if (v := getattr(options, n)) is not None}
    _, *known = signature(solver).parameters.values()
    if odd := how.keys() - {one.name for one in known}:
        raise ValueError(f"--{min(odd)} must not be used with --workers or --scheduler; got it.")
    if missing := [one.name for one in known if one.default is one.empty and one.name not in how]:
        raise ValueError(f"--{missing[0]} must be given; got none.")
    with connected(options.workers or 1, options.scheduler, options.memory) as client:
        console(stderr=True).print(in_words(client))
        start = time.perf_counter()
        with _bars():
            solution = solver(pattern, **how)
        record = {"instance": pattern, **solution.record()}
        record["seconds"] = time.perf_counter() - start
        if options.out:
            _write(options.out, solution)
    show([record], options.json, f"{options.task.name}: {pattern}")


def _write(path: Path, solution: Any) -> None:
    """Writes the answer as CSV, row by row."""
    import csv

    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(solution.rows())


@contextmanager
def _bars() -> Iterator[None]:
    """Shows one progress bar for the leaves and one for the merges of every pass."""
    from rich.progress import MofNCompleteColumn, Progress

    from diconet.scale.work import reporting

    columns = (*Progress.get_default_columns(), MofNCompleteColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as progress:
        known: dict[str, Any] = {}

        def report(done: Mapping[str, tuple[int, int]]) -> None:
            for kind, (count, total) in done.items():
                if kind not in known:
                    known[kind] = progress.add_task(kind, total=total)
                progress.update(known[kind], completed=count, total=total)

        with reporting(report):
            yield
