"""The edges that a merged polygon can have, and the points that decide each of them.

An edge belongs to the hull of a set if every other point lies to its left. For two convex polygons
only few edges and few points are relevant (rotating calipers, Toussaint 1983): a line rotated once
around both touches one corner of each at a time. Only corners touched together can be joined by a
bridge, and their neighbours decide; whether a polygon's own edge stays is decided where the same
line touches the other polygon. That gives a constant number of candidates per corner, each with a
constant number of witnesses: a merge costs one sort, however many corners there are.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from diconet.core.segments import cross, followers, segment_argmax, segment_sort
from diconet.core.sets import SetBatch

NOBODY = -1
"""Represents a missing row."""


@dataclass(frozen=True, eq=False)
class Edges:
    """Candidate edges between rows of packed sets, and the witness rows that each is judged by."""

    tail: Int[Tensor, "edges"]
    head: Int[Tensor, "edges"]
    witness: Int[Tensor, "edges witnesses"]

    def __len__(self) -> int:
        return len(self.tail)

    @classmethod
    def proper(
        cls,
        tail: Int[Tensor, "edges"],
        head: Int[Tensor, "edges"],
        witness: Int[Tensor, "edges witnesses"],
    ) -> Edges:
        """The edges without missing or equal ends; an edge's ends are not its own witnesses."""
        real = (tail != head) & (tail != NOBODY) & (head != NOBODY)
        tail, head, witness = tail[real], head[real], witness[real]
        own = (witness == tail[:, None]) | (witness == head[:, None])
        return cls(tail, head, witness.masked_fill(own, NOBODY))

    def split(self, size: int) -> list[Edges]:
        """The edges in pieces of at most `size`."""
        fields = (self.tail, self.head, self.witness)
        return [Edges(*piece) for piece in zip(*(f.split(size) for f in fields), strict=True)]

    def among(self, rows: Int[Tensor, "items"]) -> Edges:
        """The same edges, with rows replaced by their numbers in a larger batch."""
        place = torch.cat([rows, rows.new_full((1,), NOBODY)])
        return Edges(place[self.tail], place[self.head], place[self.witness])


def all_edges(sets: SetBatch) -> Edges:
    """Every ordered pair within a set, with all others of the set as witnesses: for small sets."""
    tail, head = cross(sets.sizes, sets.sizes)
    place = torch.arange(int(sets.sizes.max()) if len(sets) else 0, device=tail.device)
    owner = sets.owner[tail]
    witness = sets.offsets[owner, None] + place
    return Edges.proper(tail, head, witness.masked_fill(place >= sets.sizes[owner, None], NOBODY))


def caliper_edges(pairs: SetBatch, points: Float[Tensor, "items 2"]) -> Edges:
    """The edges that can bound the union of two counter-clockwise convex polygons.

    `pairs` holds two polygons per node. Candidates are the polygons' own edges, those that skip one
    corner (which may have been kept in doubt), and both directions between corners that the
    calipers touch at once.
    """
    after, before = _around(pairs)
    order = _by_direction(pairs, points[after[:-1]] - points, before[:-1])
    touched = [_touched(pairs, order, after, side) for side in (0, 1)]

    tail = order
    head = after[tail]
    beyond = after[head]
    across = torch.where(pairs.owner[tail] % 2 == 0, touched[1], touched[0])
    near = [across, before[across], after[across]]
    own = torch.stack([before[tail], beyond, *near], 1)
    past = torch.stack([head, after[beyond], *near], 1)

    first, second = touched
    beside = [before[first], after[first], before[second], after[second]]
    bridge = torch.stack([*beside, torch.full_like(first, NOBODY)], 1)
    return Edges.proper(
        torch.cat([tail, tail, first, second]),
        torch.cat([head, beyond, second, first]),
        torch.cat([own, past, bridge, bridge]),
    )


def _around(cycles: SetBatch) -> tuple[Int[Tensor, "items_and_one"], Int[Tensor, "items_and_one"]]:
    """The next and previous row of each on its cycle; the last entry is for missing rows."""
    nobody = cycles.sizes.new_full((1,), NOBODY)
    after, before = followers(cycles.sizes), followers(cycles.sizes, -1)
    return torch.cat([after, nobody]), torch.cat([before, nobody])


def _by_direction(
    pairs: SetBatch, step: Float[Tensor, "items 2"], before: Int[Tensor, "items"]
) -> Int[Tensor, "items"]:
    """The rows of each node sorted by the direction of the polygon edge that starts there.

    Directions are accumulated from turn to turn, none of them to the right, so that each polygon's
    own order holds even if corners are collinear and rounding would reorder them.
    """
    last = step[before]
    cross = last[:, 0] * step[:, 1] - last[:, 1] * step[:, 0]
    turn = torch.atan2(cross, (last * step).sum(1))
    turn = torch.where(turn < -torch.pi / 2, turn + 2 * torch.pi, turn).clamp(min=0)
    # Each polygon starts after its sharpest corner, so that ties never wrap around.
    start = pairs.offsets[:-1]
    first = segment_argmax(turn, pairs.owner, len(pairs)).clamp(max=max(len(turn) - 1, 0))
    rows = torch.arange(len(turn), device=turn.device)
    place = (rows - first[pairs.owner]) % pairs.sizes[pairs.owner]
    turned = torch.empty_like(rows)
    turned[start[pairs.owner] + place] = rows
    total = turn[turned].cumsum(0)
    total = total - total[start.clamp(max=max(len(turn) - 1, 0))][pairs.owner]
    angle = torch.atan2(step[first, 1], step[first, 0])[pairs.owner] + total
    angle = torch.remainder(angle + torch.pi, 2 * torch.pi)
    return turned[segment_sort(angle, pairs.owner // 2)]


def _touched(
    pairs: SetBatch,
    order: Int[Tensor, "items"],
    after: Int[Tensor, "items_and_one"],
    side: int,
) -> Int[Tensor, "items"]:
    """The corner of one polygon of each node that a line touches, at each direction of `order`.

    That is the head of the polygon's last edge in order of direction, wrapping around at the start.
    """
    half = pairs.owner[order]
    node = half // 2
    place = torch.arange(len(order), device=order.device)
    mine = torch.where(half % 2 == side, place, NOBODY)
    latest = mine.cummax(0).values if len(mine) else mine
    final = mine.new_full((len(pairs) // 2,), NOBODY).scatter_reduce(0, node, mine, "amax")
    start = pairs.offsets[:-1:2][node]
    latest = torch.where(latest < start, final[node], latest)
    edge = torch.cat([order, order.new_full((1,), NOBODY)])[latest]
    return after[edge]
