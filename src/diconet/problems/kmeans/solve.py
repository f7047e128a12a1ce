"""Clusters of a user's points."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Unpack, overload

import numpy as np
import torch
from torch import nn

from diconet.core.host import from_host, one_thread, to_host
from diconet.core.model import DiCoNet
from diconet.core.sets import SetBatch, at_own_scale
from diconet.core.tree import Cut, Growth, PartitionTree, Split, fold, grow
from diconet.nets.by_features import ByFeatures
from diconet.nets.graph_split import GraphSplit
from diconet.nets.sweep import SweepSplit
from diconet.problems.inputs import (
    Asked,
    ManyPoints,
    Points,
    as_points,
    check_count,
    check_seed,
    is_many,
    tree_seeds,
)
from diconet.problems.kmeans.answer import Clusters, clusters_of
from diconet.problems.kmeans.budget import SharedBudget
from diconet.problems.kmeans.exchange import Clustering, ExchangeMerge, as_array
from diconet.problems.kmeans.frame import Frame
from diconet.problems.kmeans.lloyd import Settled, lloyd
from diconet.problems.kmeans.problem import PROBLEM
from diconet.problems.networks import as_network
from diconet.problems.progress import tell
from diconet.problems.solution import handed_back, labels_of

__all__ = ["Clusters", "clusters_tree", "kmeans"]


class _Options(Asked, total=False):
    lloyd: int
    exchange: bool
    sample_weight: Any


@overload
def kmeans(points: Points, k: int, **options: Unpack[_Options]) -> Clusters: ...
@overload
def kmeans(
    points: ManyPoints, k: int | Sequence[int] | np.ndarray, **options: Unpack[_Options]
) -> list[Clusters]: ...
def kmeans(
    points: Any,
    k: int | Sequence[int] | np.ndarray,
    *,
    lloyd: int = 300,
    exchange: bool = True,
    sample_weight: Any = None,
    model: str | Path | DiCoNet | None = None,
    seed: int | None = None,
    device: str | torch.device = "cpu",
) -> Clusters | list[Clusters]:
    """Divides points into k clusters, each close to its mean.

    A network cuts the points in two, and the parts again, until there are k. On the way back up,
    clusters are repaired where two halves are merged (`ExchangeMerge`).

    Args:
        points: An (n, d) array, list, tensor or DataFrame; or a list of these, solved as one batch.
        k: The number of clusters; for a list of point sets, one number or one each.
        lloyd: The maximum number of final rounds of Lloyd's algorithm.
        exchange: Whether clusters are repaired on the way up; with False and `lloyd=0`, the
            answer is the leaves of the tree.
        sample_weight: The weights of the points; for a list of point sets, one array each.
        model: The network: a shipped name, a weights file, a run folder or a `DiCoNet`; None for
            the default.
        seed: Draws the network's cuts at random; None takes the likeliest.
        device: Where to run the network, such as "cuda".

    Returns:
        The clusters, or a list of them for a list of point sets.

    >>> kmeans([[0, 0], [9, 9], [0, 1], [9, 8]], k=2).labels.tolist()
    [0, 1, 0, 1]
    """
    many = is_many(points, dims=2)
    arrays = [as_points(array, "points") for array in (points if many else [points])]
    counts = _counts(k, arrays)
    weights = _weights(sample_weight if many else [sample_weight], arrays)
    check_count(lloyd, "lloyd", least=0)
    seed = check_seed(seed)
    network = as_network(PROBLEM, model, device)
    _check_columns(arrays, network)
    frames = [Frame.of(array, weight) for array, weight in zip(arrays, weights, strict=True)]
    dtype = torch.float64 if any(frame.is_fine for frame in frames) else torch.float32
    sets = SetBatch.of(
        [torch.from_numpy(frame.x).to(device, dtype) for frame in frames],
        torch.tensor(counts, dtype=torch.float32, device=device)[:, None],
    )
    seeds = tree_seeds(seed, len(sets), device)
    tell("dividing")
    # The search's threads share out nodes; torch's would share single tensors, and mostly wait.
    with torch.inference_mode(), one_thread():
        tree = clusters_tree(network, sets, seeds)
        tell("merging, then Lloyd's rounds")
        settled = _settled(sets, tree, frames, merge_of(network) if exchange else None, lloyd)
    found = [
        clusters_of(frame, one, count, partitions, model)
        for frame, one, count, partitions in zip(
            frames, settled, counts, labels_of(tree), strict=True
        )
    ]
    return handed_back(found, points, many)


def clusters_tree(
    network: DiCoNet, sets: SetBatch, seeds: torch.Tensor | None = None
) -> PartitionTree:
    """A tree with the number of leaves given by each set's context.

    If the split does not divide them between its two sides, they follow the numbers of points.
    """
    split = budgeted_split(network, fine=sets.items.dtype == torch.float64)
    return grow(split, sets, Growth(), seeds, closed=sets.context[:, 0] <= 1)


def budgeted_split(network: DiCoNet, *, fine: bool = False) -> Split:
    """The network's split, wrapped if needed to divide a set's budget of leaves."""

    def at_its_own_scale(sets: SetBatch, seeds: torch.Tensor | None) -> Cut:
        return network.split(at_own_scale(sets), seeds)

    split: Split = at_its_own_scale if fine else network.split
    return split if isinstance(network.split, SweepSplit) else SharedBudget(split)


def merge_of(network: DiCoNet) -> ExchangeMerge:
    """The network's merge, or a default one if it has none."""
    return network.merge if isinstance(network.merge, ExchangeMerge) else ExchangeMerge()


