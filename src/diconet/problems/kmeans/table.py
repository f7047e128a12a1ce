"""The paper's table of k-means (section 6.2): its nine columns, its rows, and ours below them."""

from __future__ import annotations

import os
from collections.abc import Callable
from math import log2
from pathlib import Path
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn

from diconet.core.coin import RandomSplit
from diconet.core.model import DiCoNet
from diconet.core.noise import phase_generator
from diconet.core.sets import SetBatch
from diconet.core.tree import Growth, PartitionTree, fold, grow
from diconet.nets.by_features import ByFeatures
from diconet.nets.graph_split import GraphSplit, SoftmaxLabels
from diconet.problems.kmeans import references
from diconet.problems.kmeans.exchange import ExchangeMerge, exchanged
from diconet.problems.kmeans.solve import merge_of
from diconet.problems.kmeans.task import Gaussian, KMeansTask, Patches, Points, cost_of
from diconet.problems.networks import shipped
from diconet.problems.table import (
    OURS_BLOCK,
    PAPER_BLOCK,
    PARTS_BLOCK,
    cells,
    in_blocks,
    ratio_of_means,
)

Data = Literal["gaussian2", "gaussian10", "uneven2", "broad2", "cifar", "photographs"]
FEATURES: dict[Data, int] = {
    "gaussian2": 2,
    "gaussian10": 10,
    "uneven2": 2,
    "broad2": 2,
    "cifar": 27,
    "photographs": 27,
}
"""The number of coordinates of each kind of points: patches have 3 x 3 x 3."""

CLUSTERS = (4, 8, 16)
CIFAR_VARIABLE = "DICONET_CIFAR10"
"""An environment variable that may name the folder of CIFAR-10."""

GRAPH, BASELINE = "kmeans_graph", "kmeans_softmax"
"""The names of the paper's networks: DiCoNet and its baseline, for all three kinds of points."""

PAPER: dict[str, tuple[float, ...]] = {
    "Baseline / Lloyd": (1.8, 3.1, 3.5, 1.14, 5.7, 12.5, 1.02, 1.07, 1.41),
    "DiCoNet / Lloyd": (2.3, 2.1, 2.1, 1.6, 6.3, 8.5, 1.04, 1.05, 1.2),
    "Baseline / Rec. Lloyd": (0.7, 1.5, 1.7, 0.15, 0.65, 1.25, 1.01, 1.04, 1.21),
    "DiCoNet / Rec. Lloyd": (0.9, 1.01, 1.02, 0.21, 0.72, 0.85, 1.02, 1.02, 1.07),
}
"""The paper's table, for k = 4, 8, 16 of each of the three kinds of points."""

PAPER_LAYERS = 20
"""A row whose network has a different number of layers says so in its name."""

EXCHANGE = " with exchange"
"""Suffix of a row whose tree is folded by `ExchangeMerge`."""

_OURS = "Sweep"
_POINTS_EACH = 20
_PATCHES = 500
_CHUNK_ITEMS = 2_000


def points_of(name: Data, cifar: str | Path | None, phase: Literal["train", "test"]) -> Points:
    """The source of points with this name."""
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
        "broad2": Gaussian(2, variance=2e-2),
    }[name]


def cifar_folder(given: str | Path | None) -> str | None:
    """The folder of CIFAR-10: as given, or from the environment."""
    return str(given) if given is not None else os.environ.get(CIFAR_VARIABLE)


Labels = Callable[[SetBatch], Tensor]
"""A clustering method: packed sets with k as context to a label per item."""

Row = tuple[str, Labels]
"""A row's name and method."""


def labels_by(model: DiCoNet) -> Labels:
    """A network's clustering: the leaves of its likeliest tree, or its likeliest labels."""

    @torch.inference_mode()
    def label(sets: SetBatch) -> Tensor:
        split = _part(model, sets.num_features)
        if isinstance(split, SoftmaxLabels):
            return cast(Tensor, split(sets)[0])
        return tree_by(model, sets).leaves

    return label


def _part(model: DiCoNet, num_features: int) -> nn.Module:
    """The split for points with this many coordinates."""
    return model.split.of(num_features) if isinstance(model.split, ByFeatures) else model.split


def tree_by(model: DiCoNet, sets: SetBatch) -> PartitionTree:
    """A network's likeliest tree with the number of leaves given by the sets' context."""
    if isinstance(_part(model, sets.num_features), GraphSplit | RandomSplit):
        return grow(model.split, sets, Growth(depth=round(log2(float(sets.context[0, 0])))))
    return grow(model.split, sets, model.growth)


def before_and_after_exchange(row: str, model: DiCoNet) -> list[Row]:
    """One network as two rows: the leaves of its tree, and the result of the merge."""

    @torch.inference_mode()
    def merged(sets: SetBatch) -> Tensor:
        return fold(merge_of(model), tree_by(model, sets)).leaves

    return [(row, labels_by(model)), (row + EXCHANGE, merged)]


