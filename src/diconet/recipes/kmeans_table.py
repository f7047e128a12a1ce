"""The paper's table of k-means (section 6.2): its nine columns, its rows, and ours below them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from math import log2
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from diconet.best_first import grow_best_first
from diconet.clusters import cost_of, lloyd_steps, node_cost
from diconet.merges.exchange import ExchangeMerge, exchanged
from diconet.model import DiCoNet
from diconet.references import kmeans as references
from diconet.sets import SetBatch
from diconet.splits.graph import GraphSplit
from diconet.splits.softmax import SoftmaxLabels
from diconet.tasks.kmeans import Gaussian, KMeansTask, Patches, Points
from diconet.tree import Growth, PartitionTree, fold, grow
from diconet.weights import shipped

Data = Literal[
    "gaussian2", "gaussian10", "uneven2", "uneven10", "broad2", "broad5", "cifar", "photographs"
]
SIZES = (80, 160, 320)
CLUSTERS = (4, 8, 16)
DEFAULT_MODEL = "kmeans"
CIFAR_VARIABLE = "DICONET_CIFAR10"
"""An environment variable that may name the folder of CIFAR-10."""

PAPER: dict[str, tuple[float, ...]] = {
    "Baseline / Lloyd": (1.8, 3.1, 3.5, 1.14, 5.7, 12.5, 1.02, 1.07, 1.41),
    "DiCoNet / Lloyd": (2.3, 2.1, 2.1, 1.6, 6.3, 8.5, 1.04, 1.05, 1.2),
    "Baseline / Rec. Lloyd": (0.7, 1.5, 1.7, 0.15, 0.65, 1.25, 1.01, 1.04, 1.21),
    "DiCoNet / Rec. Lloyd": (0.9, 1.01, 1.02, 0.21, 0.72, 0.85, 1.02, 1.02, 1.07),
}
"""The paper's table, for k = 4, 8, 16 of each of the three kinds of points."""

EXCHANGE = " with exchange"
"""What a row is called whose tree is folded by `ExchangeMerge`."""

LLOYD_STEPS = 5
"""Steps of Lloyd's algorithm after our own rows."""

_OURS = "Sweep"
_PATCHES = 500
_CHUNK_ITEMS = 2_000


def points_of(name: Data, cifar: str | Path | None, phase: Literal["train", "test"]) -> Points:
    """The source of points that goes by a name."""
    if name == "cifar":
        folder = cifar_folder(cifar)
        if folder is None:
            raise ValueError(f"cifar must name a folder (or {CIFAR_VARIABLE} must); got none.")
        subset = "data_batch_1" if phase == "train" else "test_batch"
        return Patches.cifar10(folder, subset=subset)
    if name == "photographs":
        return Patches.photographs()
    return {
        "gaussian2": Gaussian(2),
        "gaussian10": Gaussian(10),
        "uneven2": Gaussian(2, uneven=0.5),
        "uneven10": Gaussian(10, uneven=0.5),
        "broad2": Gaussian(2, variance=2e-2),
        "broad5": Gaussian(5, variance=2e-2),
    }[name]


def cifar_folder(given: str | Path | None) -> str | None:
    """The folder of CIFAR-10: as given, or as the environment says."""
    return str(given) if given is not None else os.environ.get(CIFAR_VARIABLE)


Labels = Callable[[SetBatch], Tensor]
"""A way to cluster: packed sets with k as context, to a label an item."""

Ways = Callable[[SetBatch], dict[str, Tensor]]
"""Several that share their work, such as a tree before and after its merge, by the rows' names."""


def labels_by(model: DiCoNet, *, best_first: bool = False) -> Labels:
    """How a network clusters: its one likeliest tree, or its likeliest labels."""

    @torch.inference_mode()
    def label(sets: SetBatch) -> Tensor:
        if isinstance(model.split, SoftmaxLabels):
            return references.renumbered(sets, model.split(sets)[0])
        tree = tree_by(model, sets, best_first=best_first)
        leaves: Tensor = (tree if model.merge is None else fold(model.merge, tree)).leaves
        return leaves

    return label


