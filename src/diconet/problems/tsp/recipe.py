"""Training of the networks for the travelling salesman."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import torch

from diconet.core.coin import RandomSplit
from diconet.core.model import DiCoNet
from diconet.core.tree import Growth
from diconet.learn.config import check_least
from diconet.learn.loop import TrainConfig, train
from diconet.learn.settings import read_settings
from diconet.nets.axes import AcrossSplit, Aligned
from diconet.nets.pair_net import PairNet
from diconet.problems.networks import find as find_weights
from diconet.problems.networks import from_runs
from diconet.problems.tsp.edges import EdgeMerge
from diconet.problems.tsp.pairs import (
    MERGE_EDGE_INPUTS,
    MERGE_NODE_INPUTS,
    NODE_INPUTS,
    PairMerge,
    PairSplit,
)
from diconet.problems.tsp.problem import PROBLEM
from diconet.problems.tsp.table import WEIGHTS, reproduce
from diconet.problems.tsp.task import TourBook

__all__ = ["Settings", "build", "labels", "reproduce", "train_all", "train_model"]


@dataclass(frozen=True)
class Settings:
    """A network over near neighbours ("near") or the paper's over all pairs ("pairs").

    Trees have leaves of about `leaf_size` cities. For "pairs", the network `leaf` (a shipped name
    or a file) solves the leaves and stays fixed, the split has `split_layers`, and with `binarise`
    a merge is given its parts' tours; without a `leaf`, nothing is divided. `num_labels` instances
    of the training sizes are solved by fast-tsp in `label_seconds` each.
    """

    network: Literal["near", "pairs"] = "near"
    width: int = 48
    num_layers: int = 8
    split_layers: int = 3
    slots: int = 8
    leaf_size: int = 90
    leaf: str | None = None
    binarise: bool = False
    num_labels: int = 9_650
    label_seconds: float = 0.02
    train: TrainConfig = field(default_factory=TrainConfig)

    def __post_init__(self) -> None:
        check_least(self, 1, "width", "num_layers", "split_layers", "leaf_size", "num_labels")


def build(settings: Settings) -> DiCoNet:
    """The untrained network for these settings."""
    torch.manual_seed(settings.train.seed)
    if settings.network == "near":
        merge = EdgeMerge.fresh(settings.width, settings.num_layers, settings.slots)
        return DiCoNet(AcrossSplit(), merge, Growth(leaf_size=settings.leaf_size))
    if settings.leaf is None:
        return DiCoNet(RandomSplit(), PairMerge(_pair_net(settings)), depth=0)
    return _paper_network(settings, settings.leaf)


def _pair_net(settings: Settings, num_layers: int | None = None) -> PairNet:
    return PairNet(NODE_INPUTS, 1, settings.width, num_layers or settings.num_layers)


def _paper_network(settings: Settings, leaf: str) -> DiCoNet:
    """DiCoNet as in appendix C: two networks of its own around a reference at the leaves."""
    trained = find_weights(leaf, "leaf").merge
    if not isinstance(trained, PairMerge):
        raise ValueError(f"leaf must be a network over pairs; got {leaf!r}.")
    if trained.leaf.config["width"] != settings.width:
        raise ValueError(
            f"leaf must be a network of width {settings.width}; {leaf} has width"
            f" {trained.leaf.config['width']}."
        )
    net = PairNet(MERGE_NODE_INPUTS, MERGE_EDGE_INPUTS, settings.width, settings.num_layers)
    merge = PairMerge(trained.leaf, net, settings.binarise)
    merge.leaf_head.load_state_dict(trained.leaf_head.state_dict())
    # It learns from whole instances, and must cut their parts, too: all in their own axes.
    split = Aligned(PairSplit(_pair_net(settings, settings.split_layers)))
    return DiCoNet(split, merge, Growth(halve_to=settings.leaf_size))


def labels(settings: Settings) -> TourBook:
    """The labelled instances."""
    low, high = settings.train.min_size, settings.train.max_size
    sizes = [low + i % (high - low + 1) for i in range(settings.num_labels)]
    return TourBook.make(sizes, seed=settings.train.seed, seconds=settings.label_seconds)


def train_model(
    settings: Settings,
    run: str | Path | None = None,
    quiet: bool = False,
    device: str | torch.device | None = None,
) -> DiCoNet:
    """Trains a network on labelled instances."""
    model = build(settings)  # first, to reject a leaf that does not fit before making labels
    book = labels(settings)
    return train(
        model, book, settings.train, oracle=book.oracle, run=run, device=device, quiet=quiet
    )


def train_all(runs: Path, *, quiet: bool = False) -> Callable[[str], DiCoNet]:
    """Retrains every network of the table, each in a folder of `runs`, the leaves' first.

    Returns a function that finds them by name.
    """
    leaf = {"paper": ["--leaf", str(runs / "tsp_bs1" / "weights.safetensors")]}
    for preset in ("bs1", "bs2", "paper", "default"):
        settings = read_settings(Settings, PROBLEM.folder("presets"), preset, leaf.get(preset, []))
        train_model(settings, runs / f"tsp_{preset}", quiet)
    named = {name: runs / name for name in WEIGHTS.values()}
    return from_runs({**named, PROBLEM.name: runs / "tsp_default"})