def one_start(sets: SetBatch) -> Tensor:
    """One k-means++ start with Lloyd: no tree at all."""
    return references.lloyd(sets, restarts=1)


def one_start_exchanged(sets: SetBatch) -> Tensor:
    """The same with exchanges."""
    counts, ones = sets.context[:, 0].long(), torch.ones(sets.num_items)
    how = (sets.items, ones, sets.sizes, one_start(sets), counts, ExchangeMerge())
    return exchanged(*how, kicks=True)


def costs(label: Labels, sets: SetBatch) -> Tensor:
    """The cost of every set, in chunks of bounded memory."""
    chunk = max(1, _CHUNK_ITEMS // max(int(sets.sizes.max()), 1))
    parts = [sets.take(part).as_roots() for part in torch.arange(len(sets)).split(chunk)]
    return torch.cat([cost_of(some, label(some)).double() for some in parts])


def kinds(cifar: str | None) -> dict[str, Data]:
    """The paper's three kinds of points by title.

    Without CIFAR-10, the third uses scikit-learn's photographs, under that name.
    """
    patches: dict[str, Data] = {"CIFAR-10 patches": "cifar"}
    if cifar is None:
        patches = {"photograph patches": "photographs"}
    return {"Gaussian (d=2)": "gaussian2", "Gaussian (d=10)": "gaussian10", **patches}


def columns(cifar: str | None, num_sets: int, seed: int) -> dict[str, tuple[str, SetBatch]]:
    """The paper's nine columns: the kind of data of each, and its test sets."""
    made: dict[str, tuple[str, SetBatch]] = {}
    for number, (title, name) in enumerate(kinds(cifar).items()):
        points = points_of(name, cifar, "test")
        for k in CLUSTERS:
            rng = phase_generator("test", seed, number, k)
            size = _POINTS_EACH * k if name.startswith("gaussian") else _PATCHES
            sets = KMeansTask(points, (k,)).sample(num_sets, size, rng=rng)
            made[f"{title} k={k}"] = (name, sets)
    return made


def reproduce(
    *,
    num_sets: int = 1_000,
    seed: int = 0,
    cifar: str | Path | None = None,
    find: Callable[[str], DiCoNet] = shipped,
) -> list[dict[str, Any]]:
    """The paper's table, with our own rows and controls below; `find` looks up networks by name.

    Every figure is mean cost over mean cost. `cifar` is the folder of CIFAR-10; if neither it nor
    the environment is set, those columns use photographs, and have no figures from the paper.
    """
    records: list[dict[str, Any]] = []
    folder = cifar_folder(cifar)
    for number, (column, (data, sets)) in enumerate(columns(folder, num_sets, seed).items()):
        bars = {
            "Lloyd": costs(references.lloyd, sets),
            "Rec. Lloyd": costs(references.recursive_lloyd, sets),
        }
        for block, row, label in rows(sets.num_features, find):
            found = costs(label, sets)
            for bar, cost in bars.items():
                known = PAPER.get(f"{row.partition(', ')[0]} / {bar}")
                if known is None and bar != "Lloyd":
                    continue
                paper = {"cost ratio": known[number]} if known and data != "photographs" else {}
                ratio = {"cost ratio": ratio_of_means(found, cost)}
                records += cells(f"{row} / {bar}", column, ratio, paper, block)
    return in_blocks(sorted(records, key=lambda record: record["row"].endswith("Rec. Lloyd")))


def _paper_row(row: str, model: DiCoNet, num_features: int) -> Row:
    """A row for a network of the paper's kind; its name says how deep it is if not as there."""
    layers = _part(model, num_features).config["num_layers"]  # type: ignore[index]
    return row if layers == PAPER_LAYERS else f"{row}, {layers} layers", labels_by(model)


def rows(num_features: int, find: Callable[[str], DiCoNet]) -> list[tuple[str, str, Labels]]:
    """The methods of a column with their blocks: learned networks, and unlearned controls."""
    paper = {"Baseline": find(BASELINE), "DiCoNet": find(GRAPH)}
    halved, shared = (references.min_cost(share) for share in ("halved", "proportional"))
    blocks: dict[str, list[Row]] = {
        PAPER_BLOCK: [_paper_row(row, model, num_features) for row, model in paper.items()],
        PARTS_BLOCK: [
            ("random split", labels_by(DiCoNet(RandomSplit(), depth=1))),
            *before_and_after_exchange("Min-cost cut, budget halved", halved),
            *before_and_after_exchange("Min-cost cut, budget by points", shared),
            ("BisectingKMeans", references.bisecting),
            ("k-means++, one start", one_start),
            ("k-means++, one start" + EXCHANGE, one_start_exchanged),
        ],
        OURS_BLOCK: before_and_after_exchange(_OURS, find("kmeans")),
    }
    return [(block, *row) for block, some in blocks.items() for row in some]
