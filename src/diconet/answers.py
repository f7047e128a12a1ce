"""What merges hand up the tree: ordered choices of items, and how likely a target is."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from diconet.segments import offsets_of, owner_of
from diconet.sets import SetBatch


@dataclass(frozen=True, eq=False)
class Sequences:
    """An ordered choice of items for every set, as places within the set."""

    places: Int[Tensor, "chosen"]
    sizes: Int[Tensor, "sets"]

    def __len__(self) -> int:
        return len(self.sizes)

    @classmethod
    def of(cls, sequences: list[Int[Tensor, "_"]]) -> Sequences:
        """From one tensor of places a set."""
        return cls(torch.cat(sequences), torch.tensor([len(s) for s in sequences]))

    @classmethod
    def from_answer(cls, answer: SetBatch, roots: SetBatch) -> Sequences:
        """From packed items that were chosen out of `roots`."""
        owner = owner_of(answer.sizes, answer.num_items)
        return cls(answer.index - roots.offsets[:-1][owner], answer.sizes)

    def rows(self, sets: SetBatch) -> Int[Tensor, "chosen"]:
        """The chosen items' rows in the packed sets."""
        return sets.offsets[:-1][owner_of(self.sizes)] + self.places

    def repeat(self, times: int) -> Sequences:
        """Each sequence so many times in a row."""
        which = torch.arange(len(self)).repeat_interleave(times)
        return self.take(which)

    def take(self, which: Int[Tensor, "some"]) -> Sequences:
        """The sequences of some sets."""
        pieces = self.places.split(self.sizes.tolist())
        return Sequences(torch.cat([pieces[i] for i in which.tolist()]), self.sizes[which])

    def unpack(self) -> list[Int[Tensor, "_"]]:
        """One tensor of places a set."""
        return list(self.places.split(self.sizes.tolist()))

    def rotated(self, key: Float[Tensor, "chosen"] | Int[Tensor, "chosen"]) -> Sequences:
        """Each sequence, read as a cycle, turned to start at its smallest key (the first such)."""
        return Sequences(self.places[rotation(key, self.sizes)], self.sizes)


def rotation(
    key: Float[Tensor, "chosen"] | Int[Tensor, "chosen"], sizes: Int[Tensor, "sets"]
) -> Int[Tensor, "chosen"]:
    """The row order that turns every cycle to start at its smallest key."""
    owner = owner_of(sizes)
    starts = offsets_of(sizes)[:-1]
    high = torch.iinfo(torch.long).max
    order = torch.argsort(torch.argsort(key, stable=True))  # ranks, so ties fall to the first
    best = torch.full((len(sizes),), high, dtype=torch.long)
    best = best.scatter_reduce(0, owner, order, "amin")
    first = torch.zeros(len(sizes), dtype=torch.long)
    is_first = order == best[owner]
    first[owner[is_first]] = (torch.arange(len(key)) - starts[owner])[is_first]
    place = torch.arange(len(key)) - starts[owner]
    return starts[owner] + (place + first[owner]) % sizes[owner]
