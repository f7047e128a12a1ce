"""How the travelling salesman is trained, evaluated and set beside the paper's table."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from diconet.merges.edges import EdgeMerge
from diconet.model import DiCoNet
from diconet.splits.across import AcrossSplit
from diconet.tasks.tsp import TourBook
from diconet.train import TrainConfig, train
from diconet.tree import Growth
from diconet.weights import load


@dataclass(frozen=True)
class Settings:
    """A network over near neighbours, on trees with leaves of at most `leaf_size` cities.

    Labels, `num_labels` of them of all sizes that training draws, are made by fast-tsp in
    `label_seconds` each, and kept in `labels` where that is given. With `start`, training goes on
    from those weights.
    """

    width: int = 48
    num_layers: int = 8
    slots: int = 8
    leaf_size: int = 64
    num_labels: int = 9_650
    label_seconds: float = 0.02
    labels: str | None = None
    start: str | None = None
    train: TrainConfig = field(
        default_factory=lambda: TrainConfig(
            steps=4_000,
            batch_size=16,
            tree_samples=1,
            min_size=8,
            max_size=200,
            merge_lr=2e-3,
            merge_optimiser="adamw",
            schedule="cosine",
            warmup=200,
            merge_clip=1.0,
        )
    )


def build(settings: Settings) -> DiCoNet:
    """The network that the settings describe, untrained or as it was at `start`."""
    merge = EdgeMerge.fresh(settings.width, settings.num_layers, settings.slots)
    model = DiCoNet(AcrossSplit(), merge, Growth(leaf_size=settings.leaf_size))
    return model if settings.start is None else load(settings.start, into=model)


def labels(settings: Settings) -> TourBook:
    """The labelled instances, read if they are there, made (and kept) if not."""
    path = None if settings.labels is None else Path(settings.labels)
    if path is not None and path.exists():
        return TourBook.load(path)
    low, high = settings.train.min_size, settings.train.max_size
    sizes = [low + i % (high - low + 1) for i in range(settings.num_labels)]
    book = TourBook.make(sizes, seed=settings.train.seed, seconds=settings.label_seconds)
    if path is not None:
        book.save(path)
    return book


def train_model(settings: Settings, run: str | Path | None = None, quiet: bool = False) -> DiCoNet:
    """Trains a network on labelled instances."""
    book = labels(settings)
    return train(build(settings), book, settings.train, oracle=book.oracle, run=run, quiet=quiet)
