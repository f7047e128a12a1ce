"""Facility location: four sites, one per district, close to their customers."""

import torch
from torch import Tensor

from diconet import PartitionTree, SetBatch
from diconet.core.segments import cross, segment_sum

SIZE, STEPS = 24, 500
REFERENCE = "greedy, one site at a time"


class Facility:
    """Customers in a square, each a possible site; the answer is four districts."""

    num_features = 2
    num_parts = 4
    one_cut = True

    def sample(self, num_sets: int, set_size: int, *, rng: torch.Generator) -> SetBatch:
        """Customers around four centres."""
        centre = torch.rand(num_sets, 4, 2, generator=rng)
        which = torch.randint(4, (num_sets, set_size, 1), generator=rng).expand(-1, -1, 2)
        points = centre.gather(1, which) + 0.07 * torch.randn(num_sets, set_size, 2, generator=rng)
        return SetBatch.pack(points.flatten(0, 1), torch.full((num_sets,), set_size))

    def reward(self, sets: SetBatch, solution: PartitionTree) -> Tensor:
        """Minus the mean distance to the best site of a customer's district."""
        district = 4 * sets.owner + solution.leaves
        customer, site = cross(sets.sizes, sets.sizes)
        way = (sets.items[customer] - sets.items[site]).norm(dim=1)
        own = (district[customer] == district[site]).float()
        total = segment_sum(way * own, site, sets.num_items)
        most = total.new_full((4 * len(sets),), torch.inf)
        best = most.scatter_reduce(0, district, total, "amin")
        best = torch.where(torch.isinf(best), 0, best)
        return -best.reshape(-1, 4).sum(1) / sets.sizes


def reference(sets: SetBatch) -> float:
    """Opens the site that shortens the distances most, four times."""
    total = 0.0
    for points in sets.unpack():
        way = torch.cdist(points, points)
        nearest = torch.full((len(points),), torch.inf)
        for _ in range(4):
            tries = torch.minimum(nearest, way)
            nearest = tries[tries.mean(1).argmin()]
        total -= nearest.mean().item()
    return total / len(sets)


def bar(best: float) -> float:
    """At most a fifth longer than greedy."""
    return 1.2 * best


if __name__ == "__main__":
    from gallery import show

    show(Facility(), __name__)
