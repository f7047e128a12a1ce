"""The travelling salesman (appendix C): the shortest round trip through every city."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from diconet.core.answers import Sequences
from diconet.core.noise import phase_generator
from diconet.core.segments import followers, owner_of, segment_sum
from diconet.core.sets import SetBatch
from diconet.problems.tsp.references import fast_tsp_tour


@dataclass(frozen=True)
class TspTask:
    """Cities uniform in the unit square; the answer is a tour. `seconds` is the time per label."""

    num_features: int = 2
    seconds: float = 0.02

    def sample(self, num_sets: int, set_size: int, *, rng: torch.Generator) -> SetBatch:
        """Fresh sets of uniform cities."""
        items = torch.rand(num_sets * set_size, 2, generator=rng)
        return SetBatch.pack(items, torch.full((num_sets,), set_size, device=rng.device))

    def oracle(self, sets: SetBatch) -> Sequences:
        """fast-tsp's tour of every set."""
        return Sequences.each(sets, lambda cities: fast_tsp_tour(cities, self.seconds))

    def reward(self, sets: SetBatch, solution: Sequences) -> Float[Tensor, "sets"]:
        """Minus the length of the tour."""
        return -lengths(sets, solution)


def lengths(sets: SetBatch, tours: Sequences) -> Float[Tensor, "sets"]:
    """The Euclidean length of every tour, including the way back."""
    here = sets.items[tours.rows(sets)].double()
    steps = torch.linalg.vector_norm(here[followers(tours.sizes)] - here, dim=1)
    return segment_sum(steps, owner_of(tours.sizes), len(sets)).float()


def neighbours(tour: Int[Tensor, "cities"]) -> Int[Tensor, "cities 2"]:
    """For every city, its two neighbours on the tour, the lower first."""
    both = torch.empty(len(tour), 2, dtype=torch.long, device=tour.device)
    both[tour] = torch.stack([tour.roll(1), tour.roll(-1)], 1)
    return both.sort(1).values


@dataclass(frozen=True, eq=False)
class TourBook:
    """Labelled instances of many sizes, from which a training run draws.

    `sample` takes instances of the size nearest to the requested one, rotates and mirrors them at
    random, and stores each one's number in its context, by which `oracle` finds its tour.
    """

    cities: Float[Tensor, "cities 2"]
    tours: Sequences
    num_features: int = 2

    @classmethod
    def make(cls, sizes: list[int], *, seed: int, seconds: float = 0.02) -> TourBook:
        """One instance of each size listed, labelled by fast-tsp.

        Training has its own phase, so no seed leads to an instance of a test set.
        """
        rng = phase_generator("train", seed)
        sets = SetBatch.of([torch.rand(size, 2, generator=rng) for size in sorted(sizes)])
        return cls(sets.items, TspTask(seconds=seconds).oracle(sets))

    def sample(self, num_sets: int, set_size: int, *, rng: torch.Generator) -> SetBatch:
        """Instances of the nearest available size, drawn with replacement."""
        sizes = self.tours.sizes
        nearest = sizes[(sizes - set_size).abs().argmin()]
        pool = (sizes == nearest).nonzero().squeeze(1)
        which = pool[torch.randint(len(pool), (num_sets,), generator=rng)]
        picked = SetBatch.pack(self.cities, sizes).take(which)
        angle = 2 * torch.pi * torch.rand(num_sets, generator=rng)
        flip = torch.randint(2, (num_sets,), generator=rng) * 2.0 - 1
        turn = torch.stack(
            [torch.cos(angle), -torch.sin(angle), flip * torch.sin(angle), flip * torch.cos(angle)]
        ).T.reshape(-1, 2, 2)
        items = torch.einsum("nij,nj->ni", turn[picked.owner], picked.items)
        return SetBatch.pack(items, picked.sizes, which[:, None].to(torch.float32))

    def oracle(self, sets: SetBatch) -> Sequences:
        """The tours of instances drawn from this book."""
        return self.tours.take(sets.context[:, 0].long())

    def reward(self, sets: SetBatch, solution: Sequences) -> Float[Tensor, "sets"]:
        """Minus the length of the tour."""
        return -lengths(sets, solution)
