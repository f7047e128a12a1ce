"""Sorting, learned from sorted lists: selection sort, or quicksort where balance is asked for.

The merge learns which of two halves comes first; the split learns to cut so that this is enough.
The safest such cut sets one item apart, the largest or the smallest, and that is what it comes to:
nothing in the answers tells it to do better. The regulariser of appendix A does, from the same
start. What a sort costs is the sum of the sizes of all nodes that are cut: n log2 n for equal
halves, about n^2 / 2 one by one.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from diconet import DiCoNet, Growth, PartitionTree, SetBatch, SetSplit, TrainConfig, train
from diconet.answers import Sequences
from diconet.check import check_task
from diconet.segments import inverse, offsets_of, segment_sort, segment_sum
from diconet.splits import Balanced
from diconet.tree import Level, halves, joined


@dataclass(frozen=True)
class Sorting:
    """Numbers between 0 and 1, to be put in ascending order."""

    num_features: int = 1

    def sample(self, num_sets: int, set_size: int, *, rng: torch.Generator) -> SetBatch:
        """Uniform numbers."""
        items = torch.rand(num_sets * set_size, 1, generator=rng)
        return SetBatch.pack(items, torch.full((num_sets,), set_size))

    def oracle(self, sets: SetBatch) -> Sequences:
        """The numbers in order."""
        order = segment_sort(sets.items[:, 0], sets.owner)
        return Sequences(sets.position[order], sets.sizes)

    def reward(self, sets: SetBatch, solution: Sequences) -> Tensor:
        """The share of places at which the sorted list has the same item."""
        right = solution.places == self.oracle(sets).places
        return sets.mean(right.float())


@dataclass(frozen=True, eq=False)
class Ordered:
    """The items of every node in order; with a target, the log-likelihood so far a root."""

    roots: SetBatch
    sets: SetBatch
    log_prob: Tensor | None = None

    @property
    def solution(self) -> Sequences:
        """The order as places within the roots."""
        return Sequences.from_answer(self.sets, self.roots)


class FirstHalf(nn.Module):
    """Says which of two halves comes first, from which has the larger mean."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.lean = nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, level: Level, below: Ordered | None, target: Sequences | None) -> Ordered:
        pairs, _ = halves(level, None if below is None else below.sets)
        node = joined(pairs)
        left, right = pairs.mean(pairs.items).reshape(-1, 2).unbind(1)
        gap = (right - left).sign()[:, None]
        logit = (self.lean(gap) - self.lean(-gap)).squeeze(1)  # swapping the halves turns its sign
        comes_second = (pairs.owner % 2 == 1) == (logit >= 0)[node.owner]
        rows = segment_sort(comes_second.float(), node.owner)
        answer = node.select(rows, node.sizes)
        if target is None:
            return Ordered(level.roots, answer)
        log_prob = log_likelihood(level, pairs, logit, target)
        if below is not None and below.log_prob is not None:
            log_prob = log_prob + below.log_prob
        return Ordered(level.roots, answer, log_prob)


def log_likelihood(level: Level, pairs: SetBatch, logit: Tensor, target: Sequences) -> Tensor:
    """What the nodes of a level add to the log-probability of a target, per pair of items.

    Two items part ways at exactly one node, and which of them is first is decided there; at a leaf,
    it is anybody's guess.
    """
    roots, node = level.roots, joined(pairs)
    rank = inverse(target.rows(roots))[node.index]
    by_rank = segment_sort(rank, node.owner)
    is_left = (pairs.owner % 2 == 0)[by_rank].long()
    seen = offsets_of(is_left)
    lefts_before = seen[:-1] - seen[node.offsets[:-1]][node.owner]
    right_order = node.sum((lefts_before * (1 - is_left)).float())
    size = pairs.sizes.reshape(-1, 2).float()
    wrong_order = size.prod(1) - right_order
    undecided = (size.sum(1) * (size.sum(1) - 1) / 2) * level.is_leaf
    added = (
        right_order * F.logsigmoid(logit)
        + wrong_order * F.logsigmoid(-logit)
        - undecided * torch.log(torch.tensor(2.0))
    )
    total = (roots.sizes * (roots.sizes - 1) / 2).clamp(min=1)
    return segment_sum(added, level.example, len(roots)) / total


def learned(regulariser: float, steps: int) -> DiCoNet:
    """A network trained from the same start, with or without the regulariser."""
    torch.manual_seed(0)
    split = SetSplit(1, width=8, num_layers=2)
    nn.init.constant_(split.head.bias, -1.0)  # about a quarter of the items on the second side
    # A cut must cut: where all items went to one side, the likeliest one goes to the other.
    model = DiCoNet(Balanced(split, share=1e-6), FirstHalf(), Growth(leaf_size=1))
    config = TrainConfig(
        steps=steps,
        batch_size=32,
        tree_samples=8,
        min_size=4,
        max_size=12,
        split_lr=0.02,
        split_optimiser="adam",
        merge_lr=0.02,
        schedule="cosine",
        warmup=10,
        regulariser=regulariser,
    )
    task = Sorting()
    return train(model, task, config, oracle=task.oracle, quiet=True)


def cost(tree: PartitionTree) -> float:
    """The sizes of all nodes that were cut, added up, an example."""
    sizes = [level.sets.sizes[level.inner].sum().item() for level in tree.levels]
    return sum(sizes) / len(tree.roots)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only show that it runs")
    quick = parser.parse_args().quick

    torch.set_num_threads(1)
    task = Sorting()
    check_task(task)
    size = 64
    test = task.sample(10 if quick else 200, size, rng=torch.Generator().manual_seed(1))
    halved, one_by_one = size * torch.tensor(float(size)).log2().item(), size * (size + 1) / 2 - 1
    print(f"{len(test)} lists of {size}; trained on lists of 4 to 12")
    print(f"cost: {halved:.0f} in equal halves, {one_by_one:.0f} one by one\n")
    print("regulariser  sorted  in place  depth  cost")
    for regulariser in (0.0, 30.0):
        model = learned(regulariser, steps=3 if quick else 200)
        with torch.no_grad():
            outcome = model(test)
        placed = task.reward(test, outcome.solution)
        print(
            f"{regulariser:11.1f}  {100 * (placed == 1).float().mean():5.1f}%"
            f"  {100 * placed.mean():7.1f}%  {outcome.tree.depth:5d}  {cost(outcome.tree):4.0f}"
        )


if __name__ == "__main__":
    main()