def tree_by(model: DiCoNet, sets: SetBatch, *, best_first: bool = False) -> PartitionTree:
    """A network's likeliest tree with as many leaves as the sets' context says."""
    if best_first:
        return grow_best_first(model.split, sets, sets.context[:, 0].long(), node_cost)
    if isinstance(model.split, GraphSplit):
        return grow(model.split, sets, Growth(depth=round(log2(float(sets.context[0, 0])))))
    return grow(model.split, sets, model.growth)


def before_and_after_exchange(row: str, model: DiCoNet) -> Ways:
    """One tree as two rows: its leaves, and what the merge makes of them."""

    @torch.inference_mode()
    def label(sets: SetBatch) -> dict[str, Tensor]:
        tree = tree_by(model, sets)
        return {row: tree.leaves, row + EXCHANGE: fold(ExchangeMerge(), tree).leaves}

    return label


def one_start(row: str) -> Ways:
    """One start of k-means++ and Lloyd, and the same exchanges after it: no tree at all."""

    def label(sets: SetBatch) -> dict[str, Tensor]:
        labels = references.lloyd(sets, restarts=1)
        merge = ExchangeMerge()
        counts = sets.context[:, 0].long()
        better = exchanged(sets, labels, counts, merge.passes, merge.tries)
        return {row: labels, row + EXCHANGE: better}

    return label


def costs(label: Labels, sets: SetBatch, *, lloyd: int = 0) -> tuple[Tensor, Tensor]:
    """What every set costs, before and after so many Lloyd steps."""
    return costs_by_row(lambda some: {"": label(some)}, sets, lloyd=lloyd)[""]


