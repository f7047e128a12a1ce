"""Max-cut: divide a graph in two so that as many edges as possible cross the cut."""

import numpy as np
import torch
from torch import Tensor

from diconet import PartitionTree, Relations, SetBatch
from diconet.core.segments import segment_sum

SIZE, STEPS = 30, 900
REFERENCE = "one-flip local search"


class MaxCut:
    """Points in a square, joined if they are closer than `radius`."""

    num_features = 2
    radius = 0.3

    def sample(self, num_sets: int, set_size: int, *, rng: torch.Generator) -> SetBatch:
        """Geometric graphs."""
        points = torch.rand(num_sets, set_size, 2, generator=rng)
        near = torch.cdist(points, points) < self.radius
        near &= ~torch.eye(set_size, dtype=torch.bool)
        sizes = torch.full((num_sets,), set_size)
        return SetBatch.pack(points.flatten(0, 1), sizes, relations=Relations.where(near))

    def reward(self, sets: SetBatch, solution: PartitionTree) -> Tensor:
        """The share of edges that are cut."""
        source, target = sets.edges()
        cut = (solution.leaves[source] != solution.leaves[target]).float()
        return segment_sum(cut, sets.graph.owner, len(sets)) / sets.graph.sizes.clamp(min=1)


def reference(sets: SetBatch) -> float:
    """Makes the best single flip, from a random cut, until none helps."""
    shares = []
    for number in range(len(sets)):
        graph = sets.take(torch.tensor([number])).graph
        joined = np.zeros((SIZE, SIZE))
        joined[graph.source, graph.target] = 1
        side = np.random.default_rng(number).choice([-1.0, 1.0], SIZE)
        while (gain := side * (joined @ side)).max() > 0:
            side[gain.argmax()] *= -1
        shares.append((joined * (1 - np.outer(side, side)) / 2).sum() / max(joined.sum(), 1))
    return float(np.mean(shares))


def bar(best: float) -> float:
    """0.64, which the local search does not reach on every draw of graphs."""
    return 0.64


if __name__ == "__main__":
    from gallery import show

    show(MaxCut(), __name__)
