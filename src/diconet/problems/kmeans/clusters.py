"""Clusters of packed points: what they cost, and Lloyd's rounds."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from diconet.core.segments import segment_sum
from diconet.core.sets import SetBatch


def cost_of(sets: SetBatch, labels: Int[Tensor, "items"]) -> Float[Tensor, "sets"]:
    """Squared distances of the points to the mean of their cluster, summed over each set."""
    width = int(labels.max()) + 1 if len(labels) else 1
    cluster = sets.owner * width + labels
    x = (sets.items - sets.mean(sets.items)[sets.owner]).double()
    count = torch.bincount(cluster, minlength=len(sets) * width).clamp(min=1)
    mean = segment_sum(x, cluster, len(sets) * width) / count[:, None]
    return sets.sum((x - mean[cluster]).square().sum(1)).float()


def lloyd_steps(sets: SetBatch, labels: Int[Tensor, "items"], steps: int) -> Int[Tensor, "items"]:
    """`steps` rounds of Lloyd's algorithm: means of the clusters, then each point to the nearest.

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
