"""K-means: training steps per second, and points of other kinds.

scikit-learn runs on the same points. Times are CPU times, the least of several runs.
Time and cost by size are in `kmeans_grid.py`.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits, load_iris

from diconet.core.model import DiCoNet
from diconet.core.sets import SetBatch
from diconet.core.tree import Growth
from diconet.learn.batches import batch_at
from diconet.learn.config import TrainConfig
from diconet.learn.estimators import node_loss, tree_loss
from diconet.nets.graph_split import GraphSplit
from diconet.nets.sweep import SweepSplit
from diconet.problems.kmeans import references
from diconet.problems.kmeans.solve import kmeans
from diconet.problems.kmeans.task import Gaussian, KMeansTask, Patches, cost_of


def best_time(run: Callable[[], Any], repeats: int) -> float:
    """CPU seconds, the least of several runs, since the machine may be shared."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


def training(repeats: int) -> list[dict[str, Any]]:
    """Steps per second of each estimator, at 32 sets of 80 points and 8 samples."""
    task = KMeansTask(Gaussian(2))
    config = TrainConfig(batch_size=32, tree_samples=8, min_size=80, max_size=80)
    batch = batch_at(0, task, None, config)
    torch.manual_seed(0)
    graph = DiCoNet(GraphSplit(2, width=32, num_layers=6), depth=2)
    sweep = DiCoNet(SweepSplit(), growth=Growth())
    records = []
    for name, model, loss in (
        ("graph, REINFORCE over trees", graph, tree_loss),
        ("sweep, credit node by node", sweep, node_loss),
    ):

        def step(model: DiCoNet = model, loss: Any = loss) -> None:
            loss(model, task, batch, config)[0].backward()

        step()
        rate = 1 / best_time(step, repeats)
        records.append({"what": "training", "network": name, "steps_per_second": rate})
    return records


def elsewhere() -> list[dict[str, Any]]:
    """Cost relative to ten starts of Lloyd, on points that are in no column of the paper.

    Ours as leaves of a tree, after exchanges, and after Lloyd's algorithm; "min_cost" is the last
    with unlearned cuts and exchanges.
    """
    rng = torch.Generator().manual_seed(0)
    digits, iris = load_digits().data / 16, load_iris().data
    patches = Patches.photographs().draw(1, 2_000, 1, rng=rng)
    kinds: dict[str, tuple[list[torch.Tensor], tuple[int, ...]]] = {
        "uneven clusters, d=2": (_uneven(2, rng), (5, 12)),
        "uneven clusters, d=10": (_uneven(10, rng), (5, 12)),
        "uniform square": ([torch.rand(500, 2, generator=rng) for _ in range(20)], (3, 7, 16)),
        "iris": ([torch.from_numpy(iris).float()], (3, 7)),
        "digits": ([torch.from_numpy(digits).float()], (10, 23)),
        "photographs": ([patches], (7, 24)),
    }
    records = []
    for kind, (clouds, counts) in kinds.items():
        for k in counts:
            sets = SetBatch.of(clouds, torch.full((len(clouds), 1), float(k)))
            bar = cost_of(sets, references.lloyd(sets)).mean()
            arrays = [points.numpy() for points in clouds]
            ways: dict[str, dict[str, Any]] = {
                "tree": {"exchange": False, "lloyd": 0},
                "exchange": {"lloyd": 0},
                "and_lloyd": {},
                "min_cost": {"model": references.min_cost("proportional")},
            }
            record: dict[str, Any] = {"what": "elsewhere", "points": kind, "k": k}
            for name, options in ways.items():
                answers = kmeans(arrays, [k] * len(arrays), **options)
                record[name] = np.mean([a.value for a in answers]).item() / bar.item()  # type: ignore[union-attr]
            for name, labels in {
                "bisecting": references.bisecting(sets),
                "one_start": references.lloyd(sets, restarts=1),
            }.items():
                record[name] = (cost_of(sets, labels).mean() / bar).item()
            records.append(record)
    return records


def _uneven(features: int, rng: torch.Generator) -> list[torch.Tensor]:
    task = KMeansTask(Gaussian(features, uneven=0.7), (12,))
    return task.sample(20, 300, rng=rng).unpack()


def measure(repeats: int = 3) -> list[dict[str, Any]]:
    """Everything about k-means, as flat records."""
    return training(repeats) + elsewhere()


def show(records: list[dict[str, Any]]) -> None:
    for what in dict.fromkeys(record["what"] for record in records):
        some = [{k: v for k, v in r.items() if k != "what"} for r in records if r["what"] == what]
        table = Table(title=f"K-means: {what}", title_justify="left")
        names = list(dict.fromkeys(name for record in some for name in record))
        for name in names:
            table.add_column(name, justify="right")
        for record in some:
            cells = (record.get(name, "") for name in names)
            table.add_row(*(f"{v:.4g}" if isinstance(v, float) else str(v) for v in cells))
        Console().print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="print only records")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    records = measure(options.repeats)
    if options.json:
        print(json.dumps(records))
    else:
        show(records)


if __name__ == "__main__":
    main()
