"""Balanced bisection of a mesh: two equal halves with few edges between them."""

import numpy as np
import torch
from torch import Tensor

from diconet import PartitionTree, Relations, SetBatch
from diconet.core.segments import segment_sum

SIZE, STEPS = 40, 500
REFERENCE = "spectral bisection"


class Bisection:
    """Points along a long or bent shape; a mesh joins near ones. The parts are contiguous."""

    num_features = 2
    one_cut = True

    def sample(self, num_sets: int, set_size: int, *, rng: torch.Generator) -> SetBatch:
        """Points along an arc of random width and angle."""
        along, across = torch.rand(2, num_sets, set_size, generator=rng)
        bend, turn = torch.rand(2, num_sets, 1, generator=rng)
        angle = 3 * bend * (along - 0.5) + 6.3 * turn
        far = 1 + 0.6 * across
        points = torch.stack([far * angle.cos(), far * angle.sin()], 2)
        points = (
            points
            + 0.5 * torch.stack([(6.3 * turn).cos(), (6.3 * turn).sin()], 2) * along[..., None]
        )
        distance = torch.cdist(points, points)
        nearest = distance.argsort(2)[:, :, 1:6]
        near = torch.zeros(distance.shape, dtype=torch.bool).scatter(2, nearest, True)
        near |= near.transpose(1, 2).clone()
        sizes = torch.full((num_sets,), set_size)
        return SetBatch.pack(points.flatten(0, 1), sizes, relations=Relations.where(near))

    def reward(self, sets: SetBatch, solution: PartitionTree) -> Tensor:
        """Minus the share of edges cut, and minus the imbalance of the halves."""
        source, target = sets.edges()
        cut = (solution.leaves[source] != solution.leaves[target]).float()
        share = segment_sum(cut, sets.graph.owner, len(sets)) / sets.graph.sizes
        return -share - 2 * (sets.mean(solution.leaves.float()) - 0.5).abs()


def reference(sets: SetBatch) -> float:
    """Equal halves along the second eigenvector of the Laplacian."""
    total = 0.0
    for number in range(len(sets)):
        graph = sets.take(torch.tensor([number])).graph
        joined = np.zeros((SIZE, SIZE))
        joined[graph.source, graph.target] = 1
        _, vectors = np.linalg.eigh(np.diag(joined.sum(1)) - joined)
        side = vectors[:, 1] > np.median(vectors[:, 1])
        total -= (joined * (side[:, None] != side)).sum() / joined.sum()
    return total / len(sets)


def bar(best: float) -> float:
    """At most a tenth more edges cut than the spectral method."""
    return 1.1 * best


if __name__ == "__main__":
    from gallery import show

    show(Bisection(), __name__)
