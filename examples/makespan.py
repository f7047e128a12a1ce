"""Makespan: jobs on two machines, so that both finish as early as possible."""

import torch
from torch import Tensor

from diconet import PartitionTree, SetBatch

SIZE, STEPS = 20, 500
REFERENCE = "longest job first"


class Makespan:
    """Jobs of various lengths; the two machines are interchangeable."""

    num_features = 1
    one_cut = True

    def sample(self, num_sets: int, set_size: int, *, rng: torch.Generator) -> SetBatch:
        """Lengths from 0.1 to 1.1."""
        items = 0.1 + torch.rand(num_sets * set_size, 1, generator=rng)
        return SetBatch.pack(items, torch.full((num_sets,), set_size))

    def reward(self, sets: SetBatch, solution: PartitionTree) -> Tensor:
        """Minus the difference between the machines, relative to the total."""
        length = sets.items[:, 0]
        sign = torch.where(solution.leaves == 0, 1.0, -1.0)
        return -sets.sum(sign * length).abs() / sets.sum(length)


def reference(sets: SetBatch) -> float:
    """The longest remaining job goes to the machine that is free first."""
    total = 0.0
    for jobs in sets.unpack():
        load = [0.0, 0.0]
        for length in jobs[:, 0].sort(descending=True)[0].tolist():
            load[load[0] > load[1]] += length
        total -= abs(load[0] - load[1]) / sum(load)
    return total / len(sets)


def bar(best: float) -> float:
    """Machines differ by at most 2% of the total; by chance it is 18%."""
    return -0.02


if __name__ == "__main__":
    from gallery import show

    show(Makespan(), __name__)
