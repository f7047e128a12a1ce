"""The merge of k-means: what two halves know of their clusters, put right where they meet."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor, nn

from diconet.merges.exchange_kernels import exchange_nodes
from diconet.sets import SetBatch
from diconet.tree import Level


@dataclass(frozen=True, eq=False)
class Clustering:
    """The cluster of every item of the roots, as far as a level knows.

    `leaves` numbers them within their node of the level, and `counts` says how many a node has.
    """

    roots: SetBatch
    leaves: Int[Tensor, "items"]
    counts: Int[Tensor, "nodes"]
    log_prob: None = None

    @property
    def solution(self) -> Clustering:
        """At the root: clusters in the place of the tree's leaves."""
        return self


class ExchangeMerge(nn.Module):
    """Joins the clusters of two halves, and repairs what cutting them apart has cost.

    A cut goes through clusters, and it fixes how many lie on either side: both only show where the
    halves meet. First every point of the node may move to another cluster, one at a time, where
    that saves (`passes` times around). Then, at most `tries` times, the cluster that is cheapest to
    lose is given up and the one that gains most is cut in two, and the exchange is kept if the
    points, moved anew, cost less. A round costs O(n k) at the root and half as much each level
    down. Nothing here is learned or random.
    """

    def __init__(self, passes: int = 4, tries: int = 16) -> None:
        super().__init__()
        for name, value in {"passes": passes, "tries": tries}.items():
            if value < 0:
                raise ValueError(f"{name} must be at least 0; got {value}.")
        self.config = {"passes": passes, "tries": tries}
        self.passes = passes
        self.tries = tries

    def forward(self, level: Level, below: Clustering | None, target: None) -> Clustering:
        counts = torch.ones_like(level.sets.sizes)
        if below is None:
            return Clustering(level.roots, torch.zeros_like(level.roots.index), counts)
        assert level.cut is not None
        nodes = level.sets.take(level.inner)
        first, second = below.counts.reshape(-1, 2).unbind(1)
        counts[level.inner] = first + second
        joined = below.leaves[nodes.index] + torch.where(level.cut.side, first[nodes.owner], 0)
        leaves = below.leaves.clone()
        leaves[nodes.index] = exchanged(nodes, joined, first + second, self.passes, self.tries)
        return Clustering(level.roots, leaves, counts)


def exchanged(
    sets: SetBatch,
    labels: Int[Tensor, "items"],
    counts: Int[Tensor, "sets"],
    passes: int,
    tries: int,
) -> Int[Tensor, "items"]:
    """Better labels for points in `counts` clusters a set."""
    better = labels.cpu().numpy().copy()
    points = sets.items.detach().cpu().numpy()
    offsets, number = sets.offsets.cpu().numpy(), counts.cpu().numpy()
    exchange_nodes(points, offsets, number, better, passes, tries)
    return torch.from_numpy(better).to(labels.device)
