"""A graph network without a given graph: each layer learns how similar items are (eq. fr3)."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from diconet.core.model import Part
from diconet.core.sets import SetBatch
from diconet.nets.padding import padded_rows, similar_sizes

PAIRS_AT_ONCE = 4_000_000
"""How many pairs of items one padded block may have: it bounds the memory of a layer."""

_ABSENT = -1e30
"""The logit of an item that is only padding."""


class SimilarityLayer(nn.Module):
    """Mixes every item with itself, with the mean of its set and with the items similar to it.

    The similarity of two items is the mean of softmax(x B x^T) seen from either of them, with B
    learned, so it is symmetric. Half of the outputs pass a ReLU, half stay linear; all are
    normalised, item by item: over the set, what the items of a set have in common would be lost.
    """

    def __init__(self, num_inputs: int, width: int) -> None:
        super().__init__()
        self.key = nn.Linear(num_inputs, num_inputs, bias=False)
        self.mix = nn.Linear(3 * num_inputs, width)
        self.norm = nn.LayerNorm(width)
        self.num_linear = width - width // 2

    def similarity(
        self, x: Float[Tensor, "sets n inputs"], there: Bool[Tensor, "sets n"]
    ) -> Float[Tensor, "sets n n"]:
        """How similar the items of each set are; 0 where one of the two is padding."""
        logits = self.key(x) @ x.transpose(1, 2)
        seen = logits.masked_fill(~there[:, None], _ABSENT).softmax(2) * there[..., None]
        return 0.5 * (seen + seen.transpose(1, 2))

    def forward(
        self, x: Float[Tensor, "sets n inputs"], there: Bool[Tensor, "sets n"]
    ) -> Float[Tensor, "sets n width"]:
        mean = _mean(x, there).expand_as(x)
        out = self.mix(torch.cat([x, mean, self.similarity(x, there) @ x], 2))
        linear, bent = out[..., : self.num_linear], out[..., self.num_linear :].relu()
        normal: Tensor = self.norm(torch.cat([linear, bent], 2))
        return normal * there[..., None]


class SimilarityNet(Part):
    """One score for every item of a set, whatever its size; the cost grows with its square."""

    def __init__(self, num_inputs: int, width: int = 32, num_layers: int = 5) -> None:
        super().__init__()
        if num_layers < 1:
            raise ValueError(f"num_layers must be at least 1; got {num_layers}.")
        self.layers = nn.ModuleList(
            SimilarityLayer(width if r else num_inputs, width) for r in range(num_layers)
        )
        self.head = nn.Linear(width, 1)

    def forward(self, sets: SetBatch, x: Float[Tensor, "items inputs"]) -> Float[Tensor, "items"]:
        scores = x.new_zeros(sets.num_items)
        for which in similar_sizes(sets.sizes, slack=2.0, most_pairs=PAIRS_AT_ONCE):
            rows, there = padded_rows(sets, which)
            hidden = x[rows] * there[..., None]
            for layer in self.layers:
                hidden = layer(hidden, there)
            group = self.head(hidden).squeeze(2)
            scores = scores.index_put((rows[there],), group[there])
        return scores


def _mean(x: Float[Tensor, "sets n width"], there: Bool[Tensor, "sets n"]) -> Tensor:
    weight = there.to(x.dtype)[..., None]
    return (x * weight).sum(1, keepdim=True) / weight.sum(1, keepdim=True)
