"""Sums, softmaxes and index lists over the segments of a packed tensor.

A *segment* is a run of adjacent rows that belong together. Everything here is one vectorised
call over all segments, without padding, and differentiable where that makes sense.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from diconet.core.host import count


def offsets_of(sizes: Int[Tensor, "sets"]) -> Int[Tensor, "sets_and_one"]:
    """Where each segment starts; the last entry is the total."""
    return torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])


def owner_of(sizes: Int[Tensor, "sets"], total: int | None = None) -> Int[Tensor, "rows"]:
    """The segment that each row belongs to."""
    segments = torch.arange(len(sizes), device=sizes.device)
    return torch.repeat_interleave(segments, sizes, output_size=total)


def ragged_arange(starts: Int[Tensor, "runs"], sizes: Int[Tensor, "runs"]) -> Int[Tensor, "rows"]:
    """The indices `start, start + 1, ...` of every run, run after run."""
    total = count(sizes.sum())
    shift = starts - offsets_of(sizes)[:-1]
    return torch.arange(total, device=sizes.device) + torch.repeat_interleave(
        shift, sizes, output_size=total
    )


def place_within(owner: Int[Tensor, "rows"], num: int) -> Int[Tensor, "rows"]:
    """Position of each row among those of its owner, from 0; owners may come in any order."""
    order = torch.argsort(owner, stable=True)
    starts = offsets_of(torch.bincount(owner, minlength=num))[:-1]
    places = torch.empty_like(owner)
    places[order] = torch.arange(len(owner), device=owner.device) - starts[owner[order]]
    return places


def followers(sizes: Int[Tensor, "cycles"], step: int = 1) -> Int[Tensor, "rows"]:
    """The row `step` places after each row, with every segment read as a cycle."""
    owner = owner_of(sizes)
    start = offsets_of(sizes)[:-1][owner]
    place = torch.arange(len(owner), device=sizes.device) - start
    return start + (place + step) % sizes[owner]


def cross(
    left: Int[Tensor, "sets"], right: Int[Tensor, "sets"]
) -> tuple[Int[Tensor, "pairs"], Int[Tensor, "pairs"]]:
    """All pairs (left row, right row) within the same segment, ordered by left row."""
    left_owner = owner_of(left)
    width = right[left_owner]
    pair_left = owner_of(width)
    pair_right = ragged_arange(offsets_of(right)[:-1][left_owner], width)
    return pair_left, pair_right


def segment_sum(
    values: Float[Tensor, "rows *features"], owner: Int[Tensor, "rows"], num: int
) -> Float[Tensor, "num *features"]:
    """Sum of each segment's rows."""
    return values.new_zeros(num, *values.shape[1:]).index_add(0, owner, values)


def segment_max(
    values: Float[Tensor, "rows"], owner: Int[Tensor, "rows"], num: int, empty: float = 0.0
) -> Float[Tensor, "num"]:
    """Largest value of each segment, `empty` if it has no rows; carries no gradient."""
    start = values.new_full((num,), -torch.inf)
    best = start.scatter_reduce(0, owner, values.detach(), "amax")
    return torch.where(torch.isneginf(best), best.new_full((), empty), best)


def segment_argmax(
    values: Float[Tensor, "rows"] | Int[Tensor, "rows"], owner: Int[Tensor, "rows"], num: int
) -> Int[Tensor, "num"]:
    """First row with each segment's largest value (the number of rows if it is empty)."""
    rows = torch.arange(len(values), device=values.device)
    values = values.double()
    is_best = values == segment_max(values, owner, num, empty=-torch.inf)[owner]
    candidates = torch.where(is_best, rows, len(values))
    first = torch.full((num,), len(values), dtype=torch.long, device=values.device)
    return first.scatter_reduce(0, owner, candidates, "amin")


def segment_logsumexp(
    values: Float[Tensor, "rows"], owner: Int[Tensor, "rows"], num: int
) -> Float[Tensor, "num"]:
    """log of the sum of exponentials of each segment; minus infinity if it is empty."""
    peak = segment_max(values, owner, num)
    total = segment_sum(torch.exp(values - peak[owner]), owner, num)
    return torch.log(total) + peak


def segment_sort(
    keys: Float[Tensor, "rows"] | Int[Tensor, "rows"], owner: Int[Tensor, "rows"]
) -> Int[Tensor, "rows"]:
    """The row order that sorts every segment by its keys and keeps the segments in place."""
    by_key = torch.argsort(keys, stable=True)
    return by_key[torch.argsort(owner[by_key], stable=True)]


def inverse(permutation: Int[Tensor, "rows"]) -> Int[Tensor, "rows"]:
    """The permutation that undoes this one."""
    undo = torch.empty_like(permutation)
    undo[permutation] = torch.arange(len(permutation), device=permutation.device)
    return undo


def index_of(mask: Bool[Tensor, "rows"]) -> Int[Tensor, "chosen"]:
    """The rows where the mask is True."""
    return mask.nonzero().squeeze(1)
