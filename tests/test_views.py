from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from diconet.answers import Sequences
from diconet.merges import PointerMerge
from diconet.model import DiCoNet
from diconet.noise import seeds_from
from diconet.sets import SetBatch
from diconet.splits import RandomSplit
from diconet.tasks.hull import HullTask, exact
from diconet.tree import Level
from diconet.views import SIDES, from_sides, largest


class RightFromOneSide(nn.Module):
    """Exact where it sees the sets from the `right`-th side; else it forgets a corner."""

    def __init__(self, right: int, num_sets: int) -> None:
        super().__init__()
        self.right, self.num_sets = right, num_sets

    def forward(self, level: Level, below: object, target: object) -> Any:
        hulls = HullTask().oracle(level.roots).unpack()
        found = [
            hull if i // self.num_sets == self.right or len(hull) == 1 else hull[1:]
            for i, hull in enumerate(hulls)
        ]
        return SimpleNamespace(solution=Sequences.of(found))


class Listening(RandomSplit):
    """Remembers the seeds it was given."""

    def forward(self, sets: SetBatch, seeds: Tensor | None) -> Any:
        self.seeds = seeds
        return super().forward(sets, seeds)


def largest_of_views(
    network: DiCoNet, sets: SetBatch, seeds: Tensor | None = None, *, num_views: int = 8
) -> Sequences:
    return largest(sets, from_sides(network, sets, seeds, num_views=num_views))


@pytest.fixture
def sets(rng: torch.Generator) -> SetBatch:
    line = torch.linspace(0, 1, 5)
    return SetBatch.of(
        [
            *(torch.rand(size, 2, generator=rng) + 5 for size in (20, 9, 3)),
            torch.rand(1, 2, generator=rng),
            torch.stack([line, line], 1),
        ]
    )


@pytest.mark.parametrize("right", range(8))
def test_the_side_that_sees_most_wins(sets: SetBatch, right: int) -> None:
    network = DiCoNet(RandomSplit(), RightFromOneSide(right, len(sets)), depth=0)
    hulls = HullTask().oracle(sets)
    assert exact(largest_of_views(network, sets), hulls).all()
    if right:
        found = largest_of_views(network, sets, num_views=right)
        assert exact(found, hulls).tolist() == [False, False, False, True, False]


def test_sides_are_the_symmetries_of_the_square() -> None:
    assert len({tuple(side.flatten().tolist()) for side in SIDES}) == 8
    assert torch.equal(SIDES @ SIDES.mT, torch.eye(2).expand(8, 2, 2))
    assert torch.linalg.det(SIDES).tolist() == [1, -1] * 4
    assert torch.equal(SIDES[0], torch.eye(2))


def test_running_around_twice_does_not_win() -> None:
    corners = torch.arange(7) * 2 * torch.pi / 7
    star, ring = torch.arange(7) * 2 % 7, torch.arange(7).flip(0)

    class Twice(nn.Module):
        def forward(self, level: Level, below: object, target: object) -> Any:
            return SimpleNamespace(solution=Sequences.of([star, ring]))

    sets = SetBatch.of([torch.stack([corners.cos(), corners.sin()], 1)])
    found = largest_of_views(DiCoNet(RandomSplit(), Twice(), depth=0), sets, num_views=2)
    assert found.places.tolist() == list(range(7))


def test_every_view_draws_anew_and_the_first_as_it_would_alone(rng: torch.Generator) -> None:
    sets = HullTask().sample(6, 12, rng=rng)
    seeds = seeds_from(rng, 6)
    split = Listening()
    model = DiCoNet(split, PointerMerge(2, 8), depth=1).eval()
    alone = model(sets, seeds).solution
    assert torch.equal(largest_of_views(model, sets, seeds, num_views=1).places, alone.places)
    largest_of_views(model, sets, seeds)
    drawn = split.seeds
    assert drawn is not None
    assert torch.equal(drawn[:6], seeds)
    assert len(set(drawn.tolist())) == 8 * 6


def test_an_answer_does_not_depend_on_the_batch(rng: torch.Generator) -> None:
    sets, seeds = HullTask().sample(5, 15, rng=rng), seeds_from(rng, 5)
    model = DiCoNet(RandomSplit(), PointerMerge(2, 8), depth=1).eval()
    together = largest_of_views(model, sets, seeds).unpack()
    for i in range(5):
        which = torch.tensor([i])
        alone = largest_of_views(model, sets.take(which).as_roots(), seeds[which])
        assert torch.equal(alone.places, together[i])


@pytest.mark.parametrize("num_views", [0, 9])
def test_there_are_eight_sides(sets: SetBatch, num_views: int) -> None:
    network = DiCoNet(RandomSplit(), RightFromOneSide(0, len(sets)), depth=0)
    with pytest.raises(ValueError, match=f"views must be from 1 to 8; got {num_views}"):
        largest_of_views(network, sets, num_views=num_views)
