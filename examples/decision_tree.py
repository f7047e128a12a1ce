"""Decision tree: two levels of cuts along features, so that leaves hold one class each.

The classes form a two-by-two chessboard: no single cut helps, so a tree grown cut by cut has
nothing to go by. A split that learns from the reward of whole trees can see past that.
"""

import torch
from torch import Tensor

from diconet import PartitionTree, SetBatch
from diconet.core.segments import segment_sum

SIZE, STEPS = 40, 900
REFERENCE = "CART, depth 2"


class PureLeaves:
    """Points with a class of -1 or 1, the third feature; cuts go along the first two only."""

    num_features = 3
    num_parts = 4
    one_cut = True
    cut_along = (0, 1)

    def sample(self, num_sets: int, set_size: int, *, rng: torch.Generator) -> SetBatch:
        """Four squares that meet near the middle."""
        points = torch.rand(num_sets, set_size, 2, generator=rng)
        middle = 0.35 + 0.3 * torch.rand(num_sets, 1, 2, generator=rng)
        label = (points - middle).sign().prod(2, keepdim=True)
        items = torch.cat([points, label], 2).flatten(0, 1)
        return SetBatch.pack(items, torch.full((num_sets,), set_size))

    def reward(self, sets: SetBatch, solution: PartitionTree) -> Tensor:
        """The share of items in the majority class of their leaf."""
        leaf = 4 * sets.owner + solution.leaves
        lead = segment_sum(sets.items[:, 2], leaf, 4 * len(sets)).abs().reshape(-1, 4).sum(1)
        return 0.5 + lead / sets.sizes / 2


def reference(sets: SetBatch) -> float:
    """scikit-learn's tree, which takes the best cut at every step."""
    from sklearn.tree import DecisionTreeClassifier

    right = []
    for items in sets.unpack():
        points, label = items[:, :2].numpy(), items[:, 2].numpy()
        tree = DecisionTreeClassifier(max_depth=2, random_state=0).fit(points, label)
        right.append((tree.predict(points) == label).mean())
    return float(sum(right) / len(right))


def bar(best: float) -> float:
    """Nine in ten pure; the greedy tree reaches eight."""
    return 0.9


if __name__ == "__main__":
    from gallery import show

    show(PureLeaves(), __name__)
