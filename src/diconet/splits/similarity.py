"""A graph network without a given graph: each layer learns how much items have in common."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from diconet.segments import ragged_arange
from diconet.sets import SetBatch

_PAIRS_AT_ONCE = 4_000_000


class SimilarityLayer(nn.Module):
    """Mixes every item with itself, with the mean of its set and with the items similar to it.

    Similarity is softmax(x B x^T) with B learned. Half of the outputs pass a ReLU, half stay
    linear; all are normalised over the set.
    """

    def __init__(self, num_inputs: int, width: int) -> None:
        super().__init__()
        self.key = nn.Linear(num_inputs, num_inputs, bias=False)
        self.mix = nn.Linear(3 * num_inputs, width)
        self.num_linear = width - width // 2

    def forward(
        self, x: Float[Tensor, "sets n inputs"], there: Bool[Tensor, "sets n"]
    ) -> Float[Tensor, "sets n width"]:
        likeness = self.key(x) @ x.transpose(1, 2)
        likeness = likeness.masked_fill(~there[:, None], -1e30).softmax(2)
        mean = _mean(x, there).expand_as(x)
        out = self.mix(torch.cat([x, mean, likeness @ x], 2))
        linear, bent = out[..., : self.num_linear], out[..., self.num_linear :].relu()
        out = torch.cat([linear, bent], 2)
        centred = out - _mean(out, there)
        return centred * torch.rsqrt(_mean(centred.square(), there) + 1e-5)


class SimilarityNet(nn.Module):
    """One score for every item of a set, whatever its size; the cost grows with its square."""

    def __init__(self, num_inputs: int, width: int = 32, num_layers: int = 5) -> None:
        super().__init__()
        if num_layers < 1:
            raise ValueError(f"num_layers must be at least 1; got {num_layers}.")
        self.config = {"num_inputs": num_inputs, "width": width, "num_layers": num_layers}
        self.layers = nn.ModuleList(
            SimilarityLayer(width if r else num_inputs, width) for r in range(num_layers)
        )
        self.head = nn.Linear(width, 1)

    def forward(self, sets: SetBatch, x: Float[Tensor, "items inputs"]) -> Float[Tensor, "items"]:
        scores = x.new_zeros(sets.num_items)
        for which in size_groups(sets.sizes, _PAIRS_AT_ONCE):
            rows, there = padded_rows(sets, which)
            hidden = x[rows] * there[..., None]
            for layer in self.layers:
                hidden = layer(hidden, there)
            group = self.head(hidden).squeeze(2)
            scores = scores.index_put((rows[there],), group[there])
        return scores


def size_groups(sizes: Int[Tensor, "sets"], pairs: int) -> Iterator[Int[Tensor, "group"]]:
    """The sets that are not empty, in groups of like size with about so many pairs of items."""
    by_size = torch.argsort(sizes, stable=True)
    by_size = by_size[int((sizes == 0).sum()) :]
    # A group may hold sizes within a quarter of each other, so at most half of its work is padding.
    step = torch.log(sizes[by_size].double()).div(0.22).floor()
    for same in by_size.split(torch.unique_consecutive(step, return_counts=True)[1].tolist()):
        largest = int(sizes[same[-1]])
        yield from same.split(max(1, pairs // largest**2))


def padded_rows(
    sets: SetBatch, which: Int[Tensor, "group"]
) -> tuple[Int[Tensor, "group n"], Bool[Tensor, "group n"]]:
    """The items' rows of some sets, one set a line (0 where there is none), and where one is."""
    sizes = sets.sizes[which]
    there = torch.arange(int(sizes.max()), device=sizes.device) < sizes[:, None]
    rows = torch.zeros(there.shape, dtype=torch.long, device=sizes.device)
    rows[there] = ragged_arange(sets.offsets[:-1][which], sizes)
    return rows, there


def _mean(x: Float[Tensor, "sets n width"], there: Bool[Tensor, "sets n"]) -> Tensor:
    weight = there.to(x.dtype)[..., None]
    return (x * weight).sum(1, keepdim=True) / weight.sum(1, keepdim=True)
