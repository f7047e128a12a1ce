"""A graph network over near neighbours, for hundreds of thousands of cities.

It alternates between edge and node features like the paper's (section 4.2, "Graph Neural
Networks"), with k edges per item instead of n.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from diconet.core.model import Part
from diconet.nets.near import NearGraph


class NeighbourNet(Part):
    """Edge features in, one number per edge out, the same for both directions."""

    def __init__(self, num_features: int, width: int = 48, num_layers: int = 8) -> None:
        super().__init__()
        if num_layers < 1:
            raise ValueError(f"num_layers must be at least 1; got {num_layers}.")
        self.enter = nn.Linear(num_features, width)
        self.gather = nn.Linear(width, width)
        self.layers = nn.ModuleList(_Layer(width) for _ in range(num_layers))
        self.ends = nn.Linear(width, width, bias=False)
        self.head = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(
        self, graph: NearGraph, features: Float[Tensor, "items slots features"]
    ) -> Float[Tensor, "items slots"]:
        """A score per edge: how likely it belongs to the answer."""
        edges = self.enter(features)
        present = None if bool(graph.present.all()) else graph.present[:, :, None]
        if present is not None:
            edges = edges * present
        degree = graph.present.sum(1, keepdim=True).clamp(min=1).to(edges.dtype)
        mutual = graph.mutual.flatten()[:, None].to(edges.dtype)
        nodes = self.gather(edges.sum(1) / degree)
        for layer in self.layers:
            nodes, edges = layer(graph, present, mutual, degree, nodes, edges)
        ends = self.ends(nodes)
        there = ends.index_select(0, graph.neighbour.flatten()).reshape(edges.shape)
        logits = self.head(edges + ends[:, None] + there).squeeze(2)
        both = logits.flatten()[graph.reverse]
        return torch.where(graph.mutual, (logits + both) / 2, logits)


class _Layer(nn.Module):
    """Updates edges from their two ends and their reverse, then items from their edges.

    What depends on the same features comes from one product, and parts are not called as modules:
    small inputs take as long as the number of operations.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.edge = nn.Linear(width, 2 * width, bias=False)  # for itself, and for its reverse
        self.end = nn.Linear(width, 3 * width)  # for edges from here, edges to here, neighbours
        self.edge_norm = nn.LayerNorm(width)
        self.node = nn.Linear(4 * width, width)
        self.node_norm = nn.LayerNorm(width)

    def forward(
        self,
        graph: NearGraph,
        present: Bool[Tensor, "items slots 1"] | None,
        mutual: Float[Tensor, "edges 1"],
        degree: Float[Tensor, "items 1"],
        nodes: Float[Tensor, "items width"],
        edges: Float[Tensor, "items slots width"],
    ) -> tuple[Float[Tensor, "items width"], Float[Tensor, "items slots width"]]:
        shape = edges.shape
        width = shape[2]
        both = F.linear(edges.flatten(0, 1), self.edge.weight)
        ends = F.linear(nodes, self.end.weight, self.end.bias)
        there = ends[:, width:].index_select(0, graph.neighbour.flatten())
        back = both[:, width:].index_select(0, graph.reverse.flatten())
        # there is nothing to add where there is no reverse edge
        update = torch.addcmul(both[:, :width] + there[:, :width], back, mutual).reshape(shape)
        edges = edges + torch.relu(_normed(self.edge_norm, update + ends[:, None, :width]))
        gate = torch.sigmoid(edges)
        if present is None:
            largest = edges.amax(1)
        else:
            edges, gate = edges * present, gate * present
            largest = edges.masked_fill(~present, -1e4).amax(1).clamp(min=-1e2)
        weighted = (gate * there[:, width:].reshape(shape)).sum(1) / (gate.sum(1) + 1e-6)
        seen = torch.cat([nodes, weighted, edges.sum(1) / degree, largest], 1)
        seen = F.linear(seen, self.node.weight, self.node.bias)
        return nodes + torch.relu(_normed(self.node_norm, seen)), edges


def _normed(norm: nn.LayerNorm, values: Tensor) -> Tensor:
    return F.layer_norm(values, norm.normalized_shape, norm.weight, norm.bias, norm.eps)
