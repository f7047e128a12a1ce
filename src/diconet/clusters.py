"""Clusters of packed points: what they cost, what moving a point changes, Lloyd's rounds."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from diconet.segments import segment_sum
from diconet.sets import SetBatch


def cost_of(sets: SetBatch, labels: Int[Tensor, "items"]) -> Float[Tensor, "sets"]:
    """Squared distances of the points to the mean of their cluster, summed over each set."""
    width = int(labels.max()) + 1 if len(labels) else 1
    cluster = sets.owner * width + labels
    x = (sets.items - sets.mean(sets.items)[sets.owner]).double()
    count = torch.bincount(cluster, minlength=len(sets) * width).clamp(min=1)
    mean = segment_sum(x, cluster, len(sets) * width) / count[:, None]
    return sets.sum((x - mean[cluster]).square().sum(1)).float()


def node_cost(sets: SetBatch) -> Float[Tensor, "sets"]:
    """What each set costs as one cluster."""
    return cost_of(sets, torch.zeros_like(sets.index))


def move_gains(
    sets: SetBatch, labels: Int[Tensor, "items"]
) -> Float[Tensor, "items clusters_and_new"]:
    """How much less a set would cost if one point alone went to each cluster, or to a new one.

    Leaving a cluster of m points with mean c saves m/(m-1) |x-c|^2; joining one of m points costs
    m/(m+1) |x-c|^2. The last column is the move to a new cluster; labels a set does not have count
    as new ones. Staying gains nothing.
    """
    width = int(labels.max()) + 1 if len(labels) else 1
    cluster = sets.owner * width + labels
    x = (sets.items - sets.mean(sets.items)[sets.owner]).double()
    count = torch.bincount(cluster, minlength=len(sets) * width).double()
    mean = segment_sum(x, cluster, len(count)) / count.clamp(min=1)[:, None]
    mine = count[cluster]
    saved = mine / (mine - 1).clamp(min=1) * (x - mean[cluster]).square().sum(1)
    there = count.reshape(-1, width)[sets.owner]
    far = (x[:, None] - mean.reshape(len(sets), width, -1)[sets.owner]).square().sum(2)
    gains = saved[:, None] - there / (there + 1) * far
    gains = gains.scatter(1, labels[:, None], 0.0)
    return torch.cat([gains, saved[:, None]], 1).float()


def lloyd_steps(sets: SetBatch, labels: Int[Tensor, "items"], steps: int) -> Int[Tensor, "items"]:
    """So many rounds of Lloyd's algorithm: means of the clusters, then each point to the nearest.

    Fewer if nothing moves any more. A cluster never runs empty: a round that would empty one is not
    made in that set.
    """
    k = sets.owner.new_zeros(len(sets)).scatter_reduce(0, sets.owner, labels + 1, "amax")
    width = int(k.max())
    x = sets.items - sets.mean(sets.items)[sets.owner]
    for _ in range(steps):
        cluster = sets.owner * width + labels
        count = torch.bincount(cluster, minlength=len(sets) * width)
        mean = segment_sum(x, cluster, len(count)) / count.clamp(min=1)[:, None]
        nearest = torch.empty_like(labels)
        block = max(1, 16_000_000 // (width * x.shape[1]))  # bounds the memory
        for low in range(0, len(x), block):
            part = slice(low, low + block)
            centres = mean.reshape(len(sets), width, -1)[sets.owner[part]]
            far = (x[part, None] - centres).square().sum(2)
            far[torch.arange(width, device=k.device) >= k[sets.owner[part], None]] = torch.inf
            nearest[part] = far.argmin(1)
        after = torch.bincount(sets.owner * width + nearest, minlength=len(count))
        emptied = ((after == 0) & (count > 0)).reshape(len(sets), width).any(1)
        moved = torch.where(emptied[sets.owner], labels, nearest)
        if torch.equal(moved, labels):
            break
        labels = moved
    return labels
