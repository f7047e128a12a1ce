"""How networks for k-means (section 6.2) are built and trained."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import log2
from pathlib import Path
from typing import Any, Literal

import torch

from diconet.core.model import DiCoNet
from diconet.core.tree import Growth
from diconet.core.weights import save
from diconet.learn.config import check_least
from diconet.learn.estimators import Loss, label_loss, node_loss, tree_loss
from diconet.learn.loop import TrainConfig, train
from diconet.learn.settings import read_settings
from diconet.nets.by_features import ByFeatures
from diconet.nets.graph_split import GraphSplit, SoftmaxLabels
from diconet.nets.sweep import SweepSplit
from diconet.problems.kmeans.exchange import ExchangeMerge
from diconet.problems.kmeans.problem import PROBLEM
from diconet.problems.kmeans.table import (
    BASELINE,
    FEATURES,
    GRAPH,
    Data,
    cifar_folder,
    points_of,
    reproduce,
)
from diconet.problems.kmeans.table import kinds as kinds_of
from diconet.problems.kmeans.task import KMeansTask, OneOf, Patches
from diconet.problems.networks import from_runs

__all__ = ["Settings", "reproduce", "train_all", "train_model"]

Network = Literal["sweep", "graph", "softmax"]

LOSSES: dict[str, Loss] = {"sweep": node_loss, "graph": tree_loss, "softmax": label_loss}
"""The loss of each kind of network."""


@dataclass(frozen=True)
class Settings:
    """A network for k-means, its training data and its training.

    "graph" is the paper's: a coin flip per point, REINFORCE over whole trees. "softmax" is the
    paper's non-recursive baseline. "sweep" is ours: one cut per node, credit node by node.

    Each batch has one of the kinds of `data` and one of the numbers of `clusters`, with
    `points_each` points per cluster. The paper's networks take points of one dimension only, so
    there is one for each dimension in `data`, trained one after the other. Without `clusters`, k
    follows from a set's size, which `train` bounds (for patches, k is any of 2 to 16). A sweep has
    a second stage, which starts with `cost_weight` as its preference for cheap cuts.
    """

    network: Network = "sweep"
    data: tuple[Data, ...] = ("gaussian2",)
    clusters: tuple[int, ...] | None = None
    points_each: int = 20
    width: int = 64
    num_layers: int = 20
    sigma: float = 0.5
    cost_weight: float = 30.0
    cifar: str | None = None
    train: TrainConfig = field(default_factory=TrainConfig)
    second: TrainConfig = field(default_factory=TrainConfig)

    def __post_init__(self) -> None:
        check_least(self, 1, "width", "num_layers", "points_each")
        if not self.data:
            raise ValueError("data must name at least one kind of points; got none.")
        if self.network != "sweep" and not self.clusters:
            raise ValueError(f"clusters must be given for {self.network}; got {self.clusters}.")
        for k in self.clusters or ():
            if k < 2 or (self.network == "graph" and log2(k) % 1):
                raise ValueError(f"clusters must be powers of 2 of at least 2; got {k}.")

    @property
    def total_steps(self) -> int:
        """The total number of steps of all stages of the network."""
        if self.network == "sweep":
            return self.train.steps + self.second.steps
        return self.train.steps * len(self.by_features())

    def by_features(self) -> dict[int, Settings]:
        """The same settings for each number of features in `data`, with the data that has it."""
        kinds: dict[int, tuple[Data, ...]] = {}
        for name in self.data:
            kinds[FEATURES[name]] = (*kinds.get(FEATURES[name], ()), name)
        return {features: replace(self, data=names) for features, names in kinds.items()}

    def build(self) -> DiCoNet:
        """The network, with weights initialised from the run's seed."""
        torch.manual_seed(self.train.seed)
        if self.network == "sweep":
            return DiCoNet(SweepSplit(self.width), growth=Growth())
        features = FEATURES[self.data[0]]
        shape = (self.width, self.num_layers, self.sigma)
        assert self.clusters is not None
        if self.network == "softmax":
            return DiCoNet(SoftmaxLabels(features, max(self.clusters), *shape), depth=1)
        # deep enough to halve the number of clusters down to one
        return DiCoNet(GraphSplit(features, *shape), growth=Growth(halve_to=self.points_each))

    def task(self) -> OneOf:
        """The task: points of every kind in `data`, in every number of clusters."""
        tasks = []
        for name in self.data:
            points = points_of(name, self.cifar, "train")
            if self.clusters is not None:
                each = self.points_each
                tasks += [KMeansTask(points, (k,), size=each * k) for k in self.clusters]
            else:
                any_k = tuple(range(2, 17)) if isinstance(points, Patches) else None
                tasks.append(KMeansTask(points, any_k, self.points_each))
        return OneOf(tasks=tuple(tasks))


def train_model(settings: Settings, run: Path, **how: Any) -> DiCoNet:
    """Trains a network in the folder `run`, a sweep in two stages.

    Other arguments are those of `train`: `quiet`, `device`.
    """
    how["loss"] = LOSSES[settings.network]
    if settings.network != "sweep":
        model = _train_each(settings, run, how)
    else:
        model, task = settings.build(), settings.task()
        assert isinstance(model.split, SweepSplit)
        model.split.set_cost_weight(0.0)
        train(model, task, settings.train, run=run / "first", **how)
        model.split.set_cost_weight(settings.cost_weight)
        train(model, task, settings.second, run=run / "second", **how)
        model = DiCoNet(model.split, ExchangeMerge(), model.growth)
    save(model, run / "weights.safetensors")
    return model


def _train_each(settings: Settings, run: Path, how: dict[str, Any]) -> DiCoNet:
    """Trains one network of the paper's kind per number of features, and joins them into one."""
    trained = {}
    for features, one in settings.by_features().items():
        name = f"d{features}"
        trained[name] = train(one.build(), one.task(), one.train, run=run / name, **how)
    growth = next(iter(trained.values())).growth
    splits = {name: model.split for name, model in trained.items()}
    return DiCoNet(ByFeatures(**splits), growth=growth)


def train_all(
    runs: Path, *, quiet: bool = False, cifar: str | Path | None = None
) -> Callable[[str], DiCoNet]:
    """Retrains every network of the table, each in a folder of `runs`.

    Returns a function that finds them by name. Without a folder of CIFAR-10, patches are those of
    scikit-learn's photographs.
    """
    images = cifar_folder(cifar)
    if images is not None:
        for phase in ("train", "test"):  # report a wrong folder before hours of training
            points_of("cifar", images, phase)
    kinds: tuple[Data, ...] = tuple(kinds_of(images).values())
    presets = PROBLEM.folder("presets")
    folders = {PROBLEM.name: runs / "kmeans_default"}
    train_model(read_settings(Settings, presets, "default", []), folders[PROBLEM.name], quiet=quiet)
    for preset, network in (("paper_small", GRAPH), ("baseline", BASELINE)):
        settings = read_settings(Settings, presets, preset, [])
        folders[network] = runs / network
        train_model(replace(settings, data=kinds, cifar=images), folders[network], quiet=quiet)
    return from_runs(folders)
