"""Graph colouring by reward alone: radio masts share four frequencies, and near ones disturb.

Masts closer than a radius are neighbours and should differ in colour. Two levels of cuts give four
colours. The split is a module of this file: messages between neighbours, started from noise, since
nothing else tells equal masts apart. All it ever hears is how many neighbours disturb each other.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from diconet import DiCoNet, PartitionTree, SetBatch, TrainConfig, check_task, train
from diconet.noise import mix, seeds_from, uniform
from diconet.segments import cross, segment_sum
from diconet.splits import RandomSplit, coin_cut
from diconet.tree import Cut

RADIUS = 0.28


def neighbours(sets: SetBatch) -> tuple[Tensor, Tensor]:
    """All pairs of items of one set that are closer than the radius, both ways round."""
    a, b = cross(sets.sizes, sets.sizes)
    near = (sets.items[a] - sets.items[b]).norm(dim=1) < RADIUS
    keep = near & (a != b)
    return a[keep], b[keep]


@dataclass(frozen=True)
class Colouring:
    """Masts uniform in the unit square; a colouring is the partition at the leaves."""

    num_features: int = 2

    def sample(self, num_sets: int, set_size: int, *, rng: torch.Generator) -> SetBatch:
        """Fresh places for the masts."""
        items = torch.rand(num_sets * set_size, 2, generator=rng)
        return SetBatch.pack(items, torch.full((num_sets,), set_size))

    def reward(self, sets: SetBatch, solution: PartitionTree) -> Tensor:
        """Minus the number of neighbours of one's own colour, a mast."""
        return -self.disturbed(sets, solution.leaves) / sets.sizes

    def disturbed(self, sets: SetBatch, colour: Tensor) -> Tensor:
        """How many pairs of neighbours have the same colour, a set."""
        a, b = neighbours(sets)
        same = (colour[a] == colour[b]).float()
        return segment_sum(same, sets.owner[a], len(sets)) / 2


class MessageSplit(nn.Module):
    """A coin for every item, from rounds of messages between neighbours that start from noise."""

    def __init__(self, width: int = 4, rounds: int = 8) -> None:
        super().__init__()
        self.width, self.rounds = width, rounds
        self.heard = nn.Linear(width, width, bias=False)
        self.head = nn.Linear(width, 1, bias=False)
        nn.init.normal_(self.head.weight, std=2.0)  # coins that are all fair have nothing to learn

    def forward(self, sets: SetBatch, seeds: Tensor | None) -> Cut:
        noise = mix(sets.sizes if seeds is None else seeds, 1)[sets.owner]
        noise = mix(noise, sets.position)
        state = torch.stack([2 * uniform(mix(noise, i)) - 1 for i in range(self.width)], 1)
        a, b = neighbours(sets)
        degree = segment_sum(torch.ones(len(a)), a, sets.num_items).clamp(min=1)[:, None]
        for _ in range(self.rounds):
            heard = segment_sum(state[b], a, sets.num_items) / degree.sqrt()
            state = torch.tanh(state + self.heard(heard))
        return coin_cut(sets, self.head(state).squeeze(1), seeds)


def greedy(sets: SetBatch) -> Tensor:
    """The classical rule: by falling degree, each mast takes the colour least heard around it."""
    a, b = neighbours(sets)
    colour = torch.full((sets.num_items,), -1)
    for item in torch.bincount(a, minlength=sets.num_items).argsort(descending=True).tolist():
        around = colour[b[a == item]]
        colour[item] = torch.bincount(around[around >= 0], minlength=4).argmin()
    return colour


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only show that it runs")
    quick = parser.parse_args().quick

    torch.set_num_threads(1)
    torch.manual_seed(0)
    task = Colouring()
    check_task(task, depth=2)
    model = DiCoNet(MessageSplit(), depth=2)
    config = TrainConfig(
        steps=3 if quick else 250,
        batch_size=32,
        tree_samples=8,
        min_size=8,
        max_size=24,
        split_lr=0.02,
        split_optimiser="adam",
        schedule="cosine",
        warmup=10,
    )
    train(model, task, config, quiet=True)

    test = task.sample(10 if quick else 100, 24, rng=torch.Generator().manual_seed(1))
    copies = 20
    many = test.repeat(copies)
    seeds = seeds_from(torch.Generator().manual_seed(2), len(many))
    with torch.no_grad():
        drawn = task.disturbed(many, model(many, seeds).tree.leaves).reshape(-1, copies)
        coins = DiCoNet(RandomSplit(), depth=2)(test, seeds[::copies]).tree.leaves
    ways = {
        "fair coins": task.disturbed(test, coins),
        "greedy": task.disturbed(test, greedy(test)),
        "learned, one tree": drawn[:, 0],
        f"learned, best of {copies}": drawn.amin(1),
    }
    edges = len(neighbours(test)[0]) / 2 / len(test)
    print(f"{len(test)} graphs of 24 masts, {edges:.0f} pairs of neighbours each, four colours")
    print("                     disturbed pairs  graphs with none")
    for name, count in ways.items():
        print(f"{name:20s} {count.mean():15.2f} {100 * (count == 0).float().mean():16.0f}%")


if __name__ == "__main__":
    main()
