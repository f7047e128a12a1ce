"""Sorting, learned from sorted lists: two ordered halves are interleaved by learned keys."""

import torch
from torch import Tensor

from diconet import Sequences, SetBatch
from diconet.core.segments import segment_sort

SIZE, STEPS = 40, 300
REFERENCE = "sort"


class Sorting:
    """Numbers to be put in ascending order."""

    num_features = 1
    answer = "order"

    def sample(self, num_sets: int, set_size: int, *, rng: torch.Generator) -> SetBatch:
        """Uniform numbers."""
        items = torch.rand(num_sets * set_size, 1, generator=rng)
        return SetBatch.pack(items, torch.full((num_sets,), set_size))

    def oracle(self, sets: SetBatch) -> Sequences:
        """The numbers in order."""
        order = segment_sort(sets.items[:, 0], sets.owner)
        return Sequences(sets.position[order], sets.sizes)

    def reward(self, sets: SetBatch, solution: Sequences) -> Tensor:
        """The share of positions that hold the right item."""
        return sets.mean((solution.places == self.oracle(sets).places).float())


def reference(sets: SetBatch) -> float:
    """The reward of a perfect sort."""
    return 1.0


def bar(best: float) -> float:
    """All but one position in a hundred right."""
    return 0.99


if __name__ == "__main__":
    from gallery import show

    show(Sorting(), __name__)
