"""Ragged sets as padded blocks: sets of similar size together, for dense computation."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from diconet.core.segments import ragged_arange
from diconet.core.sets import SetBatch


def similar_sizes(
    sizes: Int[Tensor, "sets"], *, slack: float = 1.25, most_pairs: int = 2**24
) -> Iterator[Int[Tensor, "group"]]:
    """Groups of sets whose sizes differ by at most the factor `slack`, the largest set first.

    A group padded to its largest set has at most `most_pairs` pairs of items, or is one set. Empty
    sets are left out.
    """
    if not slack >= 1:
        raise ValueError(f"slack must be at least 1; got {slack}.")
    order = torch.argsort(sizes, descending=True, stable=True)
    ordered = sizes[order].tolist()
    low = 0
    while low < len(ordered) and ordered[low] > 0:
        largest = ordered[low]
        end = min(len(ordered), low + max(1, most_pairs // largest**2))
        high = low
        while high < end and ordered[high] > 0 and ordered[high] * slack >= largest:
            high += 1
        yield order[low:high]
        low = high


def padded_rows(
    sets: SetBatch, which: Int[Tensor, "group"]
) -> tuple[Int[Tensor, "group size"], Bool[Tensor, "group size"]]:
    """The rows of some sets' items, one set per line (0 at padding), and a mask of the real ones.

    `x[rows] * there[..., None]` is the padded block of packed values `x`; `out[there]` maps a
    block back to the rows `rows[there]`.
    """
    sizes = sets.sizes[which]
    there = torch.arange(int(sizes.max()), device=sizes.device) < sizes[:, None]
    rows = torch.zeros(there.shape, dtype=torch.long, device=sizes.device)
    rows[there] = ragged_arange(sets.offsets[:-1][which], sizes)
    return rows, there
