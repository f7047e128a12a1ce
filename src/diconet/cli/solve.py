"""`diconet solve`: an answer to a file of the user's own."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diconet.cli.options import TASKS, add_command, count, number, one_of, whole
from diconet.cli.show import patience, show

if TYPE_CHECKING:
    from diconet.cli.instances import Instances

_OWN_OPTIONS = {
    "columns": ("hull", "kmeans", "tsp"),
    "repair": ("hull",),
    "k": ("kmeans",),
    "capacity": ("knapsack",),
    "refine": ("tsp",),
    "seconds": ("tsp",),
    "optimum": ("tsp",),
}


def add(commands: Any) -> None:
    """Adds the command."""
    parser = add_command(commands, "solve", _solve, "answer a file of your own", tasks=TASKS)
    parser.add_argument(
        "file",
        metavar="FILE",
        help="CSV with or without a header, .npy or JSON; for tsp also TSPLIB, for knapsack also"
        " Pisinger's CSV; - for standard input",
    )
    parser.add_argument("--columns", help="which columns, by name or number from 1, such as x,y")
    parser.add_argument("--k", type=count, help="kmeans: the number of clusters")
    parser.add_argument("--capacity", type=number, help="knapsack: where FILE does not hold it")
    parser.add_argument("--repair", action="store_true", help="hull: Qhull where not proved right")
    parser.add_argument(
        "--refine", type=one_of("none", "2opt", "lk"), help="tsp: none, 2opt (default) or lk"
    )
    parser.add_argument("--seconds", type=number, help="tsp: most time an instance for lk")
    parser.add_argument("--optimum", type=number, help="tsp: the shortest length, if you know it")
    parser.add_argument("--model", help="shipped weights by name, or a weights file")
    parser.add_argument("--seed", type=whole, help="draw trees at random; none: the likeliest")
    parser.add_argument("--json", action="store_true", help="print a list of records instead")
    parser.add_argument("--out", type=Path, help="write the answer: .csv, .json, .npy; tsp: .tour")
    parser.add_argument("--plot", type=Path, metavar="PICTURE", help="draw it: .png, .svg, .pdf")


def _solve(options: argparse.Namespace, _: list[str]) -> None:
    _check_options(options)
    with patience(f"solving {options.file} ..."):
        from diconet.cli.answers import check_outputs, picture, records_of, write_answers
        from diconet.cli.instances import read_instances

        check_outputs(options.task, options.out, options.plot)
        instances = read_instances(options)
        start = time.perf_counter()
        solutions = _solver(options)(instances)
        spent = (time.perf_counter() - start) / len(solutions)
        records = records_of(instances.names, solutions, spent)
        if options.out:
            write_answers(options.out, records, solutions)
        if options.plot:
            picture(options.plot, solutions)
    title = f"{options.task}: {options.file}"
    show(records, options.json, title=title)


def _check_options(options: argparse.Namespace) -> None:
    for name, tasks in _OWN_OPTIONS.items():
        given = getattr(options, name)
        if given is not None and given is not False and options.task not in tasks:
            raise ValueError(f"--{name} must go with {' or '.join(tasks)}; got {options.task}.")
    if options.out and options.plot and options.out == options.plot:
        raise ValueError(f"--out and --plot must be two files; got {options.out} twice.")


def _solver(options: argparse.Namespace) -> Callable[[Instances], list[Any]]:
    """The library's function for the task, with the options that were given."""
    import diconet

    common = {"model": options.model, "seed": options.seed}

    def hull(found: Instances) -> Any:
        return diconet.convex_hull(found.data, repair=options.repair, **common)

    def kmeans(found: Instances) -> Any:
        return diconet.kmeans(found.data, found.limits, **common)

    def knapsack(found: Instances) -> Any:
        values, weights = ([one[side] for one in found.data] for side in (0, 1))
        return diconet.knapsack(values, weights, found.limits, **common)

    def tsp(found: Instances) -> Any:
        search = {"refine": options.refine or "2opt", "seconds": options.seconds}
        return found.with_optima(diconet.tsp(found.data, **search, **common))

    solvers: dict[str, Callable[[Instances], list[Any]]] = {
        "hull": hull,
        "kmeans": kmeans,
        "knapsack": knapsack,
        "tsp": tsp,
    }
    return solvers[options.task]
