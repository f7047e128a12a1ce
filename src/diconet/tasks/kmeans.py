"""K-means clustering (section 6.2): part points into k clusters, each close to its own mean."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from diconet.clusters import cost_of, move_gains
from diconet.sets import SetBatch
from diconet.splits.sweep import Candidates
from diconet.tree import PartitionTree


@runtime_checkable
class Points(Protocol):
    """Where the points come from."""

    @property
    def num_features(self) -> int:
        """Coordinates a point."""
        ...

    def draw(
        self, num_sets: int, set_size: int, num_clusters: int, *, rng: torch.Generator
    ) -> Float[Tensor, "items features"]:
        """The points of so many sets, set after set."""
        ...


@dataclass(frozen=True)
class Gaussian:
    """Clusters of equal spread around centres uniform in the unit cube, as in the paper.

    `uneven` above 0 makes clusters differ: sizes and spreads are multiplied by exp of normal draws
    of that deviation.
    """

    num_features: int = 2
    variance: float = 1e-3
    uneven: float = 0.0

    def draw(
        self, num_sets: int, set_size: int, num_clusters: int, *, rng: torch.Generator
    ) -> Float[Tensor, "items features"]:
        """Points in the order of their clusters."""
        shape = (num_sets, num_clusters)
        centre = torch.rand(*shape, self.num_features, generator=rng)
        spread = torch.full(shape, self.variance**0.5)
        share = torch.ones(shape)
        if self.uneven:
            spread = spread * torch.exp(self.uneven * torch.randn(shape, generator=rng))
            share = torch.exp(self.uneven * torch.randn(shape, generator=rng))
        upto = share.cumsum(1) / share.sum(1, keepdim=True)
        place = (torch.arange(set_size) + 0.5) / set_size
        cluster = torch.searchsorted(upto, place.expand(num_sets, -1).contiguous())
        cluster = cluster.clamp(max=num_clusters - 1)
        noise = torch.randn(num_sets, set_size, self.num_features, generator=rng)
        mean = centre.gather(1, cluster[..., None].expand(-1, -1, self.num_features))
        return (mean + spread.gather(1, cluster)[..., None] * noise).flatten(0, 1)


@dataclass(frozen=True)
class Patches:
    """3x3 patches of colour images, as 27 numbers from 0 to 1."""

    images: tuple[np.ndarray, ...] = field(repr=False)
    num_features: int = 27

    @classmethod
    def cifar10(cls, folder: str | Path, *, subset: str) -> Patches:
        """From a folder that holds CIFAR-10 in its python layout; a subset such as "test_batch"."""
        return cls((_cifar10(str(folder), subset),))

    @classmethod
    def photographs(cls) -> Patches:
        """From the two sample photographs that come with scikit-learn."""
        from sklearn.datasets import load_sample_images

        return cls(tuple(image[None] for image in load_sample_images().images))

    def draw(
        self, num_sets: int, set_size: int, num_clusters: int, *, rng: torch.Generator
    ) -> Float[Tensor, "items features"]:
        """Patches at random places of random images."""
        total = num_sets * set_size
        which = torch.randint(len(self.images), (total,), generator=rng).numpy()
        unit = torch.rand(3, total, generator=rng).numpy()
        patches = np.empty((total, 27), np.float32)
        for number, stack in enumerate(self.images):
            rows = np.flatnonzero(which == number)
            room = np.array([len(stack), stack.shape[1] - 2, stack.shape[2] - 2])
            image, top, left = (unit[:, rows] * room[:, None]).astype(np.int64)
            for place in range(9):
                pixel = stack[image, top + place // 3, left + place % 3]
                patches[rows, 3 * place : 3 * place + 3] = pixel
        return torch.from_numpy(patches / 255)


@dataclass(frozen=True)
class Parts:
    """Points as they lie in a node deep in a tree: what is left after 0 to `depth` halvings.

    Each halving keeps one side, by chance, of a median cut along the leading principal axis. So a
    network that has seen only k = 2 has yet seen nodes of every level.
    """

    points: Points
    depth: int = 3

    @property
    def num_features(self) -> int:
        """Coordinates a point."""
        return self.points.num_features

    def draw(
        self, num_sets: int, set_size: int, num_clusters: int, *, rng: torch.Generator
    ) -> Float[Tensor, "items features"]:
        """The points of so many nodes, all of one level."""
        level = int(torch.randint(self.depth + 1, (), generator=rng))
        x = self.points.draw(num_sets, set_size * 2**level, num_clusters, rng=rng)
        x = x.reshape(num_sets, -1, self.num_features)
        for _ in range(level):
            centred = x - x.mean(1, keepdim=True)
            axis = torch.linalg.eigh(centred.transpose(1, 2) @ centred)[1][:, :, -1:]
            # an axis has no sign of its own: either half is as likely to be kept
            sign = 2.0 * torch.randint(2, (num_sets, 1), generator=rng) - 1
            order = (sign * (centred @ axis).squeeze(2)).argsort(1)[:, : x.shape[1] // 2]
            x = x.gather(1, order[..., None].expand(-1, -1, self.num_features))
        return x.flatten(0, 1)


@lru_cache
def _cifar10(folder: str, subset: str) -> np.ndarray:
    """Images (number, row, column, colour) of one file."""
    places = [Path(folder), Path(folder) / "cifar-10-batches-py"]
    file = next((p / subset for p in places if (p / subset).is_file()), None)
    if file is None:
        raise ValueError(f"cifar must be a folder that holds {subset}; got {folder}.")
    with file.open("rb") as opened:
        content: Any = _ArraysOnly(opened, encoding="bytes").load()
    return np.asarray(content[b"data"]).reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)


class _ArraysOnly(pickle.Unpickler):
    """Reads pickled arrays and nothing that could run code."""

    def find_class(self, module: str, name: str) -> Any:
        if module.split(".")[0] in ("numpy", "_codecs") and name in (
            "_reconstruct", "ndarray", "dtype", "encode", "scalar",
        ):  # fmt: skip
            return super().find_class(module, name)
        raise ValueError(f"cifar must be arrays; a file there asks for {module}.{name}.")


@dataclass(frozen=True)
class KMeansTask:
    """Points to part into as many clusters as a set's context says.

    With `clusters`, each batch takes one of these numbers; without, a set of n points has n over
    `points_each`, rounded. A solution is a partition tree, whose leaves are the clusters.
    """

    points: Points = field(default_factory=Gaussian)
    clusters: tuple[int, ...] | None = None
    points_each: int = 20

    @property
    def num_features(self) -> int:
        """Coordinates a point."""
        return self.points.num_features

    def sample(self, num_sets: int, set_size: int, *, rng: torch.Generator) -> SetBatch:
        """Fresh sets, with the number of clusters as context."""
        if self.clusters is None:
            k = max(2, round(set_size / self.points_each))
        else:
            k = self.clusters[int(torch.randint(len(self.clusters), (), generator=rng))]
        items = self.points.draw(num_sets, set_size, k, rng=rng)
        sizes = torch.full((num_sets,), set_size)
        return SetBatch.pack(items, sizes, torch.full((num_sets, 1), float(k)))

    def reward(self, sets: SetBatch, solution: PartitionTree) -> Float[Tensor, "sets"]:
        """Minus the k-means cost of the leaves."""
        return -cost_of(sets, solution.leaves)

    def cut_reward(self, sets: SetBatch, cuts: Candidates) -> Float[Tensor, "cuts"]:
        """The reward of every candidate cut of sets that end in two leaves."""
        return -cuts.cost.sum(1)

    def label_reward(self, sets: SetBatch, labels: Int[Tensor, "items"]) -> Float[Tensor, "sets"]:
        """Minus the k-means cost of any labels."""
        return -cost_of(sets, labels)

    def move_reward(
        self, sets: SetBatch, leaves: Int[Tensor, "items"]
    ) -> Float[Tensor, "items leaves_and_new"]:
        """What the reward gains if one point alone goes to each leaf, or to a new one (last)."""
        return move_gains(sets, leaves)


@dataclass(frozen=True)
class OneOf:
    """Several k-means tasks, one of them a batch."""

    tasks: tuple[KMeansTask, ...]

    @property
    def num_features(self) -> int:
        """Coordinates a point, in the first of the tasks."""
        return self.tasks[0].num_features

    def sample(self, num_sets: int, set_size: int, *, rng: torch.Generator) -> SetBatch:
        """Fresh sets of one of the tasks."""
        which = int(torch.randint(len(self.tasks), (), generator=rng))
        return self.tasks[which].sample(num_sets, set_size, rng=rng)

    def reward(self, sets: SetBatch, solution: PartitionTree) -> Float[Tensor, "sets"]:
        """Minus the k-means cost of the leaves."""
        return self.tasks[0].reward(sets, solution)

    def cut_reward(self, sets: SetBatch, cuts: Candidates) -> Float[Tensor, "cuts"]:
        """The reward of every candidate cut of sets that end in two leaves."""
        return self.tasks[0].cut_reward(sets, cuts)

    def label_reward(self, sets: SetBatch, labels: Int[Tensor, "items"]) -> Float[Tensor, "sets"]:
        """Minus the k-means cost of any labels."""
        return self.tasks[0].label_reward(sets, labels)

    def move_reward(
        self, sets: SetBatch, leaves: Int[Tensor, "items"]
    ) -> Float[Tensor, "items leaves_and_new"]:
        """What the reward gains if one point alone goes to each leaf, or to a new one (last)."""
        return self.tasks[0].move_reward(sets, leaves)
