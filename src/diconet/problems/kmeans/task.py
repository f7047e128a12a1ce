"""K-means clustering (section 6.2): divide points into k clusters, each close to its own mean."""

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

from diconet.core.host import to_host
from diconet.core.segments import segment_sum
from diconet.core.sets import SetBatch
from diconet.core.tree import PartitionTree
from diconet.nets.sweep_candidates import Candidates


def cost_of(sets: SetBatch, labels: Int[Tensor, "items"]) -> Float[Tensor, "sets"]:
    """The sum of squared distances of the points to the mean of their cluster, per set."""
    width = int(labels.max()) + 1 if len(labels) else 1
    cluster = sets.owner * width + labels
    x = (sets.items - sets.mean(sets.items)[sets.owner]).double()
    count = torch.bincount(cluster, minlength=len(sets) * width).clamp(min=1)
    mean = segment_sum(x, cluster, len(sets) * width) / count[:, None]
    return sets.sum((x - mean[cluster]).square().sum(1)).float()


@runtime_checkable
class Points(Protocol):
    """A source of points."""

    @property
    def num_features(self) -> int:
        """Coordinates per point."""

    def draw(
        self, num_sets: int, set_size: int, num_clusters: int, *, rng: torch.Generator
    ) -> Float[Tensor, "items features"]:
        """The points of `num_sets` sets, set after set."""


@dataclass(frozen=True)
class Gaussian:
    """Clusters of equal spread around centres uniform in the unit cube, as in the paper.

    `uneven` above 0 makes clusters differ: sizes and spreads are multiplied by exp of normal draws
    with that deviation.
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
        spread = torch.full(shape, self.variance**0.5, device=rng.device)
        share = torch.ones(shape, device=rng.device)
        if self.uneven:
            spread = spread * torch.exp(self.uneven * torch.randn(shape, generator=rng))
            share = torch.exp(self.uneven * torch.randn(shape, generator=rng))
        upto = share.cumsum(1) / share.sum(1, keepdim=True)
        place = (torch.arange(set_size, device=rng.device) + 0.5) / set_size
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
        """From a folder with the Python version of CIFAR-10; a subset such as "test_batch"."""
        return cls((_cifar10(str(folder), subset),))

    @classmethod
    def photographs(cls) -> Patches:
        """From the two sample photographs that come with scikit-learn."""
        from sklearn.datasets import load_sample_images

        return cls(tuple(image[None] for image in load_sample_images().images))

    def draw(
        self, num_sets: int, set_size: int, num_clusters: int, *, rng: torch.Generator
    ) -> Float[Tensor, "items features"]:
        """Patches at random positions in random images."""
        total = num_sets * set_size
        which = to_host(torch.randint(len(self.images), (total,), generator=rng))
        unit = to_host(torch.rand(3, total, generator=rng))
        patches = np.empty((total, 27), np.float32)
        for number, stack in enumerate(self.images):
            rows = np.flatnonzero(which == number)
            room = np.array([len(stack), stack.shape[1] - 2, stack.shape[2] - 2])
            image, top, left = (unit[:, rows] * room[:, None]).astype(np.int64)
            for place in range(9):
                pixel = stack[image, top + place // 3, left + place % 3]
                patches[rows, 3 * place : 3 * place + 3] = pixel
        return torch.from_numpy(patches / 255)


@lru_cache
def _cifar10(folder: str, subset: str) -> np.ndarray:
    """The images (number, row, column, colour) of one file."""
    places = [Path(folder), Path(folder) / "cifar-10-batches-py"]
    file = next((p / subset for p in places if (p / subset).is_file()), None)
    if file is None:
        raise ValueError(f"cifar must be a folder that holds {subset}; got {folder}.")
    with file.open("rb") as opened:
        content: Any = _ArraysOnly(opened, encoding="bytes").load()
    return np.asarray(content[b"data"]).reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)


class _ArraysOnly(pickle.Unpickler):
    """Unpickles arrays only, and nothing that could run code."""

    def find_class(self, module: str, name: str) -> Any:
        if module.split(".")[0] in ("numpy", "_codecs") and name in (
            "_reconstruct", "ndarray", "dtype", "encode", "scalar",
        ):  # fmt: skip
            return super().find_class(module, name)
        raise ValueError(f"cifar must be arrays; a file there asks for {module}.{name}.")


@dataclass(frozen=True)
class KMeansTask:
    """Points to divide into the number of clusters given by a set's context.

    With `clusters`, each batch takes one of these numbers; without, a set of n points has n divided
    by `points_each`, rounded. With `size`, sets always have that many points. A
    solution is a partition tree, whose leaves are the clusters.
    """

    points: Points = field(default_factory=Gaussian)
    clusters: tuple[int, ...] | None = None
    points_each: int = 20
    size: int | None = None

    @property
    def num_features(self) -> int:
        """Coordinates per point."""
        return self.points.num_features

    def sample(self, num_sets: int, set_size: int, *, rng: torch.Generator) -> SetBatch:
        """Fresh sets, with the number of clusters as context."""
        set_size = self.size or set_size
        if self.clusters is None:
            k = max(2, round(set_size / self.points_each))
        else:
            k = self.clusters[int(torch.randint(len(self.clusters), (), generator=rng))]
        items = self.points.draw(num_sets, set_size, k, rng=rng)
        sizes = torch.full((num_sets,), set_size, device=rng.device)
        count = torch.full((num_sets, 1), float(k), device=rng.device)
        return SetBatch.pack(items, sizes, count)

    def reward(self, sets: SetBatch, solution: PartitionTree) -> Float[Tensor, "sets"]:
        """Minus the k-means cost of the leaves."""
        return -cost_of(sets, solution.leaves)

    def cut_reward(self, sets: SetBatch, cuts: Candidates) -> Float[Tensor, "cuts"]:
        """The reward of every candidate cut of sets that end in two leaves."""
        return -cuts.cost.sum(1)

    def label_reward(self, sets: SetBatch, labels: Int[Tensor, "items"]) -> Float[Tensor, "sets"]:
        """Minus the k-means cost of any labels."""
        return -cost_of(sets, labels)


@dataclass(frozen=True)
class OneOf(KMeansTask):
    """Several k-means tasks, rewarded alike; each batch comes from one of them."""

    tasks: tuple[KMeansTask, ...] = field(kw_only=True)

    @property
    def num_features(self) -> int:
        """Coordinates per point, in the first of the tasks."""
        return self.tasks[0].num_features

    def sample(self, num_sets: int, set_size: int, *, rng: torch.Generator) -> SetBatch:
        """Fresh sets of one of the tasks."""
        which = int(torch.randint(len(self.tasks), (), generator=rng))
        return self.tasks[which].sample(num_sets, set_size, rng=rng)
