"""How networks for k-means (section 6.2) are built and trained."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import log2
from pathlib import Path
from typing import Literal

import torch

from diconet.credit import branch_loss, label_loss, move_loss, node_loss, tree_loss
from diconet.model import DiCoNet
from diconet.recipes.kmeans_table import (
    CLUSTERS,
    DEFAULT_MODEL,
    SIZES,
    Data,
    cifar_folder,
    evaluate,
    points_of,
    reproduce,
)
from diconet.splits.graph import GraphSplit
from diconet.splits.softmax import SoftmaxLabels
from diconet.splits.sweep import SweepSplit
from diconet.tasks.kmeans import Gaussian, KMeansTask, OneOf, Parts, Patches
from diconet.train import Estimator, TrainConfig, train
from diconet.train_config import check_least
from diconet.tree import Growth
from diconet.weights import from_runs, save, start_from

__all__ = [
    "DEFAULT_MODEL",
    "PARTS",
    "SIZES",
    "Settings",
    "evaluate",
    "pictures",
    "reproduce",
    "train_all",
    "train_model",
]

Network = Literal["sweep", "graph", "softmax"]

PARTS = (SweepSplit, GraphSplit, SoftmaxLabels)
"""What networks for k-means are made of."""


@dataclass(frozen=True)
class Settings:
    """A network for k-means, the points it learns from, and how.

    "graph" is the paper's: a coin a point, REINFORCE over whole trees. "sweep" is ours: one cut a
    node, credit node by node. "softmax" is the paper's non-recursive baseline. With `stages`, the
    network learns k = the first of them, then the next, each for `train.steps` steps on sets of
    k times `points_each` points; without, k follows from the number of points (or is any of 2 to
    16, for patches). With `parts`, points are taken as they lie up to that many levels down a tree.

    A graph network may have a `first_stage`, where sets of any number of clusters are cut in two.
    Its trees have nothing in common, as in the paper, or they share their upper cuts: `between`
    draws of a node between the root and the last cuts, and `last` of those. `exact_moves` lets it
    use the closed-form effect of moving one point in place of a black-box reward. `lean` is how
    strongly a sweep prefers cheap cuts as the run begins; without, as the weights it starts from
    have it.
    """

    network: Network = "sweep"
    data: tuple[Data, ...] = ("gaussian2",)
    stages: tuple[int, ...] | None = None
    points_each: int = 20
    parts: int = 0
    width: int = 64
    num_layers: int = 20
    sigma: float = 0.5
    first_stage: bool = False
    first: TrainConfig = field(default_factory=TrainConfig)
    between: int = 1
    last: int = 1
    exact_moves: bool = False
    lean: float | None = None
    cifar: str | None = None
    init: str | None = None
    train: TrainConfig = field(default_factory=TrainConfig)

    def __post_init__(self) -> None:
        check_least(self, 1, "width", "num_layers", "points_each")
        check_least(self, 0, "parts")
        if not self.data:
            raise ValueError("data must name at least one kind of points; got none.")
        if self.network != "sweep" and not self.stages:
            raise ValueError(f"stages must name numbers of clusters for {self.network}; got none.")
        if self.network != "sweep" and self.lean is not None:
            raise ValueError(f"lean must go with a sweep; got {self.lean} for {self.network}.")
        if self.network != "graph" and (self.first_stage or max(self.between, self.last) > 1):
            raise ValueError(f"first_stage, between and last go with a graph; got {self.network}.")
        if min(self.between, self.last) < 1:
            raise ValueError(
                f"between and last must be at least 1; got {self.between} and {self.last}."
            )
        if (self.between > 1) != (self.last > 1):  # a lone draw has nothing to be compared with
            raise ValueError(
                "between and last must both be 1 or both be more; "
                f"got {self.between} and {self.last}."
            )
        for k in self.stages or ():
            if k < 2 or (self.network == "graph" and log2(k) % 1):
                raise ValueError(f"stages must be powers of 2 of at least 2; got {k}.")

    def build(self) -> DiCoNet:
        """The network, its weights drawn from the run's seed."""
        torch.manual_seed(self.train.seed)
        if self.network == "sweep":
            return DiCoNet(SweepSplit(self.width), growth=Growth())
        features = points_of(self.data[0], self.cifar, "train").num_features
        shape = (self.width, self.num_layers, self.sigma)
        assert self.stages is not None
        if self.network == "softmax":
            return DiCoNet(SoftmaxLabels(features, self.stages[-1], *shape), depth=1)
        return DiCoNet(GraphSplit(features, *shape), depth=round(log2(self.stages[-1])))

    def task(self, k: int | None) -> OneOf:
        """What to learn: points of every kind asked for, in k clusters."""
        tasks = []
        for name in self.data:
            points = points_of(name, self.cifar, "train")
            any_k = tuple(range(2, 17)) if isinstance(points, Patches) else None
            points = Parts(points, self.parts) if self.parts else points
            clusters = any_k if k is None else (k,)
            tasks.append(KMeansTask(points, clusters, self.points_each))
        return OneOf(tuple(tasks))

    @property
    def loss(self) -> Estimator:
        """The estimator that fits the network."""
        if self.network == "graph" and self.exact_moves:
            return move_loss
        if max(self.between, self.last) > 1:
            return partial(branch_loss, between=self.between, last=self.last)
        return {"sweep": node_loss, "graph": tree_loss, "softmax": label_loss}[self.network]