def costs_by_row(
    label: Ways, sets: SetBatch, *, lloyd: int = 0
) -> dict[str, tuple[Tensor, Tensor]]:
    """What every set costs, before and after so many Lloyd steps, in chunks of bounded memory."""
    chunk = max(1, _CHUNK_ITEMS // max(int(sets.sizes.max()), 1))
    before: dict[str, list[Tensor]] = {}
    after: dict[str, list[Tensor]] = {}
    for part in torch.arange(len(sets)).split(chunk):
        some = sets.take(part).as_roots()
        for row, labels in label(some).items():
            moved = lloyd_steps(some, labels, lloyd)
            before.setdefault(row, []).append(cost_of(some, labels).double())
            after.setdefault(row, []).append(cost_of(some, moved).double())
    return {row: (torch.cat(before[row]), torch.cat(after[row])) for row in before}


def kinds(cifar: str | None) -> dict[str, Data]:
    """The paper's three kinds of points by their titles.

    Without CIFAR-10, the third is of scikit-learn's photographs, under that name.
    """
    patches: dict[str, Data] = {"CIFAR-10 patches": "cifar"}
    if cifar is None:
        patches = {"photograph patches": "photographs"}
    return {"Gaussian (d=2)": "gaussian2", "Gaussian (d=10)": "gaussian10", **patches}


def columns(cifar: str | None, num_sets: int, seed: int) -> dict[str, tuple[str, SetBatch]]:
    """The paper's nine columns: which data each is of, and its test sets."""
    made: dict[str, tuple[str, SetBatch]] = {}
    for number, (title, name) in enumerate(kinds(cifar).items()):
        points = points_of(name, cifar, "test")
        for k in CLUSTERS:
            drawn = 1_000_003 * (seed + 1) + 101 * number + k
            rng = torch.Generator().manual_seed(drawn % 2**63)
            size = 20 * k if name.startswith("gaussian") else _PATCHES
            sets = KMeansTask(points, (k,)).sample(num_sets, size, rng=rng)
            made[f"{title} k={k}"] = (name, sets)
    return made


def evaluate(
    model: DiCoNet,
    *,
    sizes: Sequence[int] = SIZES,
    num_sets: int = 1_024,
    seed: int = 0,
    cifar: str | Path | None = None,
) -> list[dict[str, Any]]:
    """Cost of a network's clusters over Lloyd's, n points in n / 20 clusters.

    On the paper's kinds of points, those that have as many coordinates as the network takes.
    """
    records = []
    folder = cifar_folder(cifar)
    features = getattr(model.split, "config", {}).get("num_features")
    # all found before any is measured: a wrong folder should not cost minutes first
    found_points = {title: points_of(name, folder, "test") for title, name in kinds(folder).items()}
    for title, points in found_points.items():
        for size in sizes if features in (None, points.num_features) else ():
            rng = torch.Generator().manual_seed(seed)
            sets = KMeansTask(points).sample(num_sets, size, rng=rng)
            bar = costs(references.lloyd, sets)[0].mean()
            found = costs(labels_by(model), sets, lloyd=LLOYD_STEPS)
            metrics = ("cost / Lloyd", f"after {LLOYD_STEPS} steps")
            for metric, cost in zip(metrics, found, strict=True):
                value = (cost.mean() / bar).item()
                records.append({"size": size, "points": title, "metric": metric, "value": value})
    return records


def reproduce(
    *,
    num_sets: int = 1_000,
    seed: int = 0,
    cifar: str | Path | None = None,
    find: Callable[[str], DiCoNet] = shipped,
) -> list[dict[str, Any]]:
    """The paper's table, and our own rows and controls below it; `find` gets networks by name.

    Every figure is mean cost over mean cost. `cifar` names the folder of CIFAR-10; where neither it
    nor the environment does, those columns are of photographs, and have no figure of the paper's.
    """
    records = []
    folder = cifar_folder(cifar)
    for number, (column, (data, sets)) in enumerate(columns(folder, num_sets, seed).items()):
        lloyd = costs(references.lloyd, sets)[0].mean()
        recursive = costs(references.recursive_lloyd, sets)[0].mean()
        for way in rows(data, int(sets.context[0, 0]), find):
            for row, found in costs_by_row(way, sets, lloyd=LLOYD_STEPS).items():
                cost, after = (costs.mean() for costs in found)
                cells = {f"{row} / Lloyd": cost / lloyd}
                if f"{row} / Rec. Lloyd" in PAPER:
                    cells[f"{row} / Rec. Lloyd"] = cost / recursive
                if row.startswith(_OURS) or row.endswith(EXCHANGE):
                    cells[f"{row} + {LLOYD_STEPS} Lloyd steps / Lloyd"] = after / lloyd
                for name, ratio in cells.items():
                    known = name in PAPER and data != "photographs"
                    record = {"row": name, "column": column, "metric": "cost ratio"}
                    paper = PAPER[name][number] if known else None
                    records.append({**record, "ours": ratio.item(), "paper": paper})
    order = list(dict.fromkeys([*PAPER, *(r["row"] for r in records)]))
    return sorted(records, key=lambda record: order.index(record["row"]))


def rows(data: str, k: int, find: Callable[[str], DiCoNet]) -> list[Ways]:
    """What a column is measured with: learned networks, and controls that learn nothing."""
    kind = "cifar" if data == "photographs" else data
    halved, by_points = references.min_cost("halved"), references.min_cost("proportional")
    return [
        _alone("Baseline", labels_by(find(f"kmeans_softmax_{kind}_k{k}"))),
        before_and_after_exchange("DiCoNet", find(f"kmeans_graph_{kind}")),
        before_and_after_exchange(_OURS, find(DEFAULT_MODEL)),
        before_and_after_exchange("Min-cost cut, budget halved", halved),
        before_and_after_exchange("Min-cost cut, budget by points", by_points),
        _alone("Min-cost cut, best-first", labels_by(halved, best_first=True)),
        _alone("BisectingKMeans", references.bisecting),
        one_start("k-means++, one start"),
    ]


def _alone(row: str, label: Labels) -> Ways:
    return lambda sets: {row: label(sets)}
