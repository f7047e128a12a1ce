from __future__ import annotations

import torch
from torch import nn

from diconet.merges import BestOfViews
from diconet.merges.pointer import Pointed
from diconet.noise import seeds_from
from diconet.sets import SetBatch
from diconet.splits import RandomSplit
from diconet.tasks.hull import HullTask, exact
from diconet.tree import Growth, Level, fold, grow
from tests.classic import Ordered, exact_hull_merge


class RightFromOneSide(nn.Module):
    """Exact where called for the `right`-th time at a level; else it forgets a corner."""

    def __init__(self, right: int) -> None:
        super().__init__()
        self.right, self.calls = right, 0

    def forward(self, level: Level, below: Pointed | None, target: object) -> Pointed:
        under = None if below is None else Ordered(level.roots, below.sets)
        hull = exact_hull_merge(level, under, target).sets
        if self.calls % 6 != self.right:
            cut = hull.position < (hull.sizes - 1).clamp(min=1)[hull.owner]
            sizes = torch.bincount(hull.owner[cut], minlength=len(hull))
            hull = hull.select(cut.nonzero().squeeze(1), sizes)
        self.calls += 1
        return Pointed(level.roots, hull, 0)


def test_the_side_that_sees_most_wins_at_every_node(rng: torch.Generator) -> None:
    sets = HullTask().sample(30, 20, rng=rng)
    tree = grow(RandomSplit(), sets, Growth(depth=2), seeds_from(rng, 30))
    for right in (0, 2, 3, 5):
        merge = RightFromOneSide(right)
        found = fold(BestOfViews(merge, turns=3), tree).solution
        assert merge.calls == 6 * 3
        assert exact(found, HullTask().oracle(sets)).all()
    assert not exact(fold(RightFromOneSide(9), tree).solution, HullTask().oracle(sets)).any()


def test_points_come_back_as_they_were(rng: torch.Generator) -> None:
    sets = SetBatch.of([torch.rand(7, 2, generator=rng) + 5, torch.rand(1, 2, generator=rng)])
    tree = grow(RandomSplit(), sets, Growth(depth=1), seeds_from(rng, 2))
    answer = fold(BestOfViews(RightFromOneSide(5), turns=3), tree)
    assert torch.equal(answer.sets.items, sets.items[answer.sets.index])


def test_training_goes_past_it() -> None:
    class Told(nn.Module):
        def forward(self, level: Level, below: object, target: object) -> object:
            return target

    tree = grow(RandomSplit(), SetBatch.of([torch.rand(3, 2)]), Growth(depth=0))
    told = Pointed(tree.roots, tree.roots, 0)
    assert fold(BestOfViews(Told()), tree, told) is told
