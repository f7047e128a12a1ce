"""A graph network over near neighbours, for hundreds of thousands of cities.

It alternates between edge and node features like the paper's (section 4.2, "Graph Neural
Networks"), with k edges per item instead of n.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
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
        full = bool(graph.present.all())
        present = None if full else graph.present
        if present is not None:
            edges = edges * present[:, :, None]
        degree = graph.present.sum(1, keepdim=True).clamp(min=1)
        nodes = self.gather(edges.sum(1) / degree)
        for layer in self.layers:
            nodes, edges = layer(graph, present, degree, nodes, edges)
        ends = self.ends(nodes)
        there = ends.index_select(0, graph.neighbour.flatten()).reshape(edges.shape)
        logits = self.head(edges + ends[:, None] + there).squeeze(2)
        both = logits.flatten()[graph.reverse]
        return torch.where(graph.mutual, (logits + both) / 2, logits)


class _Layer(nn.Module):
    """Updates edges from their two ends and their reverse, then items from their edges."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.edge_self = nn.Linear(width, width)
        self.edge_back = nn.Linear(width, width, bias=False)
        self.edge_here = nn.Linear(width, width, bias=False)
        self.there = nn.Linear(width, 2 * width, bias=False)
        self.edge_norm = nn.LayerNorm(width)
        self.node = nn.Linear(4 * width, width)
        self.node_norm = nn.LayerNorm(width)

    def forward(
        self,
        graph: NearGraph,
        present: Bool[Tensor, "items slots"] | None,
        degree: Int[Tensor, "items 1"],
        nodes: Float[Tensor, "items width"],
        edges: Float[Tensor, "items slots width"],
    ) -> tuple[Float[Tensor, "items width"], Float[Tensor, "items slots width"]]:
        shape = edges.shape
        back = edges.flatten(0, 1).index_select(0, graph.reverse.flatten())
        back = back * graph.mutual.flatten()[:, None]  # zero if there is no reverse edge
        there = self.there(nodes).index_select(0, graph.neighbour.flatten())
        for_edge, for_node = there.reshape(*shape[:2], -1).chunk(2, dim=2)
        update = self.edge_self(edges) + self.edge_back(back).reshape(shape)
        update = update + self.edge_here(nodes)[:, None] + for_edge
        edges = edges + F.relu(self.edge_norm(update))
        gate = torch.sigmoid(edges)
        if present is None:
            largest = edges.amax(1)
        else:
            mask = present[:, :, None]
            edges, gate = edges * mask, gate * mask
            largest = edges.masked_fill(~mask, -1e4).amax(1).clamp(min=-1e2)
        weighted = (gate * for_node).sum(1) / (gate.sum(1) + 1e-6)
        seen = torch.cat([nodes, weighted, edges.sum(1) / degree, largest], 1)
        return nodes + F.relu(self.node_norm(self.node(seen))), edges
