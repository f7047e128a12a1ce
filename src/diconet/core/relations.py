"""Relations: edges with features between the items of a set, such as a graph or near neighbours.

Edges are packed set by set, as items are, and refer to items by position within the set. So sets
can be taken, repeated and concatenated without renumbering, and every operation costs no more than
the edges it touches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from diconet.core.host import Movable
from diconet.core.segments import offsets_of, owner_of, ragged_arange


@dataclass(frozen=True, eq=False)
class Relations(Movable):
    """Edges from `source` to `target` (positions within a set), `sizes` of them per set.

    `symmetric` says that every edge is also stored reversed, with the same features.
    """

    source: Int[Tensor, "edges"]
    target: Int[Tensor, "edges"]
    features: Float[Tensor, "edges features"]
    sizes: Int[Tensor, "sets"]
    symmetric: bool = False

    @classmethod
    def of(
        cls,
        edges: Sequence[Int[Tensor, "_ 2"]],
        features: Sequence[Float[Tensor, "_ features"]] | None = None,
        *,
        symmetric: bool = True,
    ) -> Relations:
        """Relations from one list of (source, target) positions per set.

        With `symmetric`, each pair is given once and stands for both directions.
        """
        pairs = torch.cat([pair.reshape(-1, 2) for pair in edges]).long()
        sizes = torch.tensor([len(pair) for pair in edges], device=pairs.device)
        if features is None:
            values = torch.zeros(len(pairs), 0, device=pairs.device)
        else:
            values = torch.cat(list(features))
        if len(values) != len(pairs):
            raise ValueError(
                f"features must have one row per edge, {len(pairs)} in all; got {len(values)}."
            )
        if not symmetric:
            return cls(pairs[:, 0], pairs[:, 1], values, sizes)
        source, target = pairs.flatten(), pairs.flip(1).flatten()
        return cls(source, target, values.repeat_interleave(2, 0), 2 * sizes, True)

    @classmethod
    def where(
        cls,
        joined: Bool[Tensor, "sets items items"],
        features: Float[Tensor, "sets items items features"] | None = None,
    ) -> Relations:
        """Relations from a matrix per set, True where items are joined, for sets of one size."""
        which, source, target = joined.nonzero().unbind(1)
        sizes = torch.bincount(which, minlength=len(joined))
        if features is None:
            values = torch.zeros(len(which), 0, device=joined.device)
        else:
            values = features[which, source, target]
        symmetric = bool((joined == joined.transpose(1, 2)).all())
        if symmetric and features is not None:
            symmetric = torch.equal(features, features.transpose(1, 2))
        return cls(source, target, values, sizes, symmetric)

    @classmethod
    def none(cls, sizes: Int[Tensor, "sets"], num_features: int = 0) -> Relations:
        """No edges at all, for sets of these sizes."""
        nothing = sizes.new_zeros(0)
        features = torch.zeros(0, num_features, device=sizes.device)
        return cls(nothing, nothing, features, torch.zeros_like(sizes), True)

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def num_edges(self) -> int:
        """Edges of all sets together."""
        return len(self.source)

    @property
    def num_features(self) -> int:
        """Numbers per edge."""
        return self.features.shape[1]

    @cached_property
    def owner(self) -> Int[Tensor, "edges"]:
        """Which set each edge is in."""
        return owner_of(self.sizes, self.num_edges)

    def rows(
        self, offsets: Int[Tensor, "sets_and_one"]
    ) -> tuple[Int[Tensor, "edges"], Int[Tensor, "edges"]]:
        """The packed rows of both ends of every edge, given where each set's items start."""
        start = offsets[:-1][self.owner]
        return start + self.source, start + self.target

    def take(self, which: Int[Tensor, "chosen"]) -> Relations:
        """The edges of the chosen sets, in that order."""
        sizes = self.sizes[which]
        return self._at(ragged_arange(offsets_of(self.sizes)[:-1][which], sizes), sizes)

    def moved(
        self,
        place: Int[Tensor, "items"],
        home: Int[Tensor, "items"],
        num_sets: int,
        offsets: Int[Tensor, "sets_and_one"],
    ) -> Relations:
        """The edges after every item (row) moved to a `place` in the set `home`, -1 if removed.

        Only edges whose ends are both in the same set remain.
        """
        source, target = self.rows(offsets)
        at, to = home[source], home[target]
        stay = ((at == to) & (at >= 0)).nonzero().squeeze(1)
        into = at[stay]
        sizes = torch.bincount(into, minlength=num_sets)
        order = stay[torch.argsort(into, stable=True)]
        kept = self._at(order, sizes)
        return replace(kept, source=place[source[order]], target=place[target[order]])

    @classmethod
    def cat(cls, parts: Sequence[Relations]) -> Relations:
        """The edges of several batches, one batch after the other."""
        source, target, features, sizes = (
            torch.cat([getattr(part, name) for part in parts])
            for name in ("source", "target", "features", "sizes")
        )
        return cls(source, target, features, sizes, all(part.symmetric for part in parts))

    def check(self, sizes: Int[Tensor, "sets"]) -> None:
        """Raises a `ValueError` unless these are edges of sets of these sizes."""
        if len(self) != len(sizes):
            raise ValueError(
                f"relations must have one size per set, {len(sizes)} in all; got {len(self)}."
            )
        if int(self.sizes.sum()) != self.num_edges:
            raise ValueError(
                f"the sizes of relations must add up to the number of edges, {self.num_edges};"
                f" got {int(self.sizes.sum())}."
            )
        limit = sizes[self.owner]
        for name, places in (("source", self.source), ("target", self.target)):
            wrong = (places < 0) | (places >= limit)
            if bool(wrong.any()):
                first = int(wrong.nonzero()[0])
                raise ValueError(
                    f"{name} must be positions within a set of {int(limit[first])} items;"
                    f" got {int(places[first])}."
                )

    def _at(self, edges: Int[Tensor, "some"], sizes: Int[Tensor, "sets"]) -> Relations:
        return Relations(
            self.source[edges], self.target[edges], self.features[edges], sizes, self.symmetric
        )
