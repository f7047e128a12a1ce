"""A task of one's own in thirty lines: cut points in two so that each part lies near its mean.

Nothing but the reward is given; the split learns from it by policy gradient. Compared with fair
coins, and with scikit-learn's k-means (ten starts), which is next to optimal at this size.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import torch
from torch import Tensor

from diconet import DiCoNet, PartitionTree, SetBatch, SetSplit, TrainConfig, check_task, train
from diconet.segments import segment_sum


@dataclass(frozen=True)
class TwoMeans:
    """Cut each set in two so that items lie near the mean of their part."""

    num_features: int = 2

    def sample(self, num_sets: int, set_size: int, *, rng: torch.Generator) -> SetBatch:
        """A heap of points on the left and one on the right, at places drawn for every set."""
        centre = torch.randn(num_sets, 2, 2, generator=rng)
        centre[..., 0] = centre[..., 0].abs() * torch.tensor([-1, 1])
        heap = torch.randint(2, (num_sets, set_size, 1), generator=rng).expand(-1, -1, 2)
        noise = 0.3 * torch.randn(num_sets, set_size, 2, generator=rng)
        items = (centre.gather(1, heap) + noise).flatten(0, 1)
        return SetBatch.pack(items, torch.full((num_sets,), set_size))

    def reward(self, sets: SetBatch, solution: PartitionTree) -> Tensor:
        """Minus the mean squared distance of an item to the mean of its part."""
        part = 2 * sets.owner + solution.leaves
        count = segment_sum(torch.ones(sets.num_items), part, 2 * len(sets)).clamp(min=1)
        mean = segment_sum(sets.items, part, 2 * len(sets)) / count[:, None]
        return -sets.mean((sets.items - mean[part]).square().sum(1))


def reference(sets: SetBatch) -> float:
    """The mean reward of k-means with ten starts."""
    from sklearn.cluster import KMeans

    costs = [KMeans(2, n_init=10, random_state=0).fit(x).inertia_ / len(x) for x in sets.unpack()]
    return -sum(costs) / len(costs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only show that it runs")
    quick = parser.parse_args().quick

    torch.set_num_threads(1)
    torch.manual_seed(0)
    task = TwoMeans()
    check_task(task)
    model = DiCoNet(split=SetSplit(task.num_features), depth=1)
    test = task.sample(10 if quick else 200, 40, rng=torch.Generator().manual_seed(1))

    def score() -> float:
        with torch.no_grad():
            return task.reward(test, model(test).solution).mean().item()

    before = score()
    train(model, task, TrainConfig(steps=5 if quick else 400, batch_size=128), quiet=True)
    print(f"mean reward on {len(test)} new sets of 40 points")
    print(f"  untrained {before:.3f}")
    print(f"  trained   {score():.3f}")
    print(f"  k-means   {reference(test):.3f}")


if __name__ == "__main__":
    main()
