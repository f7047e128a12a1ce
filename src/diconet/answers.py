"""What merges hand up the tree: ordered choices of items, and how likely a target is."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from diconet.segments import inverse, offsets_of, owner_of, ragged_arange, segment_argmax
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
        which = torch.arange(len(self), device=self.sizes.device).repeat_interleave(times)
        return self.take(which)

    def take(self, which: Int[Tensor, "some"]) -> Sequences:
        """The sequences of some sets."""
        sizes = self.sizes[which]
        rows = ragged_arange(offsets_of(self.sizes)[:-1][which], sizes)
        return Sequences(self.places[rows], sizes)

    def unpack(self) -> list[Int[Tensor, "_"]]:
        """One tensor of places a set."""
        return list(self.places.split(self.sizes.tolist()))

    def rotated(self, key: Float[Tensor, "chosen"] | Int[Tensor, "chosen"]) -> Sequences:
        """Each sequence, read as a cycle, turned to start at its smallest key (the first such)."""
        return Sequences(self.places[rotation(key, self.sizes)], self.sizes)


def rotation(
    key: Float[Tensor, "chosen"] | Int[Tensor, "chosen"], sizes: Int[Tensor, "sets"]
) -> Int[Tensor, "chosen"]:
    """The row order that turns every cycle to start at its smallest key (the first such)."""
    owner = owner_of(sizes, len(key))
    start = offsets_of(sizes)[:-1]
    place = torch.arange(len(key), device=key.device) - start[owner]
    first = segment_argmax(-inverse(torch.argsort(key, stable=True)), owner, len(sizes)) - start
    return start[owner] + (place + first[owner]) % sizes[owner]
