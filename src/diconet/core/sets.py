"""Packed sets: a batch of sets of different sizes in one tensor, without padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor

from diconet.core.host import Movable, count, numbers
from diconet.core.relations import Relations
from diconet.core.segments import offsets_of, owner_of, ragged_arange, segment_max, segment_sum


@dataclass(frozen=True, eq=False)
class SetBatch(Movable):
    """Sets (or sequences: the order of the items is kept) of different sizes, end to end.

    `context` holds features of a whole set, such as the capacity of a knapsack. `index` is the row
    of each item in the original batch, so that answers deep in a tree can be traced back.
    `relations` are edges between items of the same set, if there are any.
    """

    items: Float[Tensor, "items features"]
    sizes: Int[Tensor, "sets"]
    context: Float[Tensor, "sets context"]
    index: Int[Tensor, "items"]
    relations: Relations | None = None

    @classmethod
    def pack(
        cls,
        items: Float[Tensor, "items features"],
        sizes: Int[Tensor, "sets"],
        context: Float[Tensor, "_ context"] | None = None,
        relations: Relations | None = None,
    ) -> SetBatch:
        """A batch from items that are already end to end."""
        if count((sizes < 0).any()):
            raise ValueError(f"sizes must be at least 0; got {count(sizes.min())}.")
        if count(sizes.sum()) != len(items):
            raise ValueError(
                f"sizes must add up to the number of items, {len(items)}; got {count(sizes.sum())}."
            )
        if context is None:
            context = items.new_zeros(len(sizes), 0)
        if len(context) != len(sizes):
            raise ValueError(
                f"context must have one row per set, {len(sizes)} in all; got {len(context)}."
            )
        if relations is not None:
            relations.check(sizes)
        index = torch.arange(len(items), device=items.device)
        return cls(items, sizes.long(), context, index, relations)

    @classmethod
    def of(
        cls,
        sets: Sequence[Float[Tensor, "_ features"]],
        context: Float[Tensor, "sets context"] | None = None,
        relations: Relations | None = None,
    ) -> SetBatch:
        """A batch from a list of sets, each of shape (size, features)."""
        if not sets:
            raise ValueError("sets must hold at least one set; got none.")
        shapes = {tuple(items.shape[1:]) for items in sets}
        if len(shapes) > 1 or any(items.dim() != 2 for items in sets):
            raise ValueError(
                "sets must all be of shape (size, features), with the same features; got "
                f"{' and '.join(str(tuple(items.shape)) for items in sets[:9])}."
            )
        sizes = torch.tensor([len(items) for items in sets], device=sets[0].device)
        return cls.pack(torch.cat(list(sets)), sizes, context, relations)

    @classmethod
    def cat(cls, batches: Sequence[SetBatch]) -> SetBatch:
        """The sets of several batches, one batch after the other; `index` is unchanged."""
        items, sizes, context, index = (
            torch.cat([getattr(b, name) for b in batches])
            for name in ("items", "sizes", "context", "index")
        )
        edges = [b.relations for b in batches if b.relations is not None]
        relations = Relations.cat(edges) if len(edges) == len(batches) else None
        return cls(items, sizes, context, index, relations)

    def __len__(self) -> int:
        return len(self.sizes)

    def __repr__(self) -> str:
        return f"SetBatch({len(self)} sets, {self.num_items} items of {self.num_features} features)"

    @property
    def num_items(self) -> int:
        """The number of items in all sets together."""
        return len(self.items)

    @property
    def num_features(self) -> int:
        """The number of features per item."""
        return self.items.shape[1]

    @cached_property
    def offsets(self) -> Int[Tensor, "sets_and_one"]:
        """Where each set starts, followed by the total."""
        return offsets_of(self.sizes)

    @cached_property
    def owner(self) -> Int[Tensor, "items"]:
        """The set that each item belongs to."""
        return owner_of(self.sizes, self.num_items)

    @cached_property
    def position(self) -> Int[Tensor, "items"]:
        """Position of each item within its set, from 0."""
        rows = torch.arange(self.num_items, device=self.sizes.device)
        return rows - self.offsets[:-1][self.owner]

    def sum(self, values: Float[Tensor, "items *features"]) -> Float[Tensor, "sets *features"]:
        """Sum over the items of each set."""
        return segment_sum(values, self.owner, len(self))

    def mean(self, values: Float[Tensor, "items *features"]) -> Float[Tensor, "sets *features"]:
        """Mean over the items of each set; zero where a set is empty."""
        count = self.sizes.clamp(min=1).to(values.dtype)
        return self.sum(values) / count.reshape(-1, *[1] * (values.dim() - 1))

    def edges(self) -> tuple[Int[Tensor, "edges"], Int[Tensor, "edges"]]:
        """The rows of both ends of every edge."""
        return self.graph.rows(self.offsets)

    @property
    def graph(self) -> Relations:
        """The relations; an error if there are none."""
        if self.relations is None:
            raise ValueError("the sets have no relations; pass them to pack or of.")
        return self.relations

    def take(self, which: Int[Tensor, "chosen"]) -> SetBatch:
        """The chosen sets, in that order (a set may be chosen more than once)."""
        sizes = self.sizes[which]
        rows = ragged_arange(self.offsets[:-1][which], sizes)
        edges = None if self.relations is None else self.relations.take(which)
        return SetBatch(self.items[rows], sizes, self.context[which], self.index[rows], edges)

    def as_roots(self) -> SetBatch:
        """The same sets as a new root batch, with `index` renumbered."""
        return replace(self, index=torch.arange(self.num_items, device=self.index.device))

    def repeat(self, times: int) -> SetBatch:
        """Each set `times` times in a row, every copy a separate root."""
        which = torch.arange(len(self), device=self.sizes.device).repeat_interleave(times)
        return self.take(which).as_roots()

    def repeated(self, values: Tensor, times: int) -> Tensor:
        """Per-item values for the items of `repeat(times)`."""
        if times == 1:
            return values
        which = torch.arange(len(self), device=self.sizes.device).repeat_interleave(times)
        return values.index_select(0, ragged_arange(self.offsets[which], self.sizes[which]))

    def select(self, rows: Int[Tensor, "rows"], sizes: Int[Tensor, "sets"]) -> SetBatch:
        """The sets with only these items, in this order; `sizes` is the number each set keeps."""
        edges = None
        if self.relations is not None:
            home, place = self.owner.new_full((2, self.num_items), -1)
            home[rows] = owner_of(sizes, len(rows))
            place[rows] = torch.arange(len(rows), device=rows.device)
            place[rows] -= offsets_of(sizes)[:-1][home[rows]]
            edges = self.relations.moved(place, home, len(sizes), self.offsets)
        return SetBatch(self.items[rows], sizes, self.context, self.index[rows], edges)

    def unpack(self, values: Tensor | None = None) -> list[Tensor]:
        """One tensor per set: its items, or any other per-item values."""
        return list((self.items if values is None else values).split(numbers(self.sizes)))

    def with_items(self, items: Float[Tensor, "items features"]) -> SetBatch:
        """The same sets with other features."""
        return replace(self, items=items)


def standardise(
    sets: SetBatch, floor: float = 1e-6, per_feature: bool = False
) -> tuple[
    Float[Tensor, "items features"], Float[Tensor, "sets features"], Float[Tensor, "sets spreads"]
]:
    """Items shifted to mean 0 and scaled to spread 1 within their set, with that mean and spread.

    The spread is one number per set, over all features, which preserves shapes; or one
    `per_feature`, so that a slice of a square looks like a square.
    """
    mean = sets.mean(sets.items)
    centred = sets.items - mean[sets.owner]
    square = centred.square()
    spread = sets.mean(square if per_feature else square.mean(1, keepdim=True)).sqrt()
    safe = torch.where(
        spread > floor * mean.abs().amax(1, keepdim=True).clamp(min=1e-30), spread, 1
    )
    return centred / safe[sets.owner], mean, spread


def at_own_scale(sets: SetBatch) -> SetBatch:
    """Every set centred and scaled to size one, where single precision is enough."""
    x = sets.items - sets.mean(sets.items)[sets.owner]
    reach = segment_max(x.abs().amax(1), sets.owner, len(sets))
    return sets.with_items((x / torch.where(reach > 0, reach, 1)[sets.owner][:, None]).float())
