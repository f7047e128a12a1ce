"""The paper's graph network, which alternates node and edge features over complete graphs (4.2).

Every unordered pair of items of a set is one packed row, so sets of different sizes need no
padding and the two directions of an edge can never disagree.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from diconet.core.model import Part
from diconet.core.segments import offsets_of, ragged_arange
from diconet.core.sets import SetBatch


@dataclass(frozen=True, eq=False)
class Pairs:
    """All pairs of items (one before the other) of every set, as packed rows."""

    sets: SetBatch
    one: Int[Tensor, "pairs"]
    other: Int[Tensor, "pairs"]

    @classmethod
    def of(cls, sets: SetBatch) -> Pairs:
        """The pairs of each set, ordered by their first item, then their second."""
        later = sets.sizes[sets.owner] - 1 - sets.position
        rows = torch.arange(sets.num_items, device=sets.sizes.device)
        return cls(sets, rows.repeat_interleave(later), ragged_arange(rows + 1, later))

    @cached_property
    def starts(self) -> Int[Tensor, "items"]:
        """For each item, the row of the first pair that starts with it."""
        later = self.sets.sizes[self.sets.owner] - 1 - self.sets.position
        return offsets_of(later)[:-1]

    def number(self, one: Int[Tensor, "some"], other: Int[Tensor, "some"]) -> Int[Tensor, "some"]:
        """The rows of given pairs of items of the same set."""
        low, high = torch.minimum(one, other), torch.maximum(one, other)
        return self.starts[low] + high - low - 1

    @cached_property
    def distance(self) -> Float[Tensor, "pairs"]:
        """The distance of the two items of each pair."""
        return torch.linalg.vector_norm(
            self.sets.items[self.one] - self.sets.items[self.other], dim=1
        )

    def gather(self, values: Float[Tensor, "pairs width"]) -> Float[Tensor, "items width"]:
        """The sum over all pairs that contain an item."""
        total = values.new_zeros(self.sets.num_items, values.shape[1])
        return total.index_add(0, self.one, values).index_add(0, self.other, values)


class PairNet(Part):
    """Alternates node and edge features: nodes sum over edges, edges see their two nodes.

    V <- rho(V, sum A V), A <- phi(V, V', A), with phi symmetric and nonnegative. Two things are
    ours: phi also sees the edge's previous features, and layers are residual.
    """

    def __init__(
        self, node_inputs: int, edge_inputs: int, width: int = 20, num_layers: int = 20
    ) -> None:
        super().__init__()
        if num_layers < 1:
            raise ValueError(f"num_layers must be at least 1; got {num_layers}.")
        self.nodes_in = nn.Linear(node_inputs, width)
        self.edges_in = nn.Linear(edge_inputs, width)
        self.layers = nn.ModuleList(_PairLayer(width) for _ in range(num_layers))

    def forward(
        self,
        pairs: Pairs,
        nodes: Float[Tensor, "items node_inputs"],
        edges: Float[Tensor, "pairs edge_inputs"],
        weight: Float[Tensor, "pairs"] | None = None,
    ) -> tuple[Float[Tensor, "items width"], Float[Tensor, "pairs width"]]:
        """The last layer's node and edge features.

        Items take the mean over all others, or a mean weighted by `weight`, which can look the same
        in a small set and a large one.
        """
        v = self.nodes_in(nodes)
        a = F.softplus(self.edges_in(edges))
        shares = _shares(pairs, weight)
        for layer in self.layers:
            v, a = layer(pairs, shares, v, a)
        return v, a


def _shares(
    pairs: Pairs, weight: Float[Tensor, "pairs"] | None
) -> tuple[Float[Tensor, "pairs 1"], Float[Tensor, "pairs 1"]]:
    """The weight of each pair in the mean of its first item and of its second."""
    if weight is None:
        share = 1 / pairs.sets.sizes[pairs.sets.owner[pairs.one]][:, None].to(pairs.distance.dtype)
        return share, share
    total = pairs.gather(weight[:, None]).clamp(min=1e-9)
    return weight[:, None] / total[pairs.one], weight[:, None] / total[pairs.other]


class _PairLayer(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.message = nn.Linear(width, width)
        self.node = nn.Linear(2 * width, width)
        self.node_norm = nn.LayerNorm(width)
        self.ends = nn.Linear(width, width, bias=False)
        self.apart = nn.Linear(width, width, bias=False)
        self.edge = nn.Linear(width, width)
        self.edge_norm = nn.LayerNorm(width)

    def forward(
        self,
        pairs: Pairs,
        shares: tuple[Float[Tensor, "pairs 1"], Float[Tensor, "pairs 1"]],
        v: Float[Tensor, "items width"],
        a: Float[Tensor, "pairs width"],
    ) -> tuple[Float[Tensor, "items width"], Float[Tensor, "pairs width"]]:
        sent = self.message(v)
        there = shares[0] * a * sent.index_select(0, pairs.other)
        back = shares[1] * a * sent.index_select(0, pairs.one)
        heard = v.new_zeros(v.shape).index_add(0, pairs.one, there).index_add(0, pairs.other, back)
        v = v + F.relu(self.node_norm(self.node(torch.cat([v, heard], 1))))
        ends, place = self.ends(v), self.apart(v)
        seen = self.edge(a)
        seen = seen + ends.index_select(0, pairs.one) + ends.index_select(0, pairs.other)
        gap = place.index_select(0, pairs.one) - place.index_select(0, pairs.other)
        return v, a + F.relu(self.edge_norm(seen + gap.abs()))
