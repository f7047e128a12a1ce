"""Two-means: cut points in two so that each part lies near its own mean."""

import torch
from torch import Tensor

from diconet import PartitionTree, SetBatch
from diconet.core.segments import segment_sum

SIZE, STEPS = 40, 1_500
REFERENCE = "k-means, ten starts"


class TwoMeans:
    """Points around two centres; the answer is a partition in two."""

    num_features = 2

    def sample(self, num_sets: int, set_size: int, *, rng: torch.Generator) -> SetBatch:
        """Two groups of points, at random positions in every set."""
        centre = torch.randn(num_sets, 2, 2, generator=rng)
        heap = torch.randint(2, (num_sets, set_size, 1), generator=rng).expand(-1, -1, 2)
        noise = 0.3 * torch.randn(num_sets, set_size, 2, generator=rng)
        items = (centre.gather(1, heap) + noise).flatten(0, 1)
        return SetBatch.pack(items, torch.full((num_sets,), set_size))

    def reward(self, sets: SetBatch, solution: PartitionTree) -> Tensor:
        """Minus the mean squared distance of an item to the mean of its part."""
        part = 2 * sets.owner + solution.leaves
        ones = torch.ones_like(sets.items[:, 0])
        count = segment_sum(ones, part, 2 * len(sets)).clamp(min=1)
        mean = segment_sum(sets.items, part, 2 * len(sets)) / count[:, None]
        return -sets.mean((sets.items - mean[part]).square().sum(1))


def reference(sets: SetBatch) -> float:
    """The mean reward of k-means with ten starts."""
    from sklearn.cluster import KMeans

    costs = [KMeans(2, n_init=10, random_state=0).fit(x).inertia_ / len(x) for x in sets.unpack()]
    return -sum(costs) / len(costs)


def bar(best: float) -> float:
    """At most 1.03 times the cost of k-means."""
    return 1.03 * best


if __name__ == "__main__":
    from gallery import show

    show(TwoMeans(), __name__)