def train_model(settings: Settings, run: Path, quiet: bool = False) -> DiCoNet:
    """Trains a network in the folder `run`, stage after stage."""
    run = Path(run)
    model = settings.build()
    if settings.init is not None:
        start_from(model, settings.init, "init")
    if settings.lean is not None:
        model.split.lean_to(settings.lean)  # type: ignore[operator]
    if settings.first_stage:
        model.growth = Growth(depth=1)
        task = settings.task(None)
        train(model, task, settings.first, loss=settings.loss, run=run / "first", quiet=quiet)
    stages: Sequence[int | None] = settings.stages or (None,)
    for number, k in enumerate(stages):
        folder = run if len(stages) == 1 else run / f"stage{number}_k{k}"
        config = settings.train
        if k is not None:
            model.growth = Growth(depth=round(log2(k))) if settings.network == "graph" else Growth()
            size = settings.points_each * k
            config = replace(config, min_size=size, max_size=size)
        train(model, settings.task(k), config, loss=settings.loss, run=folder, quiet=quiet)
    save(model, run / "weights.safetensors")
    return model


def train_all(
    runs: Path, *, quiet: bool = False, cifar: str | Path | None = None
) -> Callable[[str], DiCoNet]:
    """Trains every network of the table anew, one folder of `runs` each.

    Gives what finds them by the names of their weights. Where nobody says where CIFAR-10 is, the
    networks for its patches are the shipped ones.
    """
    from diconet.presets import read_settings

    kinds: list[Data] = ["gaussian2", "gaussian10"]
    images = cifar_folder(cifar)
    if images is not None:
        kinds.append("cifar")
        for phase in ("train", "test"):
            points_of("cifar", images, phase)  # a wrong folder should not cost hours first
    start, small = runs / "kmeans_start", runs / "kmeans_small"
    train_model(read_settings(Settings, "kmeans", "start", []), start, quiet)
    begun = ["--init", str(start / "weights.safetensors")]
    train_model(read_settings(Settings, "kmeans", "small", begun), small, quiet)
    folders = {DEFAULT_MODEL: small}
    baseline = read_settings(Settings, "kmeans", "baseline", [])
    for kind in kinds:
        graph = read_settings(Settings, "kmeans", kind, [])
        folders[f"kmeans_graph_{kind}"] = runs / f"kmeans_{kind}"
        train_model(replace(graph, cifar=images), runs / f"kmeans_{kind}", quiet)
        for k in CLUSTERS:
            softmax = replace(baseline, data=(kind,), stages=(k,), cifar=images)
            folder = runs / f"kmeans_baseline_{kind}_k{k}"
            folders[f"kmeans_softmax_{kind}_k{k}"] = folder
            train_model(softmax, folder, quiet)
    return from_runs(folders)


def pictures(model: DiCoNet, folder: Path, *, k: int = 8, seed: int = 3) -> list[Path]:
    """The partition level by level, and the clusters in the end."""
    from diconet.plot import save_levels
    from diconet.solve.kmeans import Clusters, kmeans

    rng = torch.Generator().manual_seed(seed)
    points = KMeansTask(Gaussian(2), (k,)).sample(1, 20 * k, rng=rng).items
    solution = kmeans(points, k, model=model)
    assert isinstance(solution, Clusters)
    return [save_levels(solution, folder / "kmeans_levels.png", model=model)]
