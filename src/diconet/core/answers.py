"""Answers that merges pass up the tree: ordered choices of items, numbers and labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from diconet.core.host import Movable, from_host, numbers, to_host
from diconet.core.segments import inverse, offsets_of, owner_of, ragged_arange, segment_argmax
from diconet.core.sets import SetBatch


@dataclass(frozen=True, eq=False)
class Sequences(Movable):
    """An ordered choice of items for every set, as positions within the set."""

    places: Int[Tensor, "chosen"]
    sizes: Int[Tensor, "sets"]

    def __len__(self) -> int:
        return len(self.sizes)

    @classmethod
    def of(cls, sequences: list[Int[Tensor, "_"]]) -> Sequences:
        """Sequences from one tensor of positions per set."""
        places = torch.cat(sequences)
        sizes = [len(sequence) for sequence in sequences]
        return cls(places, torch.tensor(sizes, device=places.device))

    @classmethod
    def each(cls, sets: SetBatch, solve: Callable[[np.ndarray], np.ndarray]) -> Sequences:
        """The answers of `solve`, called on the items of each set as a float64 array."""
        found = [solve(to_host(items.double())) for items in sets.unpack()]
        return cls.of([from_host(places.astype(np.int64), sets.sizes) for places in found])

    @classmethod
    def from_answer(cls, answer: SetBatch, roots: SetBatch) -> Sequences:
        """Sequences from packed items that were chosen out of `roots`."""
        owner = owner_of(answer.sizes, answer.num_items)
        return cls(answer.index - roots.offsets[:-1][owner], answer.sizes)

    def rows(self, sets: SetBatch) -> Int[Tensor, "chosen"]:
        """The chosen items' rows in the packed sets."""
        return sets.offsets[:-1][owner_of(self.sizes)] + self.places

    @classmethod
    def where(cls, sets: SetBatch, chosen: Bool[Tensor, "items"]) -> Sequences:
        """The items where a mask over the packed sets is True."""
        sizes = torch.bincount(sets.owner[chosen], minlength=len(sets))
        return cls(sets.position[chosen], sizes)

    def mask(self, sets: SetBatch) -> Bool[Tensor, "items"]:
        """A mask over the items of the packed sets: True where chosen."""
        chosen = torch.zeros(sets.num_items, dtype=torch.bool, device=sets.index.device)
        chosen[self.rows(sets)] = True
        return chosen

    def repeat(self, times: int) -> Sequences:
        """Each sequence `times` times in a row."""
        which = torch.arange(len(self), device=self.sizes.device).repeat_interleave(times)
        return self.take(which)

    def take(self, which: Int[Tensor, "some"]) -> Sequences:
        """The sequences of some sets."""
        sizes = self.sizes[which]
        rows = ragged_arange(offsets_of(self.sizes)[:-1][which], sizes)
        return Sequences(self.places[rows], sizes)

    def unpack(self) -> list[Int[Tensor, "_"]]:
        """One tensor of positions per set."""
        return list(self.places.split(numbers(self.sizes)))

    def rotated(self, key: Float[Tensor, "chosen"] | Int[Tensor, "chosen"]) -> Sequences:
        """Each sequence, read as a cycle, rotated to its smallest key (the first of equals)."""
        return Sequences(self.places[rotation(key, self.sizes)], self.sizes)


def rotation(
    key: Float[Tensor, "chosen"] | Int[Tensor, "chosen"], sizes: Int[Tensor, "sets"]
) -> Int[Tensor, "chosen"]:
    """The row order that rotates every cycle to start at its smallest key (the first of equals)."""
    owner = owner_of(sizes, len(key))
    start = offsets_of(sizes)[:-1]
    place = torch.arange(len(key), device=key.device) - start[owner]
    first = segment_argmax(-inverse(torch.argsort(key, stable=True)), owner, len(sizes)) - start
    return start[owner] + (place + first[owner]) % sizes[owner]


@dataclass(frozen=True, eq=False)
class Values(Movable):
    """A number or label for every set or, with `sizes`, for every item of every set."""

    values: Float[Tensor, "rows"] | Int[Tensor, "rows"]
    sizes: Int[Tensor, "sets"] | None = None

    def __len__(self) -> int:
        return len(self.values if self.sizes is None else self.sizes)

    def repeat(self, times: int) -> Values:
        """The values of each set `times` times in a row."""
        which = torch.arange(len(self), device=self.values.device)
        return self.take(which.repeat_interleave(times))

    def take(self, which: Int[Tensor, "some"]) -> Values:
        """The values of some sets."""
        if self.sizes is None:
            return Values(self.values[which])
        sizes = self.sizes[which]
        rows = ragged_arange(offsets_of(self.sizes)[:-1][which], sizes)
        return Values(self.values[rows], sizes)