def _settled(
    sets: SetBatch,
    tree: PartitionTree,
    frames: Sequence[Frame],
    merge: ExchangeMerge | None,
    rounds: int,
) -> list[Settled]:
    """The labels of every set: the tree's leaves, after the merge, after rounds of Lloyd."""
    weights = from_host(np.concatenate([frame.weights for frame in frames]), sets.items)
    if merge is None:
        counts = sets.context[:, 0].long()
        merged = Clustering(sets, weights, tree.leaves, counts)
    else:
        merged = fold(partial(merge, weights=weights), tree)
    if rounds == 0:
        return [Settled(to_host(labels), 0) for labels in sets.unpack(merged.leaves)]
    starts: Sequence[Any] = [None] * len(sets)
    if merged.sample is None:
        starts = [to_host(labels) for labels in sets.unpack(merged.labels)]
    return [
        lloyd(as_array(x), to_host(w), centres, rounds=rounds, labels=start)
        for x, w, centres, start in zip(
            sets.unpack(), sets.unpack(weights.float()), merged.centres(), starts, strict=True
        )
    ]


def _weights(given: Any, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """The weight of each point, one if not given."""
    if given is None:
        given = [None] * len(arrays)
    if len(given) != len(arrays):
        raise ValueError(
            f"sample_weight must be one array per set, {len(arrays)} in all; got {len(given)}."
        )
    found = []
    for one, array in zip(given, arrays, strict=True):
        weight = np.ones(len(array)) if one is None else np.asarray(one, dtype=np.float64)
        if weight.shape != (len(array),):
            raise ValueError(f"sample_weight must have shape ({len(array)},); got {weight.shape}.")
        if not (np.isfinite(weight).all() and (weight >= 0).all() and weight.sum() > 0):
            raise ValueError(
                f"sample_weight must be finite, at least 0 and not all 0; got {weight.min()}."
            )
        found.append(weight)
    return found


def _counts(k: Any, arrays: list[np.ndarray]) -> list[int]:
    k = k.item() if isinstance(k, np.ndarray) and k.ndim == 0 else k
    counts = list(k) if isinstance(k, Sequence | np.ndarray) else [k] * len(arrays)
    if len(counts) != len(arrays):
        raise ValueError(
            f"k must be one number or {len(arrays)}, one per array; got {len(counts)}."
        )
    for count, array in zip(counts, arrays, strict=True):
        if check_count(count, "k", least=1) > len(array):
            raise ValueError(f"k must be at most the number of points, {len(array)}; got {count}.")
    return [int(count) for count in counts]


def parts_of(network: DiCoNet) -> list[nn.Module]:
    """The network's splits: one, or one for each number of coordinates."""
    split = network.split
    return list(split.networks.values()) if isinstance(split, ByFeatures) else [split]


def num_features_of(network: DiCoNet) -> int:
    """The number of coordinates that the (first) split was made for, 2 if it takes any."""
    config: Any = parts_of(network)[0].config
    return int(config.get("num_features", 2))


def _check_columns(arrays: list[np.ndarray], network: DiCoNet) -> None:
    """Rejects arrays of different widths, or of a width that the network was not made for."""
    wide, split = arrays[0].shape[1], network.split
    made_for = ""
    if isinstance(split, ByFeatures):
        split.of(wide)
    elif isinstance(split, GraphSplit):
        wide, made_for = split.config["num_features"], " for this model"
    for array in arrays:
        if array.shape[1] != wide:
            raise ValueError(f"points must have shape (n, {wide}){made_for}; got {array.shape}.")
