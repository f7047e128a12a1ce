"""A network for each task, small and untrained: for what does not depend on the weights."""

from __future__ import annotations

from pathlib import Path

import torch

from diconet.core.model import DiCoNet
from diconet.core.tree import Growth
from diconet.core.weights import save
from diconet.nets.axes import AcrossSplit
from diconet.nets.classic import MedianSplit
from diconet.nets.sweep import SweepSplit
from diconet.problems.algorithms.recipe import built
from diconet.problems.hull.triples import TripleJudge, TripleMerge
from diconet.problems.knapsack.flip_score import FlipScore
from diconet.problems.knapsack.repair import CORE_GROWTH, CoreSplit, FrontierMerge
from diconet.problems.tsp.edges import EdgeMerge


def hull_network() -> DiCoNet:
    torch.manual_seed(0)
    return DiCoNet(MedianSplit(), TripleMerge(TripleJudge()), Growth(leaf_size=8))


def kmeans_network() -> DiCoNet:
    torch.manual_seed(0)
    return DiCoNet(SweepSplit(8), growth=Growth())


def knapsack_network() -> DiCoNet:
    torch.manual_seed(0)
    return DiCoNet(CoreSplit(FlipScore(8)), FrontierMerge(), CORE_GROWTH)


def tsp_network() -> DiCoNet:
    torch.manual_seed(0)
    return DiCoNet(AcrossSplit(), EdgeMerge.fresh(8, 2), Growth(leaf_size=20))


NETWORKS = {
    "hull": hull_network,
    "kmeans": kmeans_network,
    "knapsack": knapsack_network,
    "tsp": tsp_network,
    "sort": lambda: built("sort", 0),
}


def save_networks(folder: Path) -> dict[str, str]:
    """Each network as a weights file, by task."""
    paths = {task: folder / f"{task}.safetensors" for task in NETWORKS}
    for task, make in NETWORKS.items():
        save(make(), paths[task])
    return {task: str(path) for task, path in paths.items()}
