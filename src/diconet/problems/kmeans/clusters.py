"""What clusters of packed points cost."""

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
