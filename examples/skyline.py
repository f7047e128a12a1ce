"""Skyline: of hotels with two qualities, those that no other hotel beats in both."""

import torch
from torch import Tensor

from diconet import Sequences, SetBatch

SIZE, STEPS = 30, 600
REFERENCE = "skyline"


class Skyline:
    """Points in a square; the answer is a subset, learned from examples."""

    num_features = 2
    answer = "subset"

    def sample(self, num_sets: int, set_size: int, *, rng: torch.Generator) -> SetBatch:
        """Uniform points."""
        items = torch.rand(num_sets * set_size, 2, generator=rng)
        return SetBatch.pack(items, torch.full((num_sets,), set_size))

    def oracle(self, sets: SetBatch) -> Sequences:
        """The points that no other exceeds in both features."""
        on_it = []
        for points in sets.unpack():
            above = (points[None] > points[:, None]).all(2)
            on_it.append(~above.any(1))
        return Sequences.where(sets, torch.cat(on_it))

    def reward(self, sets: SetBatch, solution: Sequences) -> Tensor:
        """Intersection over union of the answer and the skyline."""
        right, mine = self.oracle(sets).mask(sets), solution.mask(sets)
        both = sets.sum((right & mine).float())
        return both / sets.sum((right | mine).float()).clamp(min=1)


def reference(sets: SetBatch) -> float:
    """The skyline itself."""
    return 1.0


def bar(best: float) -> float:
    """At most one item in ten wrong."""
    return 0.9


if __name__ == "__main__":
    from gallery import show

    show(Skyline(), __name__)
