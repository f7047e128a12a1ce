"""Graph colouring: radio masts share four frequencies, and nearby ones should differ."""

import torch
from torch import Tensor

from diconet import PartitionTree, Relations, SetBatch
from diconet.core.segments import segment_sum

SIZE, STEPS = 30, 700
REFERENCE = "greedy, most constrained first"


class Colouring:
    """Masts uniform in the unit square; two levels of cuts give four colours."""

    num_features = 2
    num_parts = 4
    radius = 0.28

    def sample(self, num_sets: int, set_size: int, *, rng: torch.Generator) -> SetBatch:
        """Random positions of the masts; those closer than the radius are joined."""
        points = torch.rand(num_sets, set_size, 2, generator=rng)
        near = torch.cdist(points, points) < self.radius
        near &= ~torch.eye(set_size, dtype=torch.bool)
        sizes = torch.full((num_sets,), set_size)
        return SetBatch.pack(points.flatten(0, 1), sizes, relations=Relations.where(near))

    def reward(self, sets: SetBatch, solution: PartitionTree) -> Tensor:
        """Minus the number of nearby masts of the same colour, per mast."""
        source, target = sets.edges()
        same = (solution.leaves[source] == solution.leaves[target]).float()
        return -segment_sum(same, sets.graph.owner, len(sets)) / sets.sizes


def reference(sets: SetBatch) -> float:
    """The mast with most colours around it takes the colour that is rarest there."""
    total = 0.0
    for number in range(len(sets)):
        graph = sets.take(torch.tensor([number])).graph
        around = torch.zeros(SIZE, 4)
        near = torch.zeros(SIZE, SIZE)
        near[graph.source, graph.target] = 1
        colour = torch.full((SIZE,), -1)
        for _ in range(SIZE):
            order = (around > 0).sum(1) * SIZE + near.sum(1)
            mast = int(order.masked_fill(colour >= 0, -1).argmax())
            colour[mast] = int(around[mast].argmin())
            around[:, colour[mast]] += near[mast]
        total -= (colour[graph.source] == colour[graph.target]).sum().item() / SIZE
    return total / len(sets)


def bar(best: float) -> float:
    """At most a tenth of a conflict per mast more than greedy; random colours have 1.4."""
    return best - 0.1


if __name__ == "__main__":
    from gallery import show

    show(Colouring(), __name__)
