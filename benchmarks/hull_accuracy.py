"""How many whole hulls are right, by size and kind of cloud, and with other splits."""

from __future__ import annotations

import argparse
import json

import torch
from rich.console import Console
from rich.table import Table

from diconet.core.coin import RandomSplit
from diconet.core.model import DiCoNet
from diconet.core.noise import phase_generator
from diconet.nets.axes import AcrossSplit
from diconet.nets.classic import MedianSplit
from diconet.problems.hull.clouds import CLOUDS
from diconet.problems.hull.problem import PROBLEM
from diconet.problems.networks import find, shipped
from diconet.problems.problem import Instances

SPLITS = {
    "median": MedianSplit,
    "random": RandomSplit,
    "across": AcrossSplit,
    "sweep": lambda: shipped("kmeans").split,  # one cut per node, learned for clusters
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="hull", help="shipped weights by name, or a file")
    parser.add_argument("--clouds", nargs="+", default=["uniform"])
    parser.add_argument("--sizes", type=int, nargs="+", default=[25, 50, 100, 200])
    parser.add_argument("--num-sets", type=int, default=4_096)
    parser.add_argument("--split", choices=["learned", *SPLITS], default="learned")
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--json", action="store_true", help="print only records")
    options = parser.parse_args()

    torch.set_num_threads(1)
    model = find(options.model)
    if options.split != "learned":
        model = DiCoNet(SPLITS[options.split](), model.merge, model.growth)
    records = []
    table = Table(title=f"{options.num_sets:,} sets each, {options.split} split: percent")
    for column in ("cloud", "n", "accuracy", "area", "F1", "proved"):
        table.add_column(column, justify="right")
    for cloud in options.clouds:
        for size in options.sizes:
            rng = phase_generator("test", options.seed, size)
            clouds = Instances([], list(CLOUDS[cloud](options.num_sets, size, rng).numpy()))
            graded = PROBLEM.grade(clouds, PROBLEM.solve(clouds, model=model))
            records.append({"cloud": cloud, "split": options.split, "size": size, **graded})
            table.add_row(cloud, f"{size:,}", *(f"{value:.2f}" for value in graded.values()))
    if options.json:
        print(json.dumps(records))
    else:
        Console().print(table)


if __name__ == "__main__":
    main()
